"""Rules about collectives."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding, Related
from cgspec.families import ActorFamily, TaskFamily
from cgspec.graph import TaskRef
from cgspec.rules.context import Context, Rule
from cgspec.rules.transports import actor_of
from cgspec.wiring import a_collective


def collective_no_gpu(context: Context) -> Iterator[Finding]:
    """A collective on actors that have no whole GPU each."""
    if context.spec.engine.kind != "compiled" or context.rehearse:
        return
    for name, group in context.wiring.groups.items():
        families = [operand.family for operand in group.operands if isinstance(operand.family, TaskFamily)]
        actors = {actor.name: actor for actor in (actor_of(context, family) for family in families) if actor}
        lacking = [actor for actor in actors.values() if actor.spec.num_gpus < 1 and _is_sure(context, actor)]
        if lacking:
            names = " and ".join(actor.name for actor in lacking)
            gpus = lacking[0].spec.num_gpus
            has = f"{'have' if len(lacking) > 1 else 'has'} {'no GPU' if gpus == 0 else f'{gpus:g} of a GPU'}"
            message = f"{name} is {a_collective(context.wiring.tasks[name].kind)} on {names}, which {has}"
            why = "the compiled engine's collectives are NCCL's, with one whole GPU for each member"
            fix = f"give {names} num_gpus: 1 (`--rehearse` then runs it on CPUs), or use engine: direct"
            made = tuple(Related(f"{actor.name} is here", ("actors", actor.name), "key") for actor in lacking)
            yield Finding("collective-no-gpu", message, ("tasks", name), on="key", why=why, fix=fix, related=made)


def _is_sure(context: Context, actor: ActorFamily) -> bool:
    return ("actors", actor.name) not in context.catalogue.incomplete


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
                    message = f"{group.family} scatters {shape[0]} rows of {operand.family} over {parts} members"
                    why = "a reducescatter gives every member an equal part of the first dimension"
                    fix = f"make the first dimension a multiple of {parts}"
                    made = (Related("its payload is declared here", (*operand.path, "payload")),)
                    yield Finding("uneven-scatter", message, task.path, on="key", why=why, fix=fix, related=made)


def continue_with_collective(context: Context) -> Iterator[Finding]:
    """``on_error: continue`` in a graph with a collective."""
    if context.spec.run.on_error == "continue" and context.wiring.groups:
        name = next(iter(context.wiring.groups))
        message = f"on_error: continue cannot be kept: a task that fails before {name} leaves its peers waiting"
        why = "Ray skips the failing member's part of the collective, and the others block for ever"
        made = (Related(f"{name} is here", ("tasks", name), "key"),)
        yield Finding(
            "continue-with-collective", message, ("run", "on_error"), why=why, fix="use on_error: stop", related=made
        )


RULES = (
    Rule("collective-no-gpu", collective_no_gpu),
    Rule("uneven-scatter", uneven_scatter, "graph"),
    Rule("continue-with-collective", continue_with_collective),
)
