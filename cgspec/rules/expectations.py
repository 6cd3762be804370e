"""Rules about what is expected: every expectation binds to something that there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cgspec import quantities
from cgspec.diagnostics import Finding, Path, suggest
from cgspec.families import whole
from cgspec.rules.context import Context, Rule
from cgspec.rules.running import output_names
from cgspec.spec import RUN_METRICS, TASK_METRICS, ExpectSpec

_VALUE_CONDITIONS = ("equals", "equals_input", "close", "finite", "shape", "dtype", "length", "all_equal")
_BOUNDS = ("below", "above")


def _entries(context: Context) -> Iterator[tuple[Path, ExpectSpec]]:
    for number, entry in enumerate(context.spec.expect):
        yield ("expect", number), entry


def _given(entry: ExpectSpec, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in entry.model_fields_set]


def bad_expectation(context: Context) -> Iterator[Finding]:
    """An expectation without a subject, without a condition, or with conditions of another subject."""
    for path, entry in _entries(context):
        problem = _form_problem(entry)
        if problem:
            yield Finding("bad-expectation", problem, path)


def _form_problem(entry: ExpectSpec) -> str | None:
    subjects = _given(entry, ("output", "task", "metric"))
    values, bounds = _given(entry, _VALUE_CONDITIONS), _given(entry, _BOUNDS)
    if not subjects or (len(subjects) > 1 and "output" in subjects):
        return "an expectation is about an output, a task or a metric: say which one"
    if "metric" in subjects:
        if values:
            return f"{values[0]} is about values; a metric takes below or above"
        return None if bounds else "a metric needs a bound: below or above"
    if bounds:
        return f"{bounds[0]} is about metrics; say which metric"
    if "task" in subjects:
        return None if values == ["finite"] else "a task is only looked at with finite: true, or with a metric"
    return None if values else f"nothing is expected: add one of {', '.join(_VALUE_CONDITIONS)}"


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
    name = (entry.equals_input or "").split(".")[0]
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


def _task_name(task: Any) -> str:
    return str(task.get("$at", "")) if isinstance(task, dict) else str(task).split(".")[0]


def _output_problem(context: Context, output: str | int) -> str | None:
    form, wires = context.wiring.form, context.wiring.outputs
    if form == "list":
        count = sum(wire.positions for wire in wires)
        index = output if isinstance(output, int) else whole(output)
        if index is None:
            return f"outputs is a list, so an output is named by its index (0 to {count - 1}), not {output!r}"
        return None if -count <= index < count else f"there is no output {index}: outputs has {count} entries"
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
    Rule("bad-unit", bad_bound),
)
