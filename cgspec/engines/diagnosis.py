"""Why the graph ended: from Ray's exception to the actor that died, or the task whose result could not be sent."""

from __future__ import annotations

import time
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectStoreFullError, OutOfDiskError, RayTaskError

from cgspec import raynames
from cgspec.engines.actors import DEATHS, Actors
from cgspec.engines.failures import task_error
from cgspec.errors import Failure, NotAble, RunError, TaskRaised
from cgspec.graph import Graph, Path
from cgspec.invocation import Failed, FailedTask

FULL = (ObjectStoreFullError, OutOfDiskError)
SETTLE = 5.0
"""Seconds in which Ray tells what became of the actors, once the driver's wait has ended."""


def why(error: BaseException, graph: Graph, actors: Actors, compiled: Any) -> RunError:
    """The error of a run whose graph ended with Ray's ``error``."""
    if (failed := _failed_task(error)) is not None:
        return task_error(graph, failed, phase=actors.phase)
    loops = raynames.loop_refs(compiled) if compiled is not None else {}
    ended = _ended(loops)
    for number, handle in enumerate(actors.handles):
        if isinstance(ended.get(handle), DEATHS):
            return actors.died(number, ended[handle])
    for number, handle in enumerate(actors.handles):
        if isinstance(ended.get(handle), Exception):
            return _loop_error(graph, actors, number, ended[handle])
    if isinstance(error, DEATHS):
        return _unnamed_death(actors, error)
    if isinstance(cause := getattr(error, "cause", error), FULL):
        return _no_room(f"the graph's {'inputs' if compiled is not None else 'buffers'}", cause, actors)
    message = f"the graph ended: {type(error).__name__}: {_first_line(error)}"
    return TaskRaised(Failure("raised", message, phase=actors.phase))


def _ended(loops: dict[Any, Any]) -> dict[Any, Exception]:
    """Actor handle to what its loop ended with; waits a little until there is one."""
    deadline = time.monotonic() + SETTLE
    found: dict[Any, Exception] = {}
    while loops and not found and time.monotonic() < deadline:
        for handle, ref in loops.items():
            try:
                ray.get(ref, timeout=0)
            except GetTimeoutError:
                continue
            except Exception as error:
                found[handle] = error
        if not found:
            time.sleep(0.05)
    return found


def _failed_task(error: BaseException) -> Failed | None:
    cause = getattr(error, "cause", None)
    for found in (error, cause):
        if isinstance(found, FailedTask):
            return found.failed
    return None


def _loop_error(graph: Graph, actors: Actors, number: int, error: Exception) -> RunError:
    """An actor's loop ended with an exception: it left its last task, and then the result could not be sent."""
    if (failed := _failed_task(error)) is not None:
        return task_error(graph, failed, phase=actors.phase, node=actors.address(number))
    cause = getattr(error, "cause", None) if isinstance(error, RayTaskError) else None
    what = f"{type(cause).__name__}: {_first_line(cause)}" if cause is not None else _first_line(error)
    position = actors.positions()[number]
    order = graph.actors[number].tasks
    if not position.reachable or position.upcoming is None:
        failure = Failure("raised", f"actor {graph.actors[number].name}: its loop ended: {what}", phase=actors.phase)
        return TaskRaised(failure)
    place = order.index(position.upcoming)
    iteration = position.iteration - (1 if place == 0 else 0)
    kind = "unserialisable" if isinstance(cause, TypeError) else "raised"
    task = graph.tasks[order[place - 1]]
    if isinstance(cause, FULL):
        return _no_room(f"the result of task {task.name} in iteration {iteration}", cause, actors, path=task.path)
    failed = Failed(kind, what, order[place - 1], iteration)
    return task_error(graph, failed, phase=actors.phase, node=actors.address(number))


def _no_room(what: str, error: Exception, actors: Actors, *, path: Path = ()) -> NotAble:
    """Ray's object store is full, and so is the disk to which it turns then."""
    message = f"there is no room for {what}: Ray's object store is full, and the disk behind it ({_first_line(error)})"
    return NotAble(Failure("not-able", message, phase=actors.phase, path=path))


def _unnamed_death(actors: Actors, error: Exception) -> RunError:
    """A death before the loops ran: the first actor that does not answer."""
    seen = actors.positions()
    dead = next((position.actor for position in seen if not position.reachable), 0)
    return actors.died(dead, error)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
