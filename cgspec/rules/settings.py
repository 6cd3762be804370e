"""Rules about keys that would do nothing."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding, Path
from cgspec.rules.context import Context, Rule

_CHANNELS = ("overlap", "buffer", "max_buffered")


def ignored_setting(context: Context) -> Iterator[Finding]:
    """A key that the chosen engine or cluster does not have."""
    engine, cluster = context.spec.engine, context.spec.cluster
    for key in ("num_cpus", "num_gpus"):
        if key in cluster.model_fields_set and cluster.address != "local":
            message = f"{key} is of a local Ray; what the Ray at {cluster.address} has is its own"
            yield _ignored(message, ("cluster", key))
    if engine.kind != "compiled":
        for key in ("fuse", "short_loop"):
            if key in engine.model_fields_set:
                yield _ignored(f"{key} is of the compiled engine; {engine.kind} calls task by task", ("engine", key))
        for key in _CHANNELS:
            if key in engine.model_fields_set:
                yield _ignored(f"{key} is of the compiled engine; {engine.kind} has no channels", ("engine", key))
        yield from _transports(context)
    if engine.kind == "local":
        for key in sorted(engine.timeouts.model_fields_set):
            yield _ignored(f"{key} is not kept: the local engine runs in one process", ("engine", "timeouts", key))


def _transports(context: Context) -> Iterator[Finding]:
    """What an engine without channels does not take from a transport: ``local`` all of it."""
    for name, task in context.spec.tasks.items():
        path: Path = ("tasks", name, "transport")
        if task.transport is not None and context.spec.engine.kind == "local":
            message = f"{name} has a transport; with engine local nothing travels"
            yield Finding("ignored-setting", message, path, "note", on="key")
        elif task.transport is not None:
            for key in sorted(task.transport.model_fields_set - {"kind"}):
                message = f"{key} is of the compiled engine; with direct every tensor says what it is and where"
                yield Finding("ignored-setting", message, (*path, key), "note", on="key")


def _ignored(message: str, path: Path) -> Finding:
    return Finding("ignored-setting", message, path, "warning", on="key", fix="remove it")


RULES = (Rule("ignored-setting", ignored_setting),)
