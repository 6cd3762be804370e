"""Rules about collectives."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding
from cgspec.graph import TaskRef
from cgspec.rules.context import Context, Rule
from cgspec.rules.transports import actor_of


def same_actor(context: Context) -> Iterator[Finding]:
    """A collective whose group holds one actor twice."""
    graph = context.sound
    seen: set[str] = set()
    for group in graph.groups:
        actors: dict[int, str] = {}
        for number in group.members:
            task = graph.tasks[number]
            if task.actor in actors and group.family not in seen:
                seen.add(group.family)
                names = f"{actors[task.actor]} and {task.name}"
                message = f"{group.family} has {graph.actors[task.actor].name} in one group twice ({names})"
                why = "a member of a group is a process: each actor can be in it once"
                fix = "group over an axis of the actor, not of the task"
                yield Finding("same-actor", message, task.path, on="key", why=why, fix=fix)
            actors[task.actor] = task.name


def collective_no_gpu(context: Context) -> Iterator[Finding]:
    """A collective on actors that have no whole GPU each."""
    if context.spec.engine.kind != "compiled" or context.rehearse:
        return
    for name in context.wiring.groups:
        actor = actor_of(context, context.wiring.tasks[name])
        if actor is not None and actor.spec.num_gpus < 1 and ("actors", actor.name) not in context.catalogue.incomplete:
            kind = context.wiring.tasks[name].kind
            has = "no GPU" if actor.spec.num_gpus == 0 else f"{actor.spec.num_gpus:g} of a GPU"
            message = f"{name} is an {kind} on {actor.name}, which has {has}"
            why = "the compiled engine's collectives are NCCL's, with one whole GPU for each member"
            fix = f"give {actor.name} num_gpus: 1 (`--rehearse` then runs it on CPUs), or use engine: direct"
            yield Finding("collective-no-gpu", message, ("tasks", name), on="key", why=why, fix=fix)


def uneven_scatter(context: Context) -> Iterator[Finding]:
    """A reducescatter whose operand cannot be cut into equal parts."""
    graph = context.sound
    seen: set[str] = set()
    for group in graph.groups:
        task = graph.tasks[group.members[0]]
        if task.collective is None or task.collective.kind != "reducescatter" or group.family in seen:
            continue
        for argument in task.args:
            for ref in argument.refs:
                assert isinstance(ref, TaskRef)
                operand, parts = graph.tasks[ref.task], len(group.members)
                shape = operand.payload.shape if operand.payload is not None else None
                if shape and shape[0] % parts:
                    seen.add(group.family)
                    message = f"{group.family} scatters {shape[0]} rows of {operand.name} over {parts} members"
                    why = "a reducescatter gives every member an equal part of the first dimension"
                    fix = f"make the first dimension a multiple of {parts}"
                    yield Finding("uneven-scatter", message, task.path, on="key", why=why, fix=fix)


def continue_with_collective(context: Context) -> Iterator[Finding]:
    """``on_error: continue`` in a graph with a collective."""
    if context.spec.run.on_error == "continue" and context.wiring.groups:
        name = next(iter(context.wiring.groups))
        message = f"on_error: continue cannot be kept: a task that fails before {name} leaves its peers waiting"
        why = "Ray skips the failing member's part of the collective, and the others block for ever"
        yield Finding("continue-with-collective", message, ("run", "on_error"), why=why, fix="use on_error: stop")


RULES = (
    Rule("same-actor", same_actor, "graph"),
    Rule("collective-no-gpu", collective_no_gpu),
    Rule("uneven-scatter", uneven_scatter, "graph"),
    Rule("continue-with-collective", continue_with_collective),
)
