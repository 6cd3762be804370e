"""Rules about how the graph is run: windows, feedback, buffers, where Ray comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator

from cgspec.buffers import reserved
from cgspec.diagnostics import Finding, Path, Related, suggest
from cgspec.families import axes_made
from cgspec.quantities import show_size
from cgspec.references import leaves
from cgspec.rules.context import Context, Rule
from cgspec.values import Call, Entries, Feedback, Items, Marked, Text, Value

STORE_SHARE = 0.3
"""What Ray takes of the machine's memory for its object store by default."""


def inflight(context: Context) -> Iterator[Finding]:
    """More iterations under way than the engine accepts."""
    run, engine = context.spec.run, context.spec.engine
    if engine.max_inflight is not None and run.inflight > engine.max_inflight:
        message = f"run.inflight is {run.inflight}, and engine.max_inflight allows {engine.max_inflight}"
        made = (Related("max_inflight is here", ("engine", "max_inflight")),)
        fix = "raise engine.max_inflight, or leave it out: it is run.inflight by default"
        yield Finding("inflight", message, ("run", "inflight"), fix=fix, related=made)


def feedbacks(context: Context) -> Iterator[tuple[Feedback, Path]]:
    """Every ``$feedback`` among the inputs."""
    for name, value in context.readings.inputs.items():
        for found in _find(value):
            path = context.catalogue.inputs[name].path
            direct = isinstance(value, Feedback) and found is value
            yield found, (*path, "$feedback") if direct else path


def _find(value: Value) -> Iterator[Feedback]:
    if isinstance(value, Feedback):
        yield value
        yield from _find(value.first)
    inner: tuple[Value, ...] = ()
    if isinstance(value, Items):
        inner = value.items
    elif isinstance(value, Entries):
        inner = tuple(item for _, item in value.entries)
    elif isinstance(value, Text):
        inner = value.parts
    elif isinstance(value, Marked):
        inner = tuple(value.arguments.values())
    elif isinstance(value, Call):
        inner = (value.arguments,)
    for item in inner:
        yield from _find(item)


def output_names(context: Context) -> list[str]:
    """The names that outputs have, where they have names."""
    if context.wiring.form == "map":
        return [str(wire.name) for wire in context.wiring.outputs]
    if context.wiring.form == "single":
        return [leaf.family.name for wire in context.wiring.outputs for item in wire.items for leaf in leaves(item)]
    return []


def feedback_lag(context: Context) -> Iterator[Finding]:
    """More iterations under way than a feedback's lag."""
    for feedback, path in feedbacks(context):
        if context.spec.run.inflight > feedback.lag:
            window = context.spec.run.inflight
            ago = "of the iteration before" if feedback.lag == 1 else f"of {feedback.lag} iterations ago"
            message = f"{path[1]} needs the output {ago}, and {window} iterations are in flight"
            why = "an iteration can only begin when the output that it feeds back is there"
            fix = f"set run.inflight to at most {feedback.lag}, or raise lag"
            made = (Related("inflight is here", ("run", "inflight")),)
            yield Finding("feedback-lag", message, path, why=why, fix=fix, related=made)


def feedback_output(context: Context) -> Iterator[Finding]:
    """A feedback of an output that there is not."""
    if "outputs" in context.wiring.broken:
        return
    names = output_names(context)
    for feedback, path in feedbacks(context):
        if feedback.output not in names:
            offer = suggest(feedback.output, names, noun="outputs with a name")
            message = f"{path[1]} feeds back the output {feedback.output}, which there is not; {offer}"
            yield Finding("feedback-output", message, path)


def buffers(context: Context) -> Iterator[Finding]:
    """Channels that reserve more than a local object store holds."""
    if context.spec.engine.kind != "compiled" or context.spec.cluster.address != "local":
        return
    total, count, window, largest = reserved(context.sound, context.spec)
    memory = _memory()
    if memory and total > STORE_SHARE * memory:
        message = (
            f"{count} channels reserve {show_size(total)} ({window} in flight, up to {show_size(largest)} each), and a"
            f" local object store here has {show_size(STORE_SHARE * memory)}"
        )
        path: Path = ("engine", "buffer") if context.spec.engine.buffer is not None else ("run", "inflight")
        why = "each channel reserves max_inflight x buffer at once"
        fix = "lower engine.max_inflight or engine.buffer, or declare smaller payloads"
        yield Finding("buffers", message, path, "warning", why=why, fix=fix)


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def ray_client(context: Context) -> Iterator[Finding]:
    """An address of a Ray Client, which cannot bind graphs."""
    address = context.spec.cluster.address
    if address.startswith("ray://"):
        message = f"{address} is the address of a Ray Client server"
        why = "Ray cannot bind a compiled graph through Ray Client (ray-project/ray#50328)"
        fix = "run cgspec on a node of the cluster (address: auto), or submit it as a Ray job"
        yield Finding("ray-client", message, ("cluster", "address"), why=why, fix=fix)


def bad_address(context: Context) -> Iterator[Finding]:
    """An address that is neither ``local``, ``auto`` nor ``host:port``."""
    address = context.spec.cluster.address
    host, _, port = address.rpartition(":")
    if address in ("local", "auto") or address.startswith("ray://") or (host and port.isdigit()):
        return
    fix = f"write {address}:6379, where 6379 is Ray's usual port" if address.replace(".", "").isalnum() else ""
    message = f"{address!r} is no address: it is local, auto or host:port"
    yield Finding("bad-address", message, ("cluster", "address"), fix=fix)


def same_node_axis(context: Context) -> Iterator[Finding]:
    """``same_node`` names an axis that the actor does not have."""
    for name, actor in context.catalogue.actors.items():
        for number, axis in enumerate(actor.spec.same_node or ()):
            if axis not in actor.axes:
                offer = suggest(axis, actor.axes, noun=f"axes of {name}")
                message = f"{name} has no axis {axis} whose members could share a node; {offer}"
                path: Path = ("actors", name, "same_node", number)
                yield Finding("same-node", message, path, related=axes_made(actor))


RULES = (
    Rule("inflight", inflight),
    Rule("feedback-lag", feedback_lag),
    Rule("feedback-output", feedback_output),
    Rule("buffers", buffers, "graph"),
    Rule("ray-client", ray_client),
    Rule("bad-address", bad_address),
    Rule("same-node", same_node_axis),
)
