"""Turns what went wrong in a worker into the errors that a run ends with, in the user's words."""

from __future__ import annotations

from collections.abc import Mapping

from cgspec import usercode
from cgspec.errors import Failure, RunError, TaskRaised, unmade_error
from cgspec.graph import Graph
from cgspec.invocation import Failed, FailedTask, made_all
from cgspec.values import Scope, Value


def task_error(graph: Graph, failed: Failed, *, phase: str, node: str | None = None) -> TaskRaised:
    """The error of a task whose result there is not."""
    assert failed.task is not None
    task = graph.tasks[failed.task]
    actor = graph.actors[task.actor]
    return TaskRaised(
        Failure(
            kind=failed.kind.removesuffix("-result"),
            message=_sentence(graph, failed),
            task=task.name,
            phase=phase,
            iteration=failed.iteration,
            actor=actor.name,
            node=node,
            path=task.path,
            traceback=failed.trace,
        )
    )


def _sentence(graph: Graph, failed: Failed) -> str:
    assert failed.task is not None
    task = graph.tasks[failed.task]
    what = f"task {task.name} ({graph.actors[task.actor].name}.{task.label})"
    when = f" in iteration {failed.iteration}" if failed.iteration is not None else ""
    return {
        "raised": f"{what} raised{when}: {failed.message}",
        "arity": f"{what} has the wrong number of returns{when}: {failed.message}",
        "unserialisable": f"the result of {what}{when} cannot be sent to another process: {failed.message}",
        "unreadable-result": f"the result of {what}{when} cannot be read in the driver: {failed.message}",
        "unreadable": f"{what} got a value{when} that cannot be read in its process: {failed.message}",
    }.get(failed.kind, f"{what} failed{when}: {failed.message}")


def actor_error(graph: Graph, actor: int, failed: Failed, *, node: str | None = None) -> RunError:
    """The error of an actor that did not start: its code, its constructor, or a value that either was to get."""
    spec = graph.actors[actor]
    raised = failed.kind == "constructor"
    who, said = (f"{spec.name} ({spec.class_ref})", "its constructor raised: ") if raised else (spec.name, "")
    above = spec.path if failed.task is None else graph.tasks[failed.task].path
    return unmade_error(
        Failure(
            failed.kind,
            f"actor {who} did not start: {said}{failed.message}",
            phase="startup",
            actor=spec.name,
            node=node,
            path=(*above, *failed.below),
            traceback=failed.trace,
        )
    )


def call_error(graph: Graph, actor: int, method: str, failed: Failed, *, phase: str) -> TaskRaised:
    """The error of a plain call outside the graph."""
    spec = graph.actors[actor]
    message = f"the call of {spec.name}.{method} outside the graph raised: {failed.message}"
    return TaskRaised(Failure("raised", message, phase=phase, actor=spec.name, path=spec.path, traceback=failed.trace))


def input_error(graph: Graph, number: int, reason: str, *, phase: str, iteration: int) -> TaskRaised:
    """The error of an input that cannot be sent."""
    given = graph.inputs[number]
    message = f"input {given.name} of iteration {iteration} cannot be sent to the actors: {reason}"
    return TaskRaised(Failure("unserialisable", message, phase=phase, iteration=iteration, path=given.path))


def first_failed(graph: Graph, values: list[object]) -> Failed | None:
    """Of the failures among an iteration's values, the one that came first in the graph."""
    found = [value for value in values if type(value) is Failed and value.task is not None]
    if not found:
        return None
    places = {task: place for place, task in enumerate(graph.bind)}
    return min(found, key=lambda failed: places[failed.task or 0])


def made(graph: Graph, actor: int, key: str, values: Mapping[str, Value], device: str) -> dict[str, object]:
    """An actor's ``options`` or ``env``, made in the driver.

    Raises:
        RunError: one of them cannot be made.
    """
    what = {"env": "its environment variable {}", "options": "its option {}"}[key]
    try:
        return made_all(values, key, what, Scope(device=device, load=usercode.load))
    except FailedTask as error:
        raise actor_error(graph, actor, error.failed) from None


def environment(graph: Graph, actor: int, device: str) -> dict[str, str]:
    """The environment variables of an actor's process; yes and no are 1 and 0, as programs expect them."""
    found = made(graph, actor, "env", graph.actors[actor].env, device)
    return {name: str(int(value)) if isinstance(value, bool) else str(value) for name, value in found.items()}
