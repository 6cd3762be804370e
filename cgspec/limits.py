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
            1 / busiest. ``task`` takes the most of it.
    """

    critical_path: float
    path: tuple[str, ...]
    busiest: float
    actor: str
    task: str = ""


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
    slowest = max(graph.actors, key=lambda actor: totals[actor.name])
    heaviest = max(slowest.tasks, key=lambda number: weight[number])
    path = tuple(graph.tasks[number].name for number in _trace(last, previous))
    return Limits(finish[last], path, totals[slowest.name], slowest.name, graph.tasks[heaviest].name)


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


BOUND = 0.8
"""Share of the busiest actor's time, and of the throughput that it allows, from which on it is what bounds the run."""


def advice(
    found: Limits,
    *,
    latency: float,
    throughput: float | None,
    inflight: int,
    share: float | None,
    parallel: bool = True,
) -> str:
    """What bounds the run and what to change first, in one sentence.

    The busiest actor bounds throughput where it is busy for most of the time *and* the run reaches most of what its
    own busy time allows: an actor that only waits for its peers in a collective is busy, and bounds nothing.

    Args:
        latency: its median, in ns.
        throughput: iterations per second.
        share: how much of the time the busiest actor was busy, 0 to 1.
        parallel: whether actors work at the same time; in the local engine they do not.
    """
    bound = 1e9 / found.busiest if found.busiest else 0.0
    reached = throughput / bound if throughput and bound else 0.0
    if share is not None and min(share, reached) >= BOUND:
        return (
            f"{found.actor} is busy {share * 100:.0f}% of the time: it bounds throughput at {_rate(bound)}; "
            "nothing else matters until it is faster"
        )
    if not parallel:
        return (
            f"one task follows the other here, so all of them count; where actors work at the same time {found.actor} "
            f"would bound throughput, at {_rate(bound)}"
        )
    if inflight == 1:
        return _unfilled(found, found.critical_path / latency if latency else 0.0, bound, reached)
    return (
        f"throughput is {reached * 100:.0f}% of what {found.actor} would allow ({_rate(bound)}): "
        "sending and waiting bound it"
    )


def _unfilled(found: Limits, part: float, bound: float, reached: float) -> str:
    """Of one iteration at a time, of whose latency the critical path is a ``part``."""
    rest = "" if part >= BOUND else "; the rest is sending, waiting and Ray's own work"
    more = f". With more run.inflight {found.actor} would allow up to {_rate(bound)}" if reached <= 1 / 1.2 else ""
    return f"the tasks on the critical path take {part * 100:.0f}% of the latency{rest}{more}"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
