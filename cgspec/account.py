"""Turns what was measured into the parts of the record; times become µs here, YAML paths become lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from cgspec import analysis
from cgspec.alignment import Alignment
from cgspec.analysis import Distribution, Spans
from cgspec.diagnostics import Path
from cgspec.engines import ChannelTimes, TaskTimes
from cgspec.errors import Failure
from cgspec.expectations import Verdict
from cgspec.graph import Graph
from cgspec.limits import Limits, advice, limits
from cgspec.metrics import Metrics, metrics_of
from cgspec.phases import Passed
from cgspec.record import (
    ActorRecord,
    ClockRecord,
    FailureRecord,
    LimitsRecord,
    PhaseRecord,
    TaskRecord,
    Times,
    VerdictRecord,
)

Locate = Callable[[Path], tuple[str, int, int] | None]
"""The file, line and column of a YAML path, where they are known."""
ADVISED = 20
"""Iterations below which nothing is advised."""


def in_us(times: Distribution | None) -> Times | None:
    """A distribution of ns as one of µs."""
    if times is None:
        return None
    return Times(
        count=times.count,
        p50=_us(times.p50),
        p95=_us(times.p95),
        p99=_us(times.p99),
        mean=_us(times.mean),
        min=_us(times.min),
        max=_us(times.max),
        p50_ci=_interval(times.p50_ci),
        p95_ci=_interval(times.p95_ci),
    )


def _us(ns: float) -> float:
    return round(ns / 1e3, 3)


def _interval(ns: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if ns is None else (_us(ns[0]), _us(ns[1]))


def phase_record(passed: Passed, *, profiled: str | None) -> PhaseRecord:
    """The numbers of one pass."""
    latencies, data = passed.latencies(), passed.data
    steady = analysis.steadiness(latencies)
    good = len(latencies)
    return PhaseRecord(
        name=passed.plan.phase.name,
        iterations=len(passed.done),
        asked=passed.plan.phase.iterations,
        errors=len(passed.raised),
        latency_us=in_us(analysis.distribution(latencies)),
        throughput_per_s=_rounded(analysis.throughput(good, passed.seconds)),
        seconds=round(passed.seconds, 6),
        profiled=profiled,
        steady=steady.verdict,
        steady_reason=steady.reason,
        first_held=max((times.first for times in data.times), default=0) if data else 0,
        clocks={node: _clock(found) for node, found in data.clocks.items()} if data else {},
        notes=list(data.notes) if data else [],
    )


def _clock(found: Alignment) -> ClockRecord:
    return ClockRecord(offset_ns=found.offset, error_ns=found.error)


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


class Busy:
    """What tasks and actors did in one pass, as far as the recorder still knows.

    Where an actor's GPU was timed, by the GPU's clock (``device_times``): host clocks charge kernels to whoever waits
    for them. ``host`` then holds what the host's clock says of the same tasks.
    """

    def __init__(self, graph: Graph, passed: Passed) -> None:
        self._graph = graph
        times: Sequence[TaskTimes] = passed.data.times if passed.data else ()
        count = len(passed.done)
        used = {number: t if t.device is None else t.device for number, t in enumerate(times)}
        self.spans = {number: _spans(t, count) for number, t in used.items()}
        self.tasks = {number: analysis.distribution(spans.busy()) for number, spans in self.spans.items()}
        on_device = {number: _spans(t, count) for number, t in enumerate(times) if t.device is not None}
        self.host = {number: analysis.distribution(spans.busy()) for number, spans in on_device.items()}
        self.device_errors = passed.data.device_errors if passed.data else {}
        self._window = (passed.submitted[:count], passed.done)
        ran = {number: times for number, times in self.tasks.items() if times is not None}
        medians, means = ({n: getattr(t, name) for n, t in ran.items()} for name in ("p50", "mean"))
        self.limits: Limits | None = limits(graph, medians, means)

    def utilisation(self, actor: int) -> analysis.Utilisation | None:
        """How busy one actor member was."""
        spans = [self.spans[number] for number in self._graph.actors[actor].tasks if number in self.spans]
        return analysis.utilisation(spans, *self._window)

    def share(self, actor: str) -> float | None:
        """The share of the time in which an actor was busy, by its name."""
        place = next(number for number, member in enumerate(self._graph.actors) if member.name == actor)
        found = self.utilisation(place)
        return None if found is None else found.share


def _spans(times: TaskTimes, count: int) -> Spans:
    """What is held of the iterations that were completed; where a phase broke, tasks had begun others."""
    kept = max(0, count - times.first)
    if len(times.start) <= kept:
        return Spans(times.first, times.start, times.end)
    return Spans(times.first, times.start[:kept], times.end[:kept])


def limits_record(busy: Busy, phase: PhaseRecord, inflight: int, *, parallel: bool = True) -> LimitsRecord | None:
    """The graph's own limits, and how close the run came; ``parallel`` as in ``limits.advice``."""
    found = busy.limits
    if found is None or phase.latency_us is None:
        return None
    said = ""
    if phase.iterations >= ADVISED and not phase.errors:
        said = advice(
            found,
            latency=phase.latency_us.p50 * 1e3,
            throughput=phase.throughput_per_s,
            inflight=inflight,
            share=busy.share(found.actor),
            parallel=parallel,
        )
    return LimitsRecord(
        critical_path_us=_us(found.critical_path),
        critical_path=list(found.path),
        busiest_actor_us=_us(found.busiest),
        busiest_actor=found.actor,
        busiest_task=found.task,
        advice=said,
    )


def task_records(graph: Graph, busy: Busy, locate: Locate) -> dict[str, TaskRecord]:
    """Busy time of every task, with its line in the spec."""
    return {
        task.name: TaskRecord(
            busy_us=in_us(busy.tasks.get(number)),
            host_us=in_us(busy.host.get(number)),
            line=_place(locate(task.path)),
        )
        for number, task in enumerate(graph.tasks)
    }


def add_channels(tasks: dict[str, TaskRecord], graph: Graph, channels: Sequence[ChannelTimes]) -> None:
    """Adds what a task's calls took together in each iteration, for reading and for writing."""
    sums: dict[tuple[int, str], Counter[int]] = {}
    for each in channels:
        found = sums.setdefault((each.task, each.kind), Counter())
        for iteration, (start, end) in enumerate(zip(each.start, each.end, strict=True), each.first):
            found[iteration] += end - start
    for (number, kind), by_iteration in sums.items():
        times = in_us(analysis.distribution(ns for ns in by_iteration.values() if ns))
        setattr(tasks.setdefault(graph.tasks[number].name, TaskRecord()), f"{kind}_us", times)


def _place(place: tuple[str, int, int] | None) -> str | None:
    return None if place is None else f"{place[0]}:{place[1]}"


def actor_records(graph: Graph, nodes: dict[str, str]) -> list[ActorRecord]:
    """Every actor member with its order."""
    return [
        ActorRecord.model_validate(
            {
                "name": actor.name,
                "class": str(actor.class_ref),
                "num_gpus": actor.num_gpus,
                "node": nodes.get(actor.name),
                "tasks": [graph.tasks[number].name for number in actor.tasks],
            }
        )
        for actor in graph.actors
    ]


def fill_in_actors(actors: list[ActorRecord], busy: Busy) -> None:
    """Adds what was measured of each actor, one record per ``graph.actors``."""
    for number, actor in enumerate(actors):
        found = busy.utilisation(number)
        if found is not None:
            actor.busy_us, actor.utilisation = _us(found.busy), round(found.share, 4)
        error = busy.device_errors.get(actor.name)
        actor.device_error_us = None if error is None else _us(error)


def metrics(busy: Busy, passed: Passed, phase: PhaseRecord, first_result: float | None) -> Metrics:
    """What ``expect`` can ask for by name."""
    run = metrics_of("latency", analysis.distribution(passed.latencies()))
    if phase.throughput_per_s is not None:
        run["throughput"] = phase.throughput_per_s
    if first_result is not None:
        run["first_result"] = first_result
    if busy.limits is not None:
        run |= {"critical_path": busy.limits.critical_path / 1e9, "busiest_actor": busy.limits.busiest / 1e9}
    return Metrics(run, {number: metrics_of("busy", times) for number, times in busy.tasks.items()})


def verdict_record(verdict: Verdict, locate: Locate) -> VerdictRecord:
    """A verdict with the line of its entry."""
    file, line, _ = locate(verdict.path) or (None, None, None)
    return VerdictRecord(
        what=verdict.what,
        passed=verdict.passed,
        expected=verdict.expected,
        found=verdict.found,
        iteration=verdict.iteration,
        looked=verdict.looked,
        failed=verdict.failed,
        margin=None if verdict.margin is None else round(verdict.margin, 6),
        file=file,
        line=line,
    )


_NOWHERE = (None, None, None)


def failure_record(failure: Failure, locate: Locate) -> FailureRecord:
    """A failure with the line of the spec's entry."""
    file, line, column = locate(failure.path) or _NOWHERE if failure.path else _NOWHERE
    return FailureRecord(
        kind=failure.kind,
        message=failure.message,
        task=failure.task,
        phase=failure.phase,
        iteration=failure.iteration,
        actor=failure.actor,
        node=failure.node,
        file=file,
        line=line,
        column=column,
        traceback=failure.traceback,
        waiting=list(failure.waiting),
    )
