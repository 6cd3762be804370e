"""A second, slow and simple reading of the language: from a spec's plain data to what a vector holds.

Written from the language's definition and on purpose unlike ``cgspec.expand``: members are found by filtering all names
of a family, the order by looking again and again for the first task that is ready. It judges nothing: specs are valid.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

KINDS = ("allreduce", "allgather", "reducescatter")
Axes = dict[str, int]
Place = dict[str, int]
Read = tuple[str, str | None]
"""A member's name and the return that is read of it."""


class Stuck(Exception):
    """Nothing that is left can be bound."""


def is_selector(word: str) -> bool:
    return word == "*" or re.fullmatch(r"-?\d+", word) is not None


class Naive:
    """The expansion of one spec."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.tasks: dict[str, dict[str, Any]] = spec["tasks"]
        self.places: dict[str, Place] = {}
        """Per task member, its place on the axes of its family."""
        self.family: dict[str, str] = {}
        for name in self.tasks:
            for place in self.members(self.axes(name)):
                member = self.named(name, place)
                self.places[member] = place
                self.family[member] = name

    def members(self, axes: Axes) -> list[Place]:
        return [dict(zip(axes, at, strict=True)) for at in itertools.product(*map(range, axes.values()))]

    def named(self, name: str, place: Place) -> str:
        return ".".join([name, *map(str, place.values())])

    # families

    def actor_axes(self, name: str) -> Axes:
        return dict(self.spec["actors"][name].get("axes", {}))

    def picked(self, task: str) -> tuple[str, Place]:
        """The actor that a task calls, and where the call picks a member."""
        actor, *selectors, _method = self.tasks[task]["call"].split(".")
        axes = self.actor_axes(actor)
        pairs = zip(axes.items(), selectors, strict=False)
        return actor, {axis: int(word) % size for (axis, size), word in pairs if word != "*"}

    def kind(self, task: str) -> str:
        return next((kind for kind in KINDS if kind in self.tasks[task]), "call")

    def axes(self, name: str) -> Axes:
        """The axes of a task, or of an input (``inputs.x``)."""
        if name.startswith("inputs."):
            value = self.spec["inputs"][name.removeprefix("inputs.")]
            return dict(value["axes"]) if isinstance(value, dict) else {}
        task = self.tasks[name]
        if "call" in task:
            actor, picks = self.picked(name)
            kept = {axis: size for axis, size in self.actor_axes(actor).items() if axis not in picks}
            return {**kept, **task.get("axes", {})}
        operands, members = self.operands(name)
        axes = {
            axis: size for axis, size in self.axes(self.parse(operands[0])[0]).items() if self.keeps(operands[0], axis)
        }
        return {"member": sum(map(self.count, operands)), **axes} if members else axes

    def operands(self, task: str) -> tuple[list[Any], bool]:
        raw = self.tasks[task][self.kind(task)]
        if isinstance(raw, dict) and "members" in raw:
            return raw["members"], True
        return (raw if isinstance(raw, list) else [raw]), False

    # references

    def parse(self, ref: Any) -> tuple[str, dict[str, Any], str | None]:
        """Family, what each axis does (a number, an expression or ``*``; kept ones are left out), and return."""
        text = ref if isinstance(ref, str) else ref.get("$at", ref.get("$all"))
        words = text.split(".")
        name = words.pop(0)
        if name == "inputs":
            name += "." + words.pop(0)
        ret = words.pop() if words and not is_selector(words[-1]) else None
        axes = self.axes(name)
        does: dict[str, Any] = dict.fromkeys(axes, "*") if words == ["*"] else dict(zip(axes, words, strict=False))
        if isinstance(ref, dict) and "$at" in ref:
            does |= {key: value for key, value in ref.items() if key != "$at"}
        if isinstance(ref, dict) and "$all" in ref:
            axis = ref["axis"]
            does |= dict.fromkeys(axis if isinstance(axis, list) else [axis], "*")
        return name, does, ret

    def keeps(self, ref: Any, axis: str) -> bool:
        return axis not in self.parse(ref)[1]

    def count(self, ref: Any) -> int:
        name, does, _ = self.parse(ref)
        total = 1
        for axis, size in self.axes(name).items():
            total *= size if does.get(axis) == "*" else 1
        return total

    def gathers(self, ref: Any) -> bool:
        for mark, edge in (("$prev", "first"), ("$next", "last")):
            if isinstance(ref, dict) and mark in ref:
                return self.gathers(ref[mark]) or self.gathers(ref[edge])
        return "*" in self.parse(ref)[1].values()

    def read(self, ref: Any, own: Place, sizes: Axes, at: Place | None = None) -> list[Read]:
        """What a reference reads for a reader at the place ``own``, looked at from ``at``."""
        at = own if at is None else at
        for mark, edge, step in (("$prev", "first", -1), ("$next", "last", 1)):
            if isinstance(ref, dict) and mark in ref:
                axis = ref["axis"]
                there = at[axis] + step
                if 0 <= there < sizes[axis]:
                    return self.read(ref[mark], own, sizes, {**at, axis: there})
                return self.read(ref[edge], own, sizes)
        name, does, ret = self.parse(ref)
        axes = self.axes(name)
        wanted = {axis: self.wanted(does.get(axis), axis, size, at, sizes) for axis, size in axes.items()}
        found = [p for p in self.members(axes) if all(wanted[axis] in ("*", p[axis]) for axis in axes)]
        return [(self.named(name, place), ret) for place in found]

    def wanted(self, does: Any, axis: str, size: int, at: Place, sizes: Axes) -> int | str:
        if does is None:
            return at[axis]
        return "*" if does == "*" else int(self.number(does, at, sizes)) % size

    def number(self, value: Any, at: Place, sizes: Axes) -> float:
        if isinstance(value, dict):
            text = re.sub(r"index\.(\w+)", lambda match: str(at[match[1]]), value["$expr"])
            text = re.sub(r"size\.(\w+)", lambda match: str(sizes[match[1]]), text)
            return float(eval(text))
        return float(value)

    # members

    def known(self, member: str) -> tuple[Place, Axes]:
        """Every index and size that a task member knows, picked axes included."""
        task, place = self.family[member], self.places[member]
        if self.kind(task) != "call":
            return place, self.axes(task)
        actor, picks = self.picked(task)
        return {**picks, **place}, {**self.actor_axes(actor), **self.axes(task)}

    def actor(self, member: str) -> str:
        task = self.family[member]
        if self.kind(task) != "call":
            return self.actor(self.arguments(member)[0][2][0][0])
        name, _ = self.picked(task)
        place, _ = self.known(member)
        return self.named(name, {axis: place[axis] for axis in self.actor_axes(name)})

    def arguments(self, member: str) -> list[tuple[str | int, bool, list[Read]]]:
        """(name or position, whether it is a list, what is read)."""
        task = self.family[member]
        place, sizes = self.known(member)
        if self.kind(task) != "call":
            operands, members = self.operands(task)
            reads = [read for operand in operands for read in self.read(operand, place, sizes)]
            mine = [reads[place["member"]]] if members else reads
            return [(n, False, [read]) for n, read in enumerate(mine)]
        raw = self.tasks[task].get("in", {})
        if isinstance(raw, dict):
            return [(name, *self.delivered(value, place, sizes)) for name, value in raw.items()]
        found: list[tuple[str | int, bool, list[Read]]] = []
        for value in raw:
            _, reads = self.delivered(value, place, sizes)
            packs = [reads] if isinstance(value, list) else [[read] for read in reads]
            for pack in packs:
                found.append((len(found), isinstance(value, list), pack))
        return found

    def delivered(self, value: Any, place: Place, sizes: Axes) -> tuple[bool, list[Read]]:
        items = value if isinstance(value, list) else [value]
        as_list = isinstance(value, list) or any(map(self.gathers, items))
        return as_list, [read for item in items for read in self.read(item, place, sizes)]

    def groups(self) -> list[tuple[str, list[str]]]:
        found: dict[tuple[str, str], list[str]] = {}
        for member, task in self.family.items():
            if self.kind(task) == "call":
                continue
            members = self.operands(task)[1]
            said = self.tasks[task].get("axis", list(self.axes(task)))
            over = ["member"] if members else said if isinstance(said, list) else [said]
            rest = {axis: index for axis, index in self.places[member].items() if axis not in over}
            found.setdefault((task, str(rest)), []).append(member)
        return [(task, members) for (task, _), members in found.items()]

    def orders(self) -> dict[str, list[str]]:
        actors = [
            self.named(name, place) for name in self.spec["actors"] for place in self.members(self.actor_axes(name))
        ]
        found: dict[str, list[str]] = {actor: [] for actor in actors}
        for member in self.family:
            found[self.actor(member)].append(member)
        return {actor: sorted(own, key=self.slot) for actor, own in found.items()}

    def slot(self, member: str) -> float:
        return self.number(self.tasks[self.family[member]].get("slot", 0), *self.known(member))

    def bind(self) -> list[str]:
        """Looks again and again for the first vertex all of whose predecessors are bound.

        Raises:
            Stuck: there is none.
        """
        together = {member: members for _, members in self.groups() for member in members}
        before: dict[str, set[str]] = {member: set() for member in self.family}
        for member in self.family:
            for _, _, reads in self.arguments(member):
                before[member].update(name for name, _ in reads if not name.startswith("inputs."))
        for order in self.orders().values():
            for n, member in enumerate(order):
                before[member].update(order[:n])
        bound: list[str] = []
        while len(bound) < len(self.family):
            for member in self.family:
                vertex = together.get(member, [member])
                if member not in bound and all(b in bound for one in vertex for b in before[one]):
                    bound += vertex
                    break
            else:
                raise Stuck
        return bound

    # the whole

    def described(self) -> dict[str, Any]:
        """The form of the vectors.

        Raises:
            Stuck: the orders and the data contradict each other.
        """
        actors = {member: self.actor(member) for member in self.family}
        edges = [
            {
                "from": name,
                "return": ret,
                "to": to,
                "arg": arg,
                "list": is_list,
                "crosses": self.crosses(name, actors[to]),
            }
            for to in self.family
            for arg, is_list, reads in self.arguments(to)
            for name, ret in reads
        ]
        return {
            "actors": self.orders(),
            "bind": self.bind(),
            "edges": edges,
            "outputs": self.outputs(),
            "groups": [{"task": task, "members": members} for task, members in self.groups()],
            "effects": [m for m, task in self.family.items() if self.tasks[task].get("returns") == []],
            "unread": self.unread(),
            "error": None,
        }

    def crosses(self, name: str, reader: str) -> bool:
        return not name.startswith("inputs.") and self.actor(name) != reader

    def outputs(self) -> dict[str, str | list[str]]:
        raw = self.spec["outputs"]
        single = isinstance(raw, str) or any(key.startswith("$") for key in raw if isinstance(raw, dict))
        if single:
            name = self.parse(raw)[0].removeprefix("inputs.")
            raw = {name: raw}
        found: dict[str, str | list[str]] = {}
        if isinstance(raw, dict):
            for name, value in raw.items():
                as_list, reads = self.delivered(value, {}, {})
                found[name] = [self.shown(read) for read in reads] if as_list else self.shown(reads[0])
            return found
        reads = [read for value in raw for read in self.delivered(value, {}, {})[1]]
        return {str(n): self.shown(read) for n, read in enumerate(reads)}

    def shown(self, read: Read) -> str:
        return read[0] if read[1] is None else f"{read[0]}.{read[1]}"

    def unread(self) -> list[str]:
        read = {self.shown(one) for member in self.family for _, _, reads in self.arguments(member) for one in reads}
        for value in self.outputs().values():
            read.update(value if isinstance(value, list) else [value])
        found = []
        for member, task in self.family.items():
            returns = self.tasks[task].get("returns")
            names = [member] if returns is None else [f"{member}.{ret}" for ret in returns]
            found += [name for name in names if name not in read and member not in read]
        return found
