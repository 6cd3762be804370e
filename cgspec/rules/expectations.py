"""Rules about what is expected: every expectation binds to something that there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from cgspec import quantities
from cgspec.diagnostics import Finding, Path, suggest
from cgspec.families import whole
from cgspec.rules.context import Context, Rule
from cgspec.rules.running import output_names
from cgspec.selection import select
from cgspec.spec import RUN_METRICS, TASK_METRICS, ExpectSpec

_VALUE_CONDITIONS = ("equals", "equals_input", "close", "finite", "shape", "dtype", "length", "all_equal")
_BOUNDS = ("below", "above")


def _entries(context: Context) -> Iterator[tuple[Path, ExpectSpec]]:
    for number, entry in enumerate(context.spec.expect):
        yield ("expect", number), entry


def _given(entry: ExpectSpec, names: tuple[str, ...]) -> list[str]:
    """``equals: null`` expects None; anything else that is null says nothing."""
    said = (name for name in names if name in entry.model_fields_set)
    return [name for name in said if name == "equals" or getattr(entry, name) is not None]


def bad_expectation(context: Context) -> Iterator[Finding]:
    """An expectation without a subject, without a condition, or with conditions of another subject."""
    for path, entry in _entries(context):
        problem = _form_problem(entry)
        if problem is not None and path not in context.catalogue.incomplete:
            key, message, fix = problem
            on: Literal["key", "value"] = "key" if key else "value"
            yield Finding("bad-expectation", message, (*path, key) if key else path, on=on, fix=fix)


def _form_problem(entry: ExpectSpec) -> tuple[str, str, str] | None:
    """The key that is out of place (or none), what is wrong, and what helps."""
    subjects = _given(entry, ("output", "task", "metric"))
    values, bounds = _given(entry, _VALUE_CONDITIONS), _given(entry, _BOUNDS)
    if not subjects:
        return "", "this expectation is about nothing", "add output: NAME, task: NAME or metric: NAME"
    if len(subjects) > 1 and "output" in subjects:
        return subjects[1], f"this is about an output and a {subjects[1]}", "make two expectations of it"
    if "output" not in subjects and "item" in entry.model_fields_set:
        return "item", "item picks a part of an output, and this is about something else", "remove item"
    if "metric" in subjects and "at" in entry.model_fields_set:
        return "at", "at picks iterations, and a metric is of the whole measure phase", "remove at"
    if "metric" in subjects:
        if values:
            return values[0], f"{values[0]} is about values, and this is about a metric", "use below or above"
        return None if bounds else ("metric", "a metric needs a bound", "add below: 5ms, or above")
    if bounds:
        return bounds[0], f"{bounds[0]} is about metrics, and no metric is named", "add e.g. metric: latency.p95"
    if "task" in subjects:
        said = f"{values[0]} is not looked at on a task" if values else "nothing is expected of the task"
        fix = "a task is looked at with finite: true, or through a metric; other values are looked at as outputs"
        return None if values == ["finite"] else (values[0] if values else "task", said, fix)
    return None if values else ("output", "nothing is expected of the output", f"add {_listed(_VALUE_CONDITIONS)}")


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def unbound_expectation(context: Context) -> Iterator[Finding]:
    """An expectation about an output, task, input or metric that there is not."""
    for path, entry in _entries(context):
        for key, message in _unbound(context, entry):
            yield Finding("unbound-expectation", message, (*path, key))


def _unbound(context: Context, entry: ExpectSpec) -> Iterator[tuple[str, str]]:
    if entry.output is not None and "outputs" not in context.wiring.broken and context.wiring.outputs:
        problem = _output_problem(context, entry.output)
        if problem:
            yield "output", problem
    name = (entry.equals_input or "").removeprefix("inputs.").split(".")[0]
    if name and name not in context.catalogue.inputs and not context.catalogue.is_faulty("inputs", name):
        offer = suggest(name, context.catalogue.inputs, noun="inputs")
        yield "equals_input", f"there is no input {name}; {offer}"
    if entry.task is not None:
        name = _task_name(entry.task)
        if name not in context.spec.tasks and not context.catalogue.is_faulty("tasks", name):
            yield "task", f"there is no task {name}; {suggest(name, context.spec.tasks, noun='tasks')}"
    if entry.metric is not None:
        known = TASK_METRICS if entry.task is not None else (*RUN_METRICS, *context.spec.metrics)
        if entry.metric not in known:
            yield (
                "metric",
                f"there is no metric {entry.metric}; {suggest(entry.metric, known, noun='metrics', most=20)}",
            )


def unbound_member(context: Context) -> Iterator[Finding]:
    """An expectation about a member of a family that there is not."""
    graph = context.sound
    inputs = {name for given in graph.inputs for name in (given.name, given.family)}
    for path, entry in _entries(context):
        known = entry.task is not None and _task_name(entry.task) in context.spec.tasks
        if known and not select(graph.tasks, entry.task):
            message = f"{_shown(entry.task)} names no member of the task {_task_name(entry.task)}"
            yield Finding("unbound-expectation", message, (*path, "task"))
        name = (entry.equals_input or "").removeprefix("inputs.")
        if name.split(".")[0] in context.catalogue.inputs and name not in inputs:
            offer = suggest(name, sorted(inputs), noun="inputs")
            yield Finding("unbound-expectation", f"there is no input {name}; {offer}", (*path, "equals_input"))


def _shown(task: Any) -> str:
    return ", ".join(f"{key}: {value}" for key, value in task.items()) if isinstance(task, dict) else str(task)


def _task_name(task: Any) -> str:
    return str(task.get("$at", "")) if isinstance(task, dict) else str(task).split(".")[0]


def _output_problem(context: Context, output: str | int) -> str | None:
    form, wires = context.wiring.form, context.wiring.outputs
    if form == "list":
        count = sum(wire.positions for wire in wires)
        index = output if isinstance(output, int) else whole(output)
        if index is None:
            return f"outputs is a list, so an output is named by its index (0 to {count - 1}), not {output!r}"
        entries = "1 entry" if count == 1 else f"{count} entries"
        return None if -count <= index < count else f"there is no output {index}: outputs has {entries}"
    names = output_names(context)
    if str(output) in names:
        return None
    return f"there is no output {output}; {suggest(str(output), names, noun='outputs')}"


def bad_bound(context: Context) -> Iterator[Finding]:
    """A bound without a unit, or of the wrong kind."""
    for path, entry in _entries(context):
        if entry.metric is None or entry.metric in context.spec.metrics:
            continue
        for key in _given(entry, _BOUNDS):
            problem = _bound_problem(entry.metric, getattr(entry, key))
            if problem:
                yield Finding("bad-unit", f"{key}: {problem}", (*path, key))


def _bound_problem(metric: str, bound: Any) -> str | None:
    if isinstance(bound, dict) or (isinstance(bound, str) and bound.startswith("$")):
        return None
    if metric == "throughput":
        number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
        return None if number else f"throughput is a number of iterations per second, not {bound!r}"
    try:
        quantities.duration(bound)
    except ValueError as error:
        return str(error)
    return None


RULES = (
    Rule("bad-expectation", bad_expectation),
    Rule("unbound-expectation", unbound_expectation),
    Rule("unbound-expectation", unbound_member, "graph"),
    Rule("bad-unit", bad_bound),
)
