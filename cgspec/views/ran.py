"""One iteration of a run as it happened: for each task, when it started and ended, from the flight recorder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cgspec.alignment import on_the_drivers_clock
from cgspec.analysis import percentile
from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.record import Record
from cgspec.timeline import Rows, Segment


@dataclass(frozen=True)
class Ran:
    """An iteration; ``spans``: (start, end) in ns from the first start, by task, for the tasks that were recorded."""

    iteration: int
    spans: Mapping[int, tuple[int, int]]

    @property
    def length(self) -> int:
        """The ns from the first start to the last end, at least 1."""
        return max(1, max((end for _, end in self.spans.values()), default=0))

    def idle_share(self, graph: Graph) -> float:
        """The share of the time, 0 to 1, in which an actor that has tasks runs none."""
        actors = sum(bool(actor.tasks) for actor in graph.actors)
        busy = sum(end - start for start, end in self.spans.values())
        return max(0.0, 1 - busy / (actors * self.length)) if actors else 0.0


def find_ran(graph: Graph, record: Record, segment: Segment | None, iteration: int | None = None) -> Ran:
    """The iteration with that number, or the one whose latency is nearest to the median.

    Raises:
        UsageError: the recorder does not hold it.
    """
    if segment is None or not segment.busy:
        raise UsageError(f"the run {record.id} holds no times of its tasks: there is no timeline of its measure phase")
    segment, _ = on_the_drivers_clock(segment, record)
    numbers = {task.name: number for number, task in enumerate(graph.tasks) if task.name in segment.busy}
    held = _held([segment.busy[name] for name in numbers])
    if iteration is None:
        iteration = _middle(held, segment)
    if iteration not in held:
        raise UsageError(f"the run {record.id} has no times of iteration {iteration}: {_told(held)}")
    spans = {number: segment.busy[name].by_iteration()[iteration] for name, number in numbers.items()}
    first = min(start for start, _ in spans.values())
    return Ran(iteration, {number: (start - first, end - first) for number, (start, end) in spans.items()})


def _held(rows: list[Rows]) -> set[int]:
    """The iterations of which every recorded task has times."""
    return set.intersection(*(set(each.iteration) for each in rows)) if rows else set()


def _middle(held: set[int], segment: Segment) -> int:
    known = {i: end - start for i, (start, end) in segment.driver.by_iteration().items() if end and i in held}
    if not known:
        return min(held, default=0)
    middle = percentile(sorted(known.values()), 0.5)
    return min(known, key=lambda i: (abs(known[i] - middle), i))


def _told(held: set[int]) -> str:
    return f"it holds {min(held)} to {max(held)}" if held else "it holds none"
