"""Rules about what is read by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding
from cgspec.families import TaskFamily
from cgspec.rules.context import Context, Rule


def unused_input(context: Context) -> Iterator[Finding]:
    """An input that no task and no output reads."""
    for name in context.catalogue.inputs:
        if f"inputs.{name}" not in context.wiring.named and not _feeds_nothing_known(context):
            why = "Ray refuses a graph in which an input reaches no output"
            fix = f"remove it, or read inputs.{name} in a task"
            yield Finding(
                "unused-input", f"nothing reads the input {name}", ("inputs", name), on="key", why=why, fix=fix
            )


def _feeds_nothing_known(context: Context) -> bool:
    """Whether some task could not be read at all, so that it may be the one that reads."""
    return any(section == "tasks" for section, _ in context.catalogue.faulty)


def dangling_task(context: Context) -> Iterator[Finding]:
    """A task whose result nobody reads and that is not called for its effect."""
    if not context.wiring.outputs and "outputs" not in context.wiring.broken:
        return
    for name, family in context.wiring.tasks.items():
        if name in context.wiring.named or family.returns == () or _feeds_nothing_known(context):
            continue
        if context.is_whole("tasks", name):
            why = "Ray refuses a task that feeds nothing"
            fix = f"add it to outputs ({_line(context, family)}), or say returns: [] if it is called for its effect"
            yield Finding("dangling-task", f"nothing reads {name}", ("tasks", name), on="key", why=why, fix=fix)


def _line(context: Context, family: TaskFamily) -> str:
    reference = f"{family.name}.*" if family.axes else family.name
    return f"{family.name}: {reference}" if context.wiring.form == "map" else reference


def no_outputs(context: Context) -> Iterator[Finding]:
    """A spec that asks for nothing back."""
    if context.wiring.outputs or "outputs" in context.wiring.broken or _feeds_nothing_known(context):
        return
    ends = [family for name, family in context.wiring.tasks.items() if name not in context.wiring.named]
    results = [family for family in ends if family.returns != ()]
    if results or not ends:
        names = ", ".join(_reference(family) for family in results) or "TASK"
        message = "the spec has no outputs, so nothing comes back"
        fix = f"add e.g. outputs: [{names}]" if len(results) != 1 else f"add outputs: {names}"
        yield Finding(
            "no-outputs", message, ("outputs",) if context.spec.outputs is not None else (), on="key", fix=fix
        )


def _reference(family: TaskFamily) -> str:
    return f"{family.name}.*" if family.axes else family.name


RULES = (
    Rule("unused-input", unused_input),
    Rule("dangling-task", dangling_task),
    Rule("no-outputs", no_outputs),
)
