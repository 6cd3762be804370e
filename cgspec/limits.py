"""The graph's own limits: what latency and throughput could be if nothing but its tasks took time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cgspec.graph import Graph, TaskRef


@dataclass(frozen=True)
class Limits:
    """The limits that the tasks' own busy times set, in ns.

    Attributes:
        critical_path: no iteration can be faster; ``path`` holds its tasks, in order.
        busiest: the busy time per iteration of ``actor``: no two iterations can be closer, so the throughput is at most
            1 / busiest.
    """

    critical_path: float
    path: tuple[str, ...]
    busiest: float
    actor: str


def limits(graph: Graph, busy: Mapping[int, float], mean: Mapping[int, float]) -> Limits | None:
    """Both limits from the busy ns of each task (by its index); None where no task has any.

    - Critical path: the longest path through the graph, where a task follows everything that it reads and the task
      before it on its actor, and each vertex weighs ``busy``, its median: finish(t) = busy(t) + max(finish(before t)).
      Transfers weigh nothing.
    - Busiest actor: max over actors of the sum of its tasks' ``mean``: what counts over many iterations.
    - A collective's members wait for each other, and that wait is in their busy time. Each member is therefore
      weighed with the least of its group, that of the member that came last, and they all end together.
    """
    if not busy or not any(busy.values()):
        return None
    finish, previous = _longest_paths(graph, _weights(graph, busy))
    last = max(range(len(graph.tasks)), key=lambda number: finish[number])
    weight = _weights(graph, mean)
    totals = {actor.name: sum(weight[number] for number in actor.tasks) for actor in graph.actors}
    slowest = max(totals, key=lambda name: totals[name])
    path = tuple(graph.tasks[number].name for number in _trace(last, previous))
    return Limits(finish[last], path, totals[slowest], slowest)


def _weights(graph: Graph, busy: Mapping[int, float]) -> list[float]:
    weight = [float(busy.get(number, 0.0)) for number in range(len(graph.tasks))]
    for group in graph.groups:
        least = min(weight[number] for number in group.members)
        for number in group.members:
            weight[number] = least
    return weight


def _predecessors(graph: Graph) -> list[set[int]]:
    """What each task has to wait for: what it reads, and what its actor does before it."""
    before: list[set[int]] = [set() for _ in graph.tasks]
    for number, task in enumerate(graph.tasks):
        before[number].update(ref.task for arg in task.args for ref in arg.refs if isinstance(ref, TaskRef))
    for actor in graph.actors:
        for earlier, later in zip(actor.tasks, actor.tasks[1:], strict=False):
            before[later].add(earlier)
    return before


def _longest_paths(graph: Graph, weight: list[float]) -> tuple[list[float], list[int | None]]:
    """For each task when it ends at the earliest, and the task that it waited for."""
    before = _predecessors(graph)
    finish = [0.0] * len(graph.tasks)
    previous: list[int | None] = [None] * len(graph.tasks)
    done: set[int] = set()
    for number in graph.bind:
        if number in done:
            continue
        task = graph.tasks[number]
        members = (number,) if task.collective is None else graph.groups[task.collective.group].members
        waits = {earlier for member in members for earlier in before[member]}
        latest = max(sorted(waits), key=lambda earlier: finish[earlier], default=None)
        for member in members:
            finish[member] = weight[member] + (0.0 if latest is None else finish[latest])
            previous[member] = latest
        done.update(members)
    return finish, previous


def _trace(last: int, previous: list[int | None]) -> list[int]:
    path: list[int] = []
    number: int | None = last
    while number is not None:
        path.append(number)
        number = previous[number]
    return path[::-1]


def advice(found: Limits, *, latency: float, throughput: float | None, inflight: int, share: float | None) -> str:
    """What bounds the run, in one sentence.

    Args:
        latency: its median, in ns.
        throughput: iterations per second.
        share: how much of the time the busiest actor was busy, 0 to 1.
    """
    bound = 1e9 / found.busiest if found.busiest else 0.0
    if share is not None and share >= 0.8:
        return (
            f"{found.actor} is busy {share * 100:.0f}% of the time: it bounds throughput at {bound:,.0f}/s; "
            "nothing else matters until it is faster"
        )
    part = found.critical_path / latency * 100 if latency else 0.0
    if inflight == 1:
        rest = "" if part >= 80 else "; the rest is sending, waiting and Ray's own work"
        gain = bound / throughput if throughput else 0.0
        more = f". With more run.inflight {found.actor} would allow up to {bound:,.0f}/s" if gain >= 1.2 else ""
        return f"the tasks on the critical path take {part:.0f}% of the latency{rest}{more}"
    reached = throughput / bound * 100 if throughput and bound else 0.0
    return (
        f"throughput is {reached:.0f}% of what {found.actor} would allow ({bound:,.0f}/s): sending and waiting bound it"
    )
