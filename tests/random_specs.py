"""Random valid specs for the property tests: families, selectors, neighbours, slots, returns and collectives.

Every reference that is made pairs with its reader, every input and task is read. Only the order may be impossible:
slots and references to later tasks are drawn freely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

Item = TypeVar("Item")
Axes = dict[str, int]


@dataclass
class Shell:
    """A task before it is wired.

    Attributes:
        known: every axis that ``index`` knows.
        group_axes: axes on which two members are on two actors.
        actors: the actors that it runs on.
    """

    name: str
    axes: Axes
    known: Axes
    spec: dict[str, Any]
    group_axes: list[str]
    actors: set[str]
    returns: list[str] | None = None


@dataclass
class Maker:
    """Draws one spec."""

    draw: Any
    sizes: Axes = field(default_factory=dict)
    actors: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    shells: list[Shell] = field(default_factory=list)

    def whole(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[self.whole(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.whole(1, 100) > 100 - percent

    def some(self, items: Sequence[str], most: int) -> list[str]:
        left, found = list(items), []
        for _ in range(self.whole(0, min(most, len(left)))):
            found.append(left.pop(self.whole(0, len(left) - 1)))
        return found

    def hire(self) -> None:
        """Draws the axes and the actors."""
        self.sizes = {axis: self.whole(1, 3) for axis in ("a", "b", "c", "mb")}
        for n in range(self.whole(1, 3)):
            axes = {axis: self.sizes[axis] for axis in self.some("abc", 2)}
            self.actors[f"w{n}"] = {"class": "actors.py:Part", "num_gpus": 1, **({"axes": axes} if axes else {})}

    def spec(self) -> dict[str, Any]:
        self.hire()
        self.inputs["x"] = 1
        if axes := {axis: self.sizes[axis] for axis in self.some(("a", "b", "mb"), 2)}:
            self.inputs["y"] = {"$each": 2, "axes": axes}
        slots = self.chance(40)
        for n in range(self.whole(1, 6)):
            self.shells.append(self.shell(f"t{n}"))
        for shell in self.shells:
            self.wire(shell, slots)
        tasks = {shell.name: shell.spec for shell in self.shells}
        outputs = self.outputs()
        return {"cgspec": 1, "actors": self.actors, "inputs": self.inputs, "tasks": tasks, "outputs": outputs}

    # tasks

    def shell(self, name: str) -> Shell:
        makers = [self.collective, self.members] if self.shells and self.chance(40) else []
        for make in makers:
            found = make(name)
            if found is not None:
                return found
        return self.call(name)

    def call(self, name: str) -> Shell:
        actor = self.one_of(list(self.actors))
        axes: Axes = self.actors[actor].get("axes", {})
        words, kept = [], dict(axes)
        for axis in list(axes)[: self.whole(0, len(axes))]:
            words.append(self.place(axes[axis]) if self.chance(60) else "*")
            if words[-1] != "*":
                del kept[axis]
        own = {axis: self.sizes[axis] for axis in self.some([a for a in ("mb", "c") if a not in axes], 2)}
        spec: dict[str, Any] = {"call": ".".join([actor, *words, "run"])}
        if own:
            spec["axes"] = own
        shell = Shell(name, {**kept, **own}, {**axes, **own}, spec, list(kept), {actor})
        if self.chance(30):
            shell.returns = ["u", "v"] if self.chance(80) else []
            spec["returns"] = shell.returns
        return shell

    def place(self, size: int) -> str:
        return str(self.whole(-size, size - 1))

    def operand(self, shell: Shell, picks: list[str], gathers: list[str]) -> Any | None:
        ret = f".{self.one_of(shell.returns)}" if shell.returns else ""
        return self.reference(
            shell.name, shell.axes, dict.fromkeys(picks, "pick") | dict.fromkeys(gathers, "*"), {}, ret
        )

    def collective(self, name: str) -> Shell | None:
        known = [s for s in self.shells if s.group_axes and s.returns != []]
        if not known:
            return None
        several = [shell for shell in known if shell.returns]
        source = self.one_of(several if several and self.chance(40) else known)
        over = self.some(source.group_axes, 2) or source.group_axes[:1]
        picks = self.some([axis for axis in source.axes if axis not in over], 1)
        kind = self.one_of(("allreduce", "allgather", "reducescatter"))
        axes = {axis: size for axis, size in source.axes.items() if axis not in picks}
        groups = [axis for axis in source.group_axes if axis in axes]
        if source.returns and not picks and self.chance(80):
            spec: dict[str, Any] = {kind: [f"{source.name}.{ret}" for ret in source.returns], "axis": over}
            spec["returns"] = ["p", "q"]
            return Shell(name, axes, axes, spec, groups, source.actors, ["p", "q"])
        operand = self.operand(source, picks, [])
        if operand is None:
            return None
        spec = {kind: operand, "axis": over[0] if len(over) == 1 else over}
        if len(axes) == 1 and self.chance(50):
            del spec["axis"]
        return Shell(name, axes, axes, spec, groups, source.actors)

    def members(self, name: str) -> Shell | None:
        first = self.one_of(self.shells)
        entries, kept, used, count = [], None, set[str](), 0
        for shell in [first, *[s for s in self.shells if s is not first]]:
            if shell.returns == [] or used & shell.actors or "member" in shell.axes:
                continue
            gathers = self.some(shell.group_axes, 1)
            left = {axis: size for axis, size in shell.axes.items() if axis not in gathers}
            if kept is not None and left != kept:
                continue
            if (operand := self.operand(shell, [], gathers)) is not None:
                entries.append(operand)
                kept, used = kept or left, used | shell.actors
                count += self.sizes[gathers[0]] if gathers else 1
        if not entries or kept is None:
            return None
        axes = {"member": count, **kept}
        return Shell(name, axes, axes, {"allreduce": {"members": entries}}, ["member"], used)

    # references

    def reference(self, name: str, axes: Axes, does: dict[str, str], known: Axes, ret: str = "") -> Any | None:
        """A reference that picks and gathers as ``does`` says and keeps the rest; None where it cannot be said."""
        kept = [axis for axis in axes if axis not in does]
        tail = len(axes) - len(kept)
        if list(axes)[tail:] == kept and not (tail == 1 and kept and list(does.values()) == ["*"]):
            words = ["*" if does[axis] == "*" else self.place(axes[axis]) for axis in list(axes)[:tail]]
            if self.chance(70) or "*" in does.values():
                return ".".join([name, *words]) + ret
        if "*" not in does.values():
            return {"$at": name + ret, **{axis: self.pick(axes[axis], known) for axis in does}} if does else name + ret
        if set(does.values()) == {"*"}:
            return {"$all": name + ret, "axis": list(does) if len(does) > 1 or self.chance(30) else next(iter(does))}
        return None

    def pick(self, size: int, known: Axes) -> Any:
        if known and self.chance(70):
            axis = self.one_of(list(known))
            return {"$expr": f"(index.{axis} + {self.whole(0, 2)} * size.{axis} + {self.whole(0, 2)}) % {size}"}
        return self.whole(-size, size - 1)

    def read(self, reader: Shell | None, depth: int = 0) -> Any:
        """A reference that pairs with a reader (outputs: None)."""
        axes: Axes = reader.axes if reader else {}
        name, source, ret = self.source(reader)
        if reader and axes and depth < 2 and self.chance(30 if depth == 0 else 40):
            neighbour = self.neighbour(reader, name, source, ret, depth)
            if neighbour is not None:
                return neighbour
        does = {}
        for axis in source:
            if axis not in axes or self.chance(25):
                does[axis] = "*" if self.chance(40) else "pick"
        said = self.reference(name, source, does, reader.known if reader else {}, ret)
        return f"{name}.*{ret}" if said is None else said

    def source(self, reader: Shell | None) -> tuple[str, Axes, str]:
        """What is read: an input, mostly an earlier task, seldom a later one."""
        at = self.shells.index(reader) if reader else len(self.shells)
        known = self.shells[:at] if self.chance(95) else self.shells
        known = [shell for shell in known if shell.returns != []]
        if not known or self.chance(30):
            name = self.one_of(list(self.inputs))
            value = self.inputs[name]
            return f"inputs.{name}", value["axes"] if isinstance(value, dict) else {}, ""
        shell = self.one_of(known)
        return shell.name, shell.axes, f".{self.one_of(shell.returns)}" if shell.returns and self.chance(70) else ""

    def neighbour(self, reader: Shell, name: str, source: Axes, ret: str, depth: int) -> Any | None:
        axis = self.one_of(list(reader.axes))
        if self.chance(40) and reader.returns is None:
            name, source, ret = reader.name, reader.axes, ""
        if axis not in source:
            return None
        does = {a: self.one_of(("*", "pick")) for a in source if a not in reader.axes}
        operand = self.reference(name, source, does, reader.known, ret)
        if operand is None:
            return None
        if depth == 0 and self.chance(25):
            operand = {"$prev": operand, "axis": axis, "first": self.read(reader, 2)}
        mark, edge = self.one_of((*[("$prev", "first")] * 4, ("$next", "last")))
        return {mark: operand, "axis": axis, edge: self.read(reader, depth + 1)}

    def wire(self, shell: Shell, slots: bool) -> None:
        if slots:
            terms = [f"{self.whole(-1, 3)} * index.{axis}" for axis in self.some(list(shell.known), 2)]
            place = 4 * self.shells.index(shell) if self.chance(85) else self.whole(0, 3)
            shell.spec["slot"] = {"$expr": " + ".join([*terms, str(place)])} if terms else place
        if "call" not in shell.spec:
            return
        values = [self.argument(shell) for _ in range(self.whole(1, 3))]
        named = self.chance(60)
        shell.spec["in"] = {f"p{n}": value for n, value in enumerate(values)} if named else values

    def argument(self, reader: Shell | None) -> Any:
        return [self.read(reader) for _ in range(self.whole(1, 2))] if self.chance(20) else self.read(reader)

    def outputs(self) -> Any:
        """Some references, and whatever nothing else reads."""
        drawn = [self.argument(None) for _ in range(self.whole(0, 2))]
        named = set(_named([*drawn, *(shell.spec for shell in self.shells)]))
        rest = [s.name + (".*" if s.axes else "") for s in self.shells if s.name not in named and s.returns != []]
        rest += [
            f"inputs.{name}" + (".*" if isinstance(value, dict) else "")
            for name, value in self.inputs.items()
            if f"inputs.{name}" not in named
        ]
        values = [*drawn, *rest] or ["inputs.x"]
        if len(values) == 1 and not isinstance(values[0], list) and self.chance(70):
            return values[0]
        if self.chance(50):
            return {f"o{n}": value for n, value in enumerate(values)}
        return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _named(data: Any) -> Iterator[str]:
    """The tasks and inputs that some data may name."""
    if isinstance(data, str):
        words = data.split(".")
        yield ".".join(words[: 1 + (words[0] == "inputs")])
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _named(item)


@st.composite
def specs(draw: Any) -> dict[str, Any]:
    """A valid spec as plain data."""
    return Maker(draw).spec()
