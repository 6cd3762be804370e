"""How much flows along each edge between actors, or how long it waits there: the width of its link in a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from cgspec.alignment import on_the_drivers_clock
from cgspec.graph import Graph, TaskRef
from cgspec.quantities import show_duration
from cgspec.record import Record
from cgspec.timeline import Segment
from cgspec.views.facts import tell_size

Pair = tuple[str, str]
"""The names of the task that gives, and of the one that reads."""

THINNEST, WIDEST = 1.2, 6.0
"""In points."""


@dataclass(frozen=True)
class Flows:
    """``values`` by edge: bytes where ``sized``, else ns of waiting; ``widest``: what the widest line stands for."""

    values: Mapping[Pair, float]
    sized: bool
    widest: float

    def width(self, value: float) -> float:
        """In points."""
        return THINNEST + (WIDEST - THINNEST) * (value / self.widest if self.widest else 0.0)

    def tell(self, value: float) -> str:
        """``8 MiB`` or ``1.2 ms``."""
        return tell_size(round(value)) if self.sized else show_duration(value / 1e9)

    @property
    def about(self) -> str:
        """What the width of a line says."""
        most = self.tell(max(self.values.values()))
        if self.sized:
            return f"the wider, the more bytes: up to {most}"
        return f"the wider, the longer until it is read: up to {most}"


def find_flows(graph: Graph, record: Record, segment: Segment | None) -> Flows | None:
    """Bytes where the spec declares any, else the time that results wait; None where neither is known.

    A wait is set against the longest busy time, so that lines are thin where there is little to wait for.
    """
    if sizes := dict(_sizes(graph)):
        return Flows(sizes, True, max(sizes.values()))
    waits = dict(_waits(graph, record, segment)) if segment is not None else {}
    busy = [task.busy_us.p50 * 1e3 for task in record.tasks.values() if task.busy_us is not None]
    return Flows(waits, False, max([*waits.values(), *busy])) if waits else None


def _pairs(graph: Graph) -> Iterator[tuple[TaskRef, int]]:
    for edge in graph.edges:
        if edge.crosses and isinstance(edge.source, TaskRef):
            yield edge.source, edge.to


def _sizes(graph: Graph) -> Iterator[tuple[Pair, float]]:
    for ref, to in _pairs(graph):
        payload = graph.tasks[ref.task].payload
        if payload is not None:
            yield (graph.tasks[ref.task].name, graph.tasks[to].name), float(payload.bytes)


def _waits(graph: Graph, record: Record, segment: Segment) -> Iterator[tuple[Pair, float]]:
    """The median, over iterations, of the ns between the end of the task that gives and the start of the one that
    reads: the transfer, and the time until the reader's actor is free."""
    moved, _ = on_the_drivers_clock(segment, record)
    held = {name: rows.by_iteration() for name, rows in moved.busy.items()}
    for ref, to in _pairs(graph):
        pair = graph.tasks[ref.task].name, graph.tasks[to].name
        given, read = held.get(pair[0], {}), held.get(pair[1], {})
        gaps = [max(0, read[i][0] - end) for i, (_, end) in given.items() if i in read]
        if gaps:
            yield pair, float(median(gaps))
