"""A scene that shows families: one stacked box per task family, one cluster per actor family, links merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from cgspec.graph import Edge, Graph, Index, InputRef, Pack, Ref
from cgspec.views.facts import (
    actor_facts,
    count_of,
    input_facts,
    task_facts,
    tell_actor,
    tell_carrier,
    tell_constants,
    tell_totals,
    tell_value,
)
from cgspec.views.instances import Marks, family_hues, find_marks, joint_label, label_of, port_of
from cgspec.views.palette import Carrier
from cgspec.views.scene import Box, Cluster, Facts, Link, Port, Role, Scene
from cgspec.views.selections import TIMES, Pair, tell_axes, tell_selection

MOST_OUTPUTS = 8
"""A longer list of outputs is drawn as one box."""

Key = TypeVar("Key")


def draw_families(graph: Graph, *, constants: bool = False) -> Scene:
    """The whole graph by families; ``constants``: whether boxes list the constants of their tasks."""
    return _Families(graph, constants).draw()


def gather(keys: Iterable[Key]) -> dict[Key, list[int]]:
    """The positions of each key, in order of first appearance."""
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return places


class _Families:
    """Knows which box each instance of a graph is in: tasks by (family, actor family), the others by family."""

    def __init__(self, graph: Graph, constants: bool) -> None:
        self.graph = graph
        self.constants = constants
        self.marks: Marks = find_marks(graph)
        self.task_keys = [(task.family, graph.actors[task.actor].family) for task in graph.tasks]
        self.tasks = gather(self.task_keys)
        self.places = {number: place for actor in graph.actors for place, number in enumerate(actor.tasks)}
        self.actors = gather(actor.family for actor in graph.actors)
        self.inputs = gather(item.family for item in graph.inputs)
        self.groups = gather(group.family for group in graph.groups)
        self.task_ids = {key: f"t{place}" for place, key in enumerate(self.tasks)}
        self.input_ids = {key: f"i{place}" for place, key in enumerate(self.inputs)}
        self.group_ids = {key: f"g{place}" for place, key in enumerate(self.groups)}
        listed = graph.output_form == "list" and len(graph.outputs) > MOST_OUTPUTS
        self.outputs = {"outputs": list(graph.outputs)} if listed else {str(out[0]): [out] for out in graph.outputs}

    def draw(self) -> Scene:
        hues = family_hues(self.graph)
        clusters = tuple(self.cluster(place, family, hues[family]) for place, family in enumerate(self.actors))
        terminals = (*self.input_boxes(), *self.plates(), *self.output_boxes())
        links = (*self.edges(), *self.joints(), *self.results())
        return Scene(self.graph.name, tell_totals(self.graph), clusters, terminals, links)

    def cluster(self, place: int, family: str, hue: int) -> Cluster:
        members = [self.graph.actors[number] for number in self.actors[family]]
        boxes = tuple(self.task_box(key) for key in self.tasks if key[1] == family)
        name = with_axes(family, (actor.index for actor in members))
        facts = merge_facts([actor_facts(actor) for actor in members])
        names = tuple(actor.name for actor in members)
        return Cluster(f"a{place}", name, tell_actor(members[0]), hue, boxes, family, names, facts)

    def task_box(self, key: tuple[str, str]) -> Box:
        numbers = self.tasks[key]
        members = [self.graph.tasks[number] for number in numbers]
        facts = merge_facts([task_facts(self.graph, number, self.places[number]) for number in numbers])
        return Box(
            id=self.task_ids[key],
            kind="task",
            name=with_axes(key[0], (task.index for task in members)),
            note=members[0].label,
            family=key[0],
            lines=_constant_lines([tell_constants(task.consts) for task in members]) if self.constants else (),
            ports=self.ports(numbers),
            members=tuple(task.name for task in members),
            role=self.role(numbers),
            after=self.after(key),
            facts=facts,
        )

    def ports(self, numbers: Sequence[int]) -> tuple[Port, ...]:
        """Those of the family; a return counts as unread where no member's is read."""
        ports = max((self.marks.ports(self.graph, number) for number in numbers), key=len)
        lost = self.marks.lost
        return tuple(
            Port(port.name, all((number, ret) in lost for number in numbers)) for ret, port in enumerate(ports)
        )

    def role(self, numbers: Sequence[int]) -> Role:
        roles = {self.marks.role(self.graph, number) for number in numbers}
        return roles.pop() if len(roles) == 1 else "plain"

    def after(self, key: tuple[str, str]) -> str | None:
        """The family that its actor runs before it, where no member reads anything."""
        first = self.tasks[key][0]
        order = self.graph.actors[self.graph.tasks[first].actor].tasks
        before = [self.task_keys[number] for number in order[: self.places[first]] if self.task_keys[number] != key]
        reads = any(self.graph.tasks[number].args for number in self.tasks[key])
        return self.task_ids[before[-1]] if before and not reads else None

    def input_boxes(self) -> Iterator[Box]:
        for family, numbers in self.inputs.items():
            members = [self.graph.inputs[number] for number in numbers]
            facts = merge_facts([input_facts(item) for item in members])
            lines = (tell_value(family, members[0].value),) if self.constants else ()
            name = with_axes(family, (item.index for item in members))
            names = tuple(item.name for item in members)
            yield Box(self.input_ids[family], "input", name, "input", family, lines, members=names, facts=facts)

    def plates(self) -> Iterator[Box]:
        for family, numbers in self.groups.items():
            sizes = sorted({len(self.graph.groups[number].members) for number in numbers})
            ranks = count_of(sizes[0], "rank") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} ranks"
            note = ranks if len(numbers) == 1 else f"{count_of(len(numbers), 'group')} of {ranks}"
            label = self.graph.tasks[self.graph.groups[numbers[0]].members[0]].label
            names = tuple(family for _ in numbers)
            yield Box(self.group_ids[family], "plate", label, note, family, members=names)

    def output_boxes(self) -> Iterator[Box]:
        for place, (name, outputs) in enumerate(self.outputs.items()):
            count = sum(len(value.items) if isinstance(value, Pack) else 1 for _, value in outputs)
            note = "output" if count == 1 else f"output, list of {count}"
            yield Box(f"o{place}", "output", name, note, name)

    def ref_id(self, ref: Ref) -> str:
        if isinstance(ref, InputRef):
            return self.input_ids[self.graph.inputs[ref.input].family]
        return self.task_ids[self.task_keys[ref.task]]

    def index(self, ref: Ref) -> Index:
        known = self.graph.inputs[ref.input] if isinstance(ref, InputRef) else self.graph.tasks[ref.task]
        return known.index

    def edges(self) -> Iterator[Link]:
        merged: dict[tuple[str, int | None, str, Carrier], list[Edge]] = {}
        for edge in self.graph.edges:
            reader = self.task_ids[self.task_keys[edge.to]]
            carrier = tell_carrier(self.graph, edge)
            key = (self.ref_id(edge.source), port_of(self.graph, edge.source), reader, carrier)
            merged.setdefault(key, []).append(edge)
        for place, ((source, port, target, carrier), edges) in enumerate(merged.items()):
            label = label_of(self.graph, carrier, edges[0].source)
            pairs = [(self.index(edge.source), self.graph.tasks[edge.to].index) for edge in edges]
            arguments = ", ".join(dict.fromkeys(str(edge.arg) for edge in edges))
            facts = (("argument", arguments), ("transport", label), *count_facts(pairs))
            yield Link(f"e{place}", source, target, carrier, merged_label(label, pairs), port, facts)

    def joints(self) -> Iterator[Link]:
        joined: dict[tuple[str, str], list[int]] = {}
        for group in self.graph.groups:
            for member in group.members:
                key = (self.task_ids[self.task_keys[member]], self.group_ids[group.family])
                joined.setdefault(key, []).append(member)
        for place, ((source, target), members) in enumerate(joined.items()):
            facts = (("members", str(len(members))),)
            yield Link(f"m{place}", source, target, "group", joint_label(self.graph, members[0]), facts=facts)

    def results(self) -> Iterator[Link]:
        for place, outputs in enumerate(self.outputs.values()):
            merged: dict[tuple[str, int | None], list[Ref]] = {}
            for _, value in outputs:
                for ref in value.items if isinstance(value, Pack) else (value,):
                    merged.setdefault((self.ref_id(ref), port_of(self.graph, ref)), []).append(ref)
            for number, ((source, port), refs) in enumerate(merged.items()):
                pairs: list[Pair] = [(self.index(ref), ()) for ref in refs]
                facts = (("transport", "host"), *count_facts(pairs))
                label = merged_label("host", pairs)
                yield Link(f"r{place}_{number}", source, f"o{place}", "host", label, port, facts)


def with_axes(family: str, indices: Iterable[Index]) -> str:
    """A family's name with its axes: ``fwd [pp=4 x mb=8]``."""
    return " ".join(part for part in (family, tell_axes(indices)) if part)


def merged_label(label: str, pairs: Sequence[Pair]) -> str:
    """A link's label with the number of edges that it stands for and which members they join."""
    times = f" {TIMES}{len(pairs)}" if len(pairs) > 1 else ""
    selection = tell_selection(pairs)
    return label + times + (f" ({selection})" if selection else "")


def count_facts(pairs: Sequence[Pair]) -> Facts:
    """How many edges a link stands for, and which members they join."""
    selection = tell_selection(pairs)
    return (("edges", str(len(pairs))),) + ((("reads", selection),) if selection else ())


def merge_facts(members: Sequence[Facts]) -> Facts:
    """The facts on which all members agree, and how many members there are."""
    common = [fact for fact in members[0] if all(fact in facts for facts in members[1:])]
    return (*common, ("members", str(len(members)))) if len(members) > 1 else members[0]


def _constant_lines(members: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    agreed = [line for line in members[0] if all(line in lines for lines in members[1:])]
    varied = [line.split(" = ")[0] + " varies" for line in members[0] if line not in agreed]
    return (*agreed, *varied)
