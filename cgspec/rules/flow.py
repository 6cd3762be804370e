"""Rules about what is read by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding, Related
from cgspec.families import TaskFamily
from cgspec.rules.arguments import missed_names
from cgspec.rules.context import Context, Rule


def unused_input(context: Context) -> Iterator[Finding]:
    """An input that no task and no output reads."""
    missed = missed_names(context)  # an input of the name of an argument that lacks is what was forgotten there
    unread = [name for name in context.catalogue.inputs if f"inputs.{name}" not in context.wiring.named]
    unread = [name for name in unread if name not in missed]
    if (
        context.catalogue.is_lost("tasks")
        or context.catalogue.unknown_reads
        or len(unread) <= context.wiring.strays["inputs"]
    ):
        return
    for name in unread:
        why = "Ray refuses a graph in which an input reaches no output"
        fix = f"remove it, or read inputs.{name} in a task"
        made = tuple(_as_constants(context, f"inputs.{name}"))
        fix = f"write inputs.{name} under in: with holds constants" if made else fix
        message, path = f"nothing reads the input {name}", ("inputs", name)
        yield Finding("unused-input", message, path, on="key", why=why, fix=fix, related=made)


def _as_constants(context: Context, reference: str) -> Iterator[Related]:
    """Where something is given as a constant that looks like a reference."""
    for name, task in context.spec.tasks.items():
        for key, value in (task.with_ or {}).items():
            if value == reference:
                yield Related(f"{reference} is text here, not a reference", ("tasks", name, "with", key))


def dangling_task(context: Context) -> Iterator[Finding]:
    """A task whose result nobody reads and that is not called for its effect."""
    missed = missed_names(context)
    unread = [family for family in _ends(context) if family.returns != () and family.name not in missed]
    known = context.wiring.outputs or "outputs" in context.wiring.broken
    if (
        not known
        or context.catalogue.is_lost("outputs")
        or context.catalogue.unknown_reads
        or len(unread) <= context.wiring.strays["tasks"]
    ):
        return
    for family in unread:
        if context.is_whole("tasks", family.name):
            path = ("tasks", family.name)
            why = "Ray refuses a task that feeds nothing"
            fix = f"{_line(context, family)}, or say returns: [] if it is called for its effect"
            made = tuple(_as_constants(context, family.name))
            fix = f"write {family.name} under in: with holds constants" if made else fix
            message = f"nothing reads {family.name}"
            yield Finding("dangling-task", message, path, on="key", why=why, fix=fix, related=made)


def _ends(context: Context) -> list[TaskFamily]:
    """The tasks that nobody reads."""
    return [family for name, family in context.wiring.tasks.items() if name not in context.wiring.named]


def _line(context: Context, family: TaskFamily) -> str:
    """The line that makes a task an output."""
    reference = _reference(family)
    if context.wiring.form == "map":
        return f"add `{family.name}: {reference}` to outputs"
    raw = context.raw(("outputs",))
    if context.wiring.form == "single" and isinstance(raw, str):
        return f"write outputs: [{raw}, {reference}]"
    return f"add {reference} to outputs"


def no_outputs(context: Context) -> Iterator[Finding]:
    """A spec that asks for nothing back."""
    if context.wiring.outputs or "outputs" in context.wiring.broken:
        return
    if context.catalogue.is_lost("outputs") or context.catalogue.is_lost("tasks"):
        return
    ends = _ends(context)
    results = [family for family in ends if family.returns != ()]
    if ends and not results:
        return
    path = ("outputs",) if context.spec.outputs is not None else ()
    if not context.spec.tasks and not any(section == "tasks" for section, _ in context.catalogue.faulty):
        fix = "add a task: NAME: {call: actor.method, in: {parameter: inputs.x}}"
        yield Finding("no-outputs", "the spec has no tasks, so nothing is run", ("tasks",), on="key", fix=fix)
        return
    names = ", ".join(_reference(family) for family in results) or "TASK"
    fix = f"add outputs: [{names}]" if len(results) > 1 else f"add outputs: {names}"
    yield Finding("no-outputs", "the spec has no outputs, so nothing comes back", path, on="key", fix=fix)


def _reference(family: TaskFamily) -> str:
    return f"{family.name}.*" if family.axes else family.name


RULES = (
    Rule("unused-input", unused_input),
    Rule("dangling-task", dangling_task),
    Rule("no-outputs", no_outputs),
)
