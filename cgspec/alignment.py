"""Aligns the clock of a torch trace with the flight recorder's, by the tasks that both saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cgspec.timeline import Rows

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
