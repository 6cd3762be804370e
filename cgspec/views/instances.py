"""A scene that shows every instance of a graph: one box per task, one cluster per actor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from cgspec.graph import Edge, Graph, InputRef, Pack, Ref, TaskRef
from cgspec.views.facts import (
    actor_facts,
    count_of,
    input_facts,
    task_facts,
    tell_actor,
    tell_carrier,
    tell_constants,
    tell_payload,
    tell_ref,
    tell_size,
    tell_totals,
    tell_value,
)
from cgspec.views.palette import Carrier
from cgspec.views.scene import WHOLE, Box, Cluster, Link, Port, Role, Scene


def draw_instances(graph: Graph, *, constants: bool = False) -> Scene:
    """The whole graph; ``constants``: whether boxes list the constants of their tasks."""
    hues, marks = family_hues(graph), find_marks(graph)
    clusters = tuple(
        _cluster(graph, number, hues[actor.family], marks, constants) for number, actor in enumerate(graph.actors)
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


@dataclass(frozen=True)
class Marks:
    """What a graph's tasks are marked with: ``lost``: (task, return) pairs that nobody reads; ``whole``: multi-return
    tasks that somebody reads as a tuple."""

    lost: frozenset[tuple[int, int | None]]
    whole: frozenset[int]

    def ports(self, graph: Graph, number: int) -> tuple[Port, ...]:
        """The returns of a multi-return task, and one more where it is read whole."""
        returns = graph.tasks[number].returns or ()
        ports = [Port(name, (number, ret) in self.lost) for ret, name in enumerate(returns)]
        return tuple([*ports, Port(WHOLE)] if number in self.whole else ports)

    def role(self, graph: Graph, number: int) -> Role:
        """How the outline of a task's box tells it apart."""
        if graph.tasks[number].returns == ():
            return "effect"
        return "unread" if (number, None) in self.lost else "plain"


def find_marks(graph: Graph) -> Marks:
    """Looks through all edges and outputs once."""
    refs = chain((edge.source for edge in graph.edges), graph.output_refs)
    whole = {ref.task for ref in refs if isinstance(ref, TaskRef) and ref.ret is None and graph.tasks[ref.task].returns}
    return Marks(frozenset(graph.unread), frozenset(whole))


def _cluster(graph: Graph, number: int, hue: int, marks: Marks, constants: bool) -> Cluster:
    actor = graph.actors[number]
    boxes = tuple(_task(graph, task, place, marks, constants) for place, task in enumerate(actor.tasks))
    names = (actor.name,)
    return Cluster(f"a{number}", actor.name, tell_actor(actor), hue, boxes, actor.family, names, actor_facts(actor))


def _task(graph: Graph, number: int, place: int, marks: Marks, constants: bool) -> Box:
    task = graph.tasks[number]
    order = graph.actors[task.actor].tasks
    return Box(
        id=f"t{number}",
        kind="task",
        name=task.name,
        note=task.label,
        family=task.family,
        lines=tell_constants(task.consts) if constants else (),
        ports=marks.ports(graph, number),
        role=marks.role(graph, number),
        members=(task.name,),
        after=f"t{order[place - 1]}" if place and not task.args else None,
        facts=task_facts(graph, number, place),
    )


def _inputs(graph: Graph, constants: bool) -> Iterator[Box]:
    for number, item in enumerate(graph.inputs):
        lines = (tell_value(item.family, item.value),) if constants else ()
        yield Box(
            f"i{number}", "input", item.name, "input", item.family, lines, members=(item.name,), facts=input_facts(item)
        )


def _outputs(graph: Graph) -> Iterator[Box]:
    for number, (name, value) in enumerate(graph.outputs):
        note = f"output, list of {len(value.items)}" if isinstance(value, Pack) else "output"
        yield Box(f"o{number}", "output", str(name), note, str(name), members=(str(name),))


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
        label, reader = label_of(graph, carrier, ref), graph.tasks[to].name
        facts = (("from", tell_ref(graph, ref)), ("to", reader), ("argument", names), ("transport", label))
        yield Link(
            id=f"e{number}",
            source=box_of(ref),
            target=f"t{to}",
            carrier=carrier,
            label=label,
            port=port_of(graph, ref),
            facts=facts,
        )


def port_of(graph: Graph, ref: Ref) -> int | None:
    """The place of the port that a reference reads, where what it reads has ports."""
    if isinstance(ref, InputRef) or not graph.tasks[ref.task].returns:
        return None
    return len(graph.tasks[ref.task].returns or ()) if ref.ret is None else ref.ret


def _joints(graph: Graph) -> Iterator[Link]:
    for number, group in enumerate(graph.groups):
        for rank, member in enumerate(group.members):
            task = graph.tasks[member]
            facts = (("collective", task.label), ("member", task.name), ("rank", str(rank)))
            label = joint_label(graph, member)
            yield Link(f"m{number}_{rank}", f"t{member}", f"g{number}", "group", label, facts=facts)


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
            source, port = box_of(ref), port_of(graph, ref)
            facts = (("from", tell_ref(graph, ref)), ("to", f"output {name}"), ("transport", "host"))
            yield Link(f"r{number}_{place}", source, f"o{number}", "host", "host", port, facts)
