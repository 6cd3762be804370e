"""Aligns clocks by what must be true of them: a torch trace's with the recorder's, another node's with the driver's."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cgspec.record import Record
from cgspec.timeline import Rows, Segment, label_of

Spans = Sequence[tuple[int, int]]
"""(start, end) in ns, in order of time."""


@dataclass(frozen=True)
class Alignment:
    """``offset`` ns lie between a trace's clock (Unix time) and the recorder's; it is right to within ``error`` ns."""

    offset: int
    error: int


def align(ranges: Mapping[str, Spans], tasks: Mapping[str, Rows], *, whole: bool = True) -> Alignment | None:
    """The offset between two clocks from the tasks that both timed; None where there is no such task.

    The worker opens a range just before it notes a task's start and closes it just after it noted the end, so with
    o = offset every pair says: range.start - task.start <= o <= range.end - task.end. The offset is the middle between
    the greatest lower and the least upper bound (as in Marzullo and Owicki, "Maintaining the Time in a Distributed
    System", 1983), the error is half of their distance. The last range of a task belongs to its last recorded
    iteration: a profiler starts late, and ends with the phase. Where the trace is not ``whole``, as many of the last
    iterations are taken to be missing as makes the error the least.
    """
    common = {name: spans for name, spans in ranges.items() if name in tasks and len(tasks[name])}
    if not common:
        return None
    most = 0 if whole else max(len(tasks[name]) - len(spans) for name, spans in common.items())
    found = [_shifted(common, tasks, missing) for missing in range(max(0, most) + 1)]
    return min(found, key=lambda each: each.error)


def _shifted(ranges: Mapping[str, Spans], tasks: Mapping[str, Rows], missing: int) -> Alignment:
    pairs = [pair for name, spans in ranges.items() for pair in _pairs(spans, tasks[name], missing)]
    low = max(seen - noted for (seen, _), (noted, _) in pairs)
    high = min(seen - noted for (_, seen), (_, noted) in pairs)
    return Alignment((low + high) // 2, abs(high - low) // 2)


def _pairs(spans: Spans, rows: Rows, missing: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    last = max(1, len(rows) - missing)
    for back in range(1, min(len(spans), last) + 1):
        yield spans[-back], (rows.start[last - back], rows.end[last - back])


def foreign(segment: Segment, nodes: Mapping[str, str | None]) -> dict[str, Alignment]:
    """The nodes whose clock is not the driver's, with what has to be added to it.

    CLOCK_MONOTONIC begins at a machine's start. No task starts before its iteration was submitted and none ends after
    its results were at hand, so with o = offset every task and iteration says: submitted - start <= o <= at hand - end.
    A node is foreign where 0 is outside of what its tasks say; then the offset is the middle of it. Its error is about
    half of an iteration's latency, less the time that the node's tasks take up.

    Args:
        nodes: the node of each task.
    """
    driver = segment.driver.by_iteration()
    found = {}
    for node in dict.fromkeys(nodes.values()):
        bounds = [
            (driver[i][0] - start, driver[i][1] - end)
            for task, rows in segment.tasks.items()
            if nodes.get(task) == node
            for i, start, end in zip(rows.iteration, rows.start, rows.end, strict=True)
            if i in driver and driver[i][1]
        ]
        low, high = max((low for low, _ in bounds), default=0), min((high for _, high in bounds), default=0)
        if node is not None and not low <= 0 <= high:
            found[node] = Alignment((low + high) // 2, abs(high - low) // 2)
    return found


def on_the_drivers_clock(segment: Segment, record: Record) -> tuple[Segment, dict[str, Alignment]]:
    """The segment with all times by the driver's clock, and the nodes whose times were moved, by the run or here.

    A run moves them by what it has measured (``clocks.settle``); where it could not ask a node, it is done here.
    """
    nodes = {task: actor.node for actor in record.actors for task in actor.tasks}
    moved = foreign(segment, nodes)
    phases = [phase for phase in record.phases if label_of(phase) == segment.label]
    asked = {node: Alignment(c.offset_ns, c.error_ns) for phase in phases[:1] for node, c in phase.clocks.items()}
    offsets = {task: moved[node].offset for task, node in nodes.items() if node is not None and node in moved}
    tasks, device = (
        {task: _moved(rows, offsets.get(task, 0)) for task, rows in times.items()}
        for times in (segment.tasks, segment.device)
    )
    channels = {key: _moved(rows, offsets.get(key[0], 0)) for key, rows in segment.channels.items()}
    return Segment(segment.label, tasks, segment.driver, device, channels), {**asked, **moved}


def _moved(rows: Rows, by: int) -> Rows:
    if not by:
        return rows
    return Rows(rows.iteration, array("q", [at + by for at in rows.start]), array("q", [at + by for at in rows.end]))
