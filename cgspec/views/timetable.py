"""When each task would run if every task took one step: list scheduling by data edges and each actor's order."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.graph import Graph, TaskRef


def find_starts(graph: Graph) -> tuple[int, ...]:
    """The step, from 0, at which each task starts: what it reads is there, its actor is free, its group is ready."""
    starts = [0] * len(graph.tasks)
    free = [0] * len(graph.actors)
    for vertex in _vertices(graph):
        start = max(_ready(graph, task, starts, free) for task in vertex)
        for task in vertex:
            starts[task] = start
            free[graph.tasks[task].actor] = start + 1
    return tuple(starts)


def count_steps(starts: tuple[int, ...]) -> int:
    """How many steps the whole graph takes."""
    return max(starts, default=-1) + 1


def idle_share(graph: Graph, starts: tuple[int, ...]) -> float:
    """The share of steps, 0 to 1, in which an actor that has tasks runs none: a pipeline's bubble."""
    cells = sum(bool(actor.tasks) for actor in graph.actors) * count_steps(starts)
    return 1 - len(graph.tasks) / cells if cells else 0.0


def _vertices(graph: Graph) -> Iterator[tuple[int, ...]]:
    """Tasks in binding order, the members of a collective together; that order follows data and actors alike."""
    seen: set[int] = set()
    for task in graph.bind:
        if task not in seen:
            collective = graph.tasks[task].collective
            vertex = (task,) if collective is None else graph.groups[collective.group].members
            seen.update(vertex)
            yield vertex


def _ready(graph: Graph, task: int, starts: list[int], free: list[int]) -> int:
    refs = (ref for argument in graph.tasks[task].args for ref in argument.refs)
    known = (starts[ref.task] + 1 for ref in refs if isinstance(ref, TaskRef))
    return max([free[graph.tasks[task].actor], *known])
