"""The metrics of a run, built-in and the user's; how ``expect`` judges them: a bound, what was found, the margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cgspec import quantities
from cgspec.analysis import Distribution
from cgspec.expectations import Read, Verdict
from cgspec.graph import Graph
from cgspec.selection import select
from cgspec.spec import PERCENTILES, RUN_METRICS, TASK_METRICS, ExpectSpec
from cgspec.values import CannotMake, Scope


@dataclass(frozen=True)
class Metrics:
    """What was measured, in seconds and iterations per second; ``tasks`` by the task's index in the graph.

    ``user`` are the metrics of the spec, plain numbers, those without a value left out.
    """

    run: Mapping[str, float]
    tasks: Mapping[int, Mapping[str, float]]
    user: Mapping[str, float] = field(default_factory=dict)


def metrics_of(prefix: str, times: Distribution | None) -> dict[str, float]:
    """The metrics of a distribution of ns, in seconds."""
    return {} if times is None else {f"{prefix}.{name}": getattr(times, name) / 1e9 for name in PERCENTILES}


def judge_metrics(
    graph: Graph, entries: Sequence[ExpectSpec], read: Read, measured: Metrics | None, *, rehearsal: bool
) -> tuple[Verdict, ...]:
    """One verdict per bound, in the order of the spec; ``measured`` is None where the measure phase did not happen."""
    verdicts = []
    for number, entry in enumerate(entries):
        for side in ("below", "above"):
            if entry.metric is not None and getattr(entry, side) is not None:
                verdicts.append(_judged(graph, entry, number, side, read, measured, rehearsal))
    return tuple(verdicts)


def _judged(
    graph: Graph,
    entry: ExpectSpec,
    number: int,
    side: str,
    read: Read,
    measured: Metrics | None,
    rehearsal: bool,
) -> Verdict:
    said, path = getattr(entry, side), ("expect", number, side)
    subject = f"{entry.metric} of {entry.task}" if entry.task is not None else f"{entry.metric}"
    verdict = Verdict(f"{subject} {side} {said}", ("expect", number), expected=f"{side} {said}")
    if rehearsal:
        return _with(verdict, found="not judged in a rehearsal")
    value = _value(graph, entry, side, measured) if measured is not None else None
    if value is None:
        return _with(verdict, found="not measured")
    try:
        bound = _bound(read(said, path).make(Scope()), entry.metric or "")
    except (CannotMake, ValueError) as error:
        return _with(verdict, passed=False, found=f"{_show(value, entry.metric)}; the bound cannot be read: {error}")
    return _compared(verdict, value, bound, side, entry.metric or "")


def _with(verdict: Verdict, *, found: str, passed: bool | None = None, margin: float | None = None) -> Verdict:
    return Verdict(verdict.what, verdict.path, passed, verdict.expected, found, margin=margin)


def _value(graph: Graph, entry: ExpectSpec, side: str, measured: Metrics) -> float | None:
    """The metric; of several tasks, that of the one which is the furthest out."""
    metric = entry.metric or ""
    if entry.task is None:
        return measured.run.get(metric, measured.user.get(metric))
    found = [measured.tasks.get(place, {}).get(metric) for place in select(graph.tasks, entry.task)]
    values = [value for value in found if value is not None]
    return (max(values) if side == "below" else min(values)) if values else None


def _bound(said: Any, metric: str) -> float:
    if metric in (*RUN_METRICS, *TASK_METRICS) and metric != "throughput":
        return quantities.duration(said)
    if isinstance(said, bool) or not isinstance(said, (int, float)):
        kind = "a number of iterations per second" if metric == "throughput" else "a plain number"
        raise ValueError(f"{metric} is {kind}, not {said!r}")
    return float(said)


def _show(value: float, metric: str | None) -> str:
    if metric not in (*RUN_METRICS, *TASK_METRICS):
        return f"{value:.4g}"
    return quantities.show_rate(value) if metric == "throughput" else quantities.show_duration(value)


def _compared(verdict: Verdict, value: float, bound: float, side: str, metric: str) -> Verdict:
    inside = bound - value if side == "below" else value - bound
    margin = inside / abs(bound) if bound else None
    found = _show(value, metric)
    if margin is not None:
        found += f", {abs(margin) * 100:.3g}% {'inside' if inside > 0 else 'outside'} the bound"
    return _with(verdict, found=found, passed=inside > 0, margin=margin)
