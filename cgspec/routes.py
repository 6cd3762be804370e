"""Which results of the direct engine go from actor to actor by Ray Direct Transport, and by which library."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from cgspec.graph import Graph, TaskRef

Library = Literal["gloo", "nccl"]


def routes_of(graph: Graph, *, rehearse: bool) -> dict[int, Library]:
    """By task, what carries the tensors of its results to other actors; the object store carries what is not here.

    ``accelerator`` is NCCL between actors with GPUs, gloo between actors without; ``auto`` is ``accelerator`` where all
    actors have GPUs, else the object store, as ``shm`` is. In a rehearsal NCCL's part is gloo's.
    """
    readers: dict[int, set[int]] = defaultdict(set)
    for edge in graph.edges:
        if edge.crosses and isinstance(edge.source, TaskRef):
            readers[edge.source.task].add(graph.tasks[edge.to].actor)
    found = {task: _route(graph, task, actors) for task, actors in readers.items()}
    return {task: "gloo" if rehearse else library for task, library in found.items() if library is not None}


def _route(graph: Graph, number: int, readers: set[int]) -> Library | None:
    task = graph.tasks[number]
    if task.transport is None or task.transport.kind == "shm":
        return None
    if all(graph.actors[actor].num_gpus >= 1 for actor in (task.actor, *readers)):
        return "nccl"
    return "gloo" if task.transport.kind == "accelerator" else None
