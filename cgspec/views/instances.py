"""A scene that shows every instance of a graph: one box per task, one cluster per actor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cgspec.graph import Actor, Edge, Graph, Input, InputRef, Pack, Ref, TaskRef
from cgspec.views.facts import (
    actor_facts,
    count_of,
    drop_empty,
    input_facts,
    task_facts,
    tell_actor,
    tell_carrier,
    tell_constants,
    tell_payload,
    tell_size,
    tell_totals,
)
from cgspec.views.palette import Carrier
from cgspec.views.scene import Box, Cluster, Link, Port, Scene


def draw_instances(graph: Graph, *, constants: bool = False) -> Scene:
    """The whole graph; ``constants``: whether boxes list the constants of their tasks."""
    hues = family_hues(graph)
    lost = set(graph.unread)
    clusters = tuple(
        _cluster(graph, number, actor, hues[actor.family], lost, constants) for number, actor in enumerate(graph.actors)
    )
    terminals = (*_inputs(graph, constants), *_plates(graph), *_outputs(graph))
    links = (*_edges(graph), *_joints(graph), *_results(graph))
    return Scene(graph.name, tell_totals(graph), clusters, terminals, links)


def family_hues(graph: Graph) -> dict[str, int]:
    """The position of each actor family, which gives it its colour."""
    hues: dict[str, int] = {}
    for actor in graph.actors:
        hues.setdefault(actor.family, len(hues))
    return hues


def _cluster(
    graph: Graph, number: int, actor: Actor, hue: int, lost: set[tuple[int, int | None]], constants: bool
) -> Cluster:
    boxes: list[Box] = []
    for place, task in enumerate(actor.tasks):
        box = _task(graph, task, place, lost, constants)
        boxes.append(box)
    return Cluster(
        f"a{number}", actor.name, tell_actor(actor), hue, tuple(boxes), actor.family, facts=actor_facts(actor)
    )


def _task(graph: Graph, number: int, place: int, lost: set[tuple[int, int | None]], constants: bool) -> Box:
    task = graph.tasks[number]
    order = graph.actors[task.actor].tasks
    effect = task.returns == ()
    return Box(
        id=f"t{number}",
        kind="task",
        name=task.name,
        note=task.label,
        family=task.family,
        lines=tell_constants(task.consts) if constants else (),
        ports=tuple(Port(name, (number, ret) in lost) for ret, name in enumerate(task.returns or ())),
        role="effect" if effect else "unread" if (number, None) in lost else "plain",
        after=f"t{order[place - 1]}" if place and not task.args else None,
        facts=task_facts(graph, task, place),
    )


def _inputs(graph: Graph, constants: bool) -> Iterator[Box]:
    for number, item in enumerate(graph.inputs):
        lines = (str(item.value),) if constants else ()
        yield Box(f"i{number}", "input", item.name, "input", item.family, lines, facts=input_facts(item))


def _outputs(graph: Graph) -> Iterator[Box]:
    for number, (name, value) in enumerate(graph.outputs):
        note = f"output, list of {len(value.items)}" if isinstance(value, Pack) else "output"
        yield Box(f"o{number}", "output", str(name), note, str(name))


def _plates(graph: Graph) -> Iterator[Box]:
    for number, group in enumerate(graph.groups):
        label = graph.tasks[group.members[0]].label
        facts = (("members", ", ".join(graph.tasks[member].name for member in group.members)),)
        size = count_of(len(group.members), "rank")
        yield Box(f"g{number}", "plate", label, size, group.family, facts=facts)


def box_of(ref: Ref) -> str:
    """The id of the box that a reference reads."""
    return f"i{ref.input}" if isinstance(ref, InputRef) else f"t{ref.task}"


def label_of(graph: Graph, carrier: Carrier, ref: Ref) -> str:
    """A link's label: how it travels and, between actors, the size that was declared."""
    payload = tell_payload(graph, ref)
    return carrier if payload is None or carrier in ("local", "host") else f"{carrier} {tell_size(payload.bytes)}"


def _edges(graph: Graph) -> Iterator[Link]:
    arguments: dict[tuple[Ref, int], list[Edge]] = {}
    for edge in graph.edges:
        arguments.setdefault((edge.source, edge.to), []).append(edge)
    for number, ((ref, to), edges) in enumerate(arguments.items()):
        carrier = tell_carrier(graph, edges[0])
        names = ", ".join(str(edge.arg) + (" (in a list)" if edge.in_list else "") for edge in edges)
        facts = {"from": graph.source_name(ref), "return": graph.return_name(ref) or "", "to": graph.tasks[to].name}
        facts |= {"argument": names, "transport": label_of(graph, carrier, ref)}
        yield Link(
            id=f"e{number}",
            source=box_of(ref),
            target=f"t{to}",
            carrier=carrier,
            label=label_of(graph, carrier, ref),
            port=port_of(ref),
            facts=drop_empty(facts),
        )


def port_of(ref: Ref) -> int | None:
    """The place of the return that a reference reads, where it reads one."""
    return ref.ret if isinstance(ref, TaskRef) else None


def _joints(graph: Graph) -> Iterator[Link]:
    for number, group in enumerate(graph.groups):
        for rank, member in enumerate(group.members):
            facts = (("collective", graph.tasks[member].label), ("member", graph.tasks[member].name), ("rank", str(rank)))
            yield Link(f"m{number}_{rank}", f"t{member}", f"g{number}", "group", joint_label(graph, member), facts=facts)


def joint_label(graph: Graph, member: int) -> str:
    """What is said where a member is joined to its collective: the transport and size that the spec declares."""
    task = graph.tasks[member]
    kind = task.transport.kind if task.transport is not None else ""
    size = tell_size(task.payload.bytes) if task.payload is not None else ""
    return " ".join(part for part in (kind, size) if part)


def _results(graph: Graph) -> Iterator[Link]:
    for number, (name, value) in enumerate(graph.outputs):
        refs = value.items if isinstance(value, Pack) else (value,)
        for place, ref in enumerate(dict.fromkeys(refs)):
            facts: Mapping[str, str] = {
                "from": graph.source_name(ref),
                "return": graph.return_name(ref) or "",
                "to": f"output {name}",
                "transport": "host",
            }
            yield Link(f"r{number}_{place}", box_of(ref), f"o{number}", "host", "host", port_of(ref), drop_empty(facts))
