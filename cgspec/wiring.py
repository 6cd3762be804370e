"""Who reads what, family by family: every ``in``, collective and output of a spec, read and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cgspec.diagnostics import Path
from cgspec.families import COLLECTIVES, MEMBER, Catalogue, TaskFamily, size_of
from cgspec.parsing import ValueReader
from cgspec.references import At, Broken, Reference, ReferenceReader, is_reference, leaves
from cgspec.spec import TaskSpec

KINDS = ("call", *COLLECTIVES)
_CALL_ONLY = ("axes", "in", "with")
_COLLECTIVE_ONLY = ("axis", "op")


@dataclass(frozen=True)
class Wire:
    """One entry of ``in`` or of ``outputs``.

    Attributes:
        name: the parameter's or output's name; None where the place in a list counts.
        items: what is read; ``listed``: whether the spec wrote a list.
    """

    name: str | None
    items: tuple[Reference, ...]
    listed: bool

    @property
    def is_list(self) -> bool:
        """Whether it arrives as one list when it is given by name."""
        return self.listed or any(item.gathered for item in self.items)

    @property
    def positions(self) -> int:
        """How many positions it takes in a positional list."""
        return 1 if self.listed else self.items[0].count


@dataclass(frozen=True)
class Group:
    """What a collective spans.

    Attributes:
        operands: one per fused operand; where ``members``, the entries that are grouped.
        axes: the operands' axes that a group runs over.
        members: whether the operands are members of the group rather than fused operands.
    """

    operands: tuple[At, ...]
    axes: tuple[str, ...]
    members: bool


@dataclass
class Wiring:
    """All families of a spec with what they read.

    Attributes:
        tasks: in file order; only those that could be read whole.
        wires: per call task, its ``in``; groups: per collective.
        outputs: what the driver gets, with ``form`` ``single``, ``list`` or ``map``.
        named: names of tasks, and of inputs as ``inputs.x``, that some reference names.
        broken: tasks of which something could not be read.
    """

    catalogue: Catalogue
    tasks: dict[str, TaskFamily] = field(default_factory=dict)
    wires: dict[str, tuple[Wire, ...]] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    outputs: tuple[Wire, ...] = ()
    form: str = "single"
    named: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)


def wire(catalogue: Catalogue, values: ValueReader) -> Wiring:
    """Reads every reference of a spec; what cannot be read becomes findings in the catalogue."""
    return _Wirer(catalogue, values).run()


class _Wirer:
    def __init__(self, catalogue: Catalogue, values: ValueReader) -> None:
        self.catalogue = catalogue
        self.wiring = Wiring(catalogue)
        self.families: dict[str, TaskFamily | None] = {}
        self.open: list[str] = []
        names = list(catalogue.spec.tasks)
        self.references = ReferenceReader(catalogue, values, self.family, names)

    def run(self) -> Wiring:
        wiring, spec = self.wiring, self.catalogue.spec
        for name in spec.tasks:
            family = self.family(name)
            if family is not None:
                wiring.tasks[name] = family
        for name in spec.tasks:
            family = wiring.tasks.get(name)
            if family is None:
                self._name_roughly(spec.tasks[name], name)
            elif family.kind == "call":
                wiring.wires[name] = tuple(self._in(family))
        wiring.outputs = tuple(self._outputs(spec.outputs))
        wiring.named = self.references.named
        return wiring

    def family(self, name: str) -> TaskFamily | None:
        """The task family of that name; None where there is none that can be spoken of."""
        if name in self.families:
            return self.families[name]
        task = self.catalogue.spec.tasks.get(name)
        if task is None:
            return None
        if name in self.open:
            chain = " -> ".join([*self.open[self.open.index(name) :], name])
            self.catalogue.report("cycle", f"collectives read each other: {chain}", ("tasks", name), on="key")
            return None
        self.open.append(name)
        try:
            family = self._make(name, task)
        except Broken:
            family = None
        self.open.pop()
        self.families[name] = family
        if family is None:
            self.wiring.broken.add(name)
        return family

    def _make(self, name: str, task: TaskSpec) -> TaskFamily | None:
        path: Path = ("tasks", name)
        kinds = [kind for kind in KINDS if kind in task.model_fields_set]
        if len(kinds) != 1:
            if ("tasks", name) not in self.catalogue.incomplete:
                said = f"has both {kinds[0]} and {kinds[1]}" if kinds else "says neither call nor a collective"
                self.catalogue.report(
                    "bad-task", f"{name} {said}; a task is exactly one of {', '.join(KINDS)}", path, on="key"
                )
            return None
        kind = kinds[0]
        misplaced = _COLLECTIVE_ONLY if kind == "call" else _CALL_ONLY
        given = {field.alias or key for key, field in TaskSpec.model_fields.items() if key in task.model_fields_set}
        for key in misplaced:
            if key in given:
                what = "calls a method" if kind == "call" else f"is an {kind}"
                self.catalogue.report("bad-task", f"{name} {what}, which takes no {key}", (*path, key), on="key")
        return self._call(name, task) if kind == "call" else self._collective(name, task, kind)

    def _call(self, name: str, task: TaskSpec) -> TaskFamily | None:
        path: Path = ("tasks", name)
        target = self.catalogue.target(task.call or "", (*path, "call"))
        if target is None:
            return None
        for axis in task.axes:
            if axis in target.actor.axes:
                message = (
                    f"{axis} is an axis of actor {target.actor.name} already; an axis of the task needs another name"
                )
                self.catalogue.report("axis-mismatch", message, (*path, "axes", axis), on="key")
                return None
        return TaskFamily(name, {**target.axes, **task.axes}, task, target, "call")

    def _collective(self, name: str, task: TaskSpec, kind: str) -> TaskFamily | None:
        path: Path = ("tasks", name, kind)
        raw = getattr(task, kind)
        if isinstance(raw, dict) and "members" in raw:
            group, axes = self._members(name, task, raw, path)
        else:
            group, axes = self._operands(name, task, raw, path)
        self._check_collective(name, task, kind, group)
        self.wiring.groups[name] = group
        return TaskFamily(name, axes, task, None, kind)  # type: ignore[arg-type]  # one of KINDS

    def _check_collective(self, name: str, task: TaskSpec, kind: str, group: Group) -> None:
        path: Path = ("tasks", name)
        if kind == "allgather" and task.op is not None:
            self.catalogue.report("bad-task", f"{name} is an allgather, which reduces nothing: no op", (*path, "op"))
        fused = not group.members and len(group.operands) > 1
        returns = task.returns
        if ("tasks", name) in self.catalogue.incomplete:
            return
        if fused and (returns is None or len(returns) != len(group.operands)):
            count, given = len(group.operands), "none" if returns is None else len(returns)
            message = (
                f"{name} fuses {count} operands and needs returns with {count} names, one for each; it has {given}"
            )
            self.catalogue.report("bad-task", message, (*path, "returns") if returns is not None else path, on="key")
            raise Broken
        if not fused and returns is not None:
            message = f"{name} has one operand, so its result has one value and no returns"
            self.catalogue.report("bad-task", message, (*path, "returns"), on="key")
            raise Broken

    def _operands(self, name: str, task: TaskSpec, raw: Any, path: Path) -> tuple[Group, dict[str, int]]:
        listed = isinstance(raw, list)
        items = list(raw) if isinstance(raw, list) else [raw]
        if not items:
            self._break("bad-task", f"{name} needs at least one operand", path)
        operands = [self._operand(item, (*path, n) if listed else path) for n, item in enumerate(items)]
        first = operands[0]
        for operand in operands[1:]:
            if operand.kept != first.kept or self._owner(operand) != self._owner(first):
                message = f"fused operands live on the same actors, and {operand.text} is not where {first.text} is"
                self._break("unequal-group", message, operand.path)
        return Group(tuple(operands), self._group_axes(name, task, first, path), False), dict(first.kept)

    def _group_axes(self, name: str, task: TaskSpec, operand: At, path: Path) -> tuple[str, ...]:
        axes = operand.kept
        where = ("tasks", name, "axis") if task.axis is not None else ("tasks", name)
        if task.axis is None:
            if len(axes) != 1:
                shown = f"has the axes {', '.join(axes)}: say which with axis" if axes else "has no axes"
                fix = "" if axes else "group tasks of differently named actors with {members: [a, b]}"
                self._break(
                    "missing-key", f"{name} groups over an axis, and {operand.text} {shown}", where, on="key", fix=fix
                )
            return tuple(axes)
        for axis in task.axis:
            if axis not in axes:
                shown = f"its axes are {', '.join(axes)}" if axes else "it has none"
                self._break("unknown-axis", f"{operand.text} has no axis {axis}; {shown}", where)
        return tuple(axis for axis in axes if axis in task.axis)

    def _members(self, name: str, task: TaskSpec, raw: dict[Any, Any], path: Path) -> tuple[Group, dict[str, int]]:
        for key in raw:
            if key != "members":
                self._break("unknown-key", f"a collective takes members, not {key}", (*path, key), on="key")
        entries = raw["members"]
        if not isinstance(entries, list) or not entries:
            self._break("wrong-type", f"members of {name} is a list of tasks", (*path, "members"))
        if task.axis is not None:
            self._break(
                "bad-task", f"{name} groups its members, so it takes no axis", ("tasks", name, "axis"), on="key"
            )
        operands = [self._operand(item, (*path, "members", n), gathers=True) for n, item in enumerate(entries)]
        kept = operands[0].kept
        for operand in operands[1:]:
            if operand.kept != kept:
                message = f"members of one group have the same axes: {operand.text} and {operands[0].text} do not"
                self._break("unequal-group", message, operand.path)
        if MEMBER in kept:
            self._break("axis-mismatch", f"{name} makes an axis {MEMBER}, and its members have one already", path)
        count = sum(operand.count for operand in operands)
        return Group(tuple(operands), (MEMBER,), True), {MEMBER: count, **kept}

    def _operand(self, raw: Any, path: Path, *, gathers: bool = False) -> At:
        reference = self.references.read(raw, path, None, axes=None)
        if not isinstance(reference, At) or not isinstance(reference.family, TaskFamily):
            self._break("bad-reference", "an operand of a collective is a task's result", path)
        if reference.gathered and not gathers:
            message = f"{reference.text} gathers, and a collective groups by itself"
            self._break("bad-reference", message, path, fix="name the task without `*` and say axis")
        returns = reference.family.returns
        if returns is not None and reference.ret is None:
            offer = f"one of {', '.join(returns)}" if returns else "a result"
            self._break("bad-reference", f"an operand is one value, and {reference.text} is not; name {offer}", path)
        return reference

    def _owner(self, operand: At) -> tuple[Any, ...]:
        """What decides on which actors an operand's members are."""
        family = operand.family
        while isinstance(family, TaskFamily) and family.target is None:
            group = self.wiring.groups[family.name]
            if group.members:
                return (family.name,)
            operand = group.operands[0]
            family = operand.family
        assert isinstance(family, TaskFamily) and family.target is not None
        picks = {**family.target.picks, **{k: v for k, v in operand.picks.items() if k in family.target.actor.axes}}
        return family.target.actor.name, tuple(sorted(picks.items()))

    def _break(self, code: str, message: str, path: Path, **more: Any) -> NoReturn:
        self.catalogue.report(code, message, path, **more)
        raise Broken

    def _in(self, family: TaskFamily) -> Iterator[Wire]:
        raw, path = family.spec.in_, ("tasks", family.name, "in")
        if isinstance(raw, dict):
            entries: list[tuple[Any, Any]] = list(raw.items())
        else:
            entries = list(enumerate(raw or ()))
        for key, data in entries:
            try:
                items, listed = self._items(data, (*path, key), family, family.axes)
            except Broken:
                self.wiring.broken.add(family.name)
                continue
            yield Wire(key if isinstance(raw, dict) else None, items, listed)

    def _items(
        self, data: Any, path: Path, reader: TaskFamily | None, axes: Mapping[str, int]
    ) -> tuple[tuple[Reference, ...], bool]:
        """The references of one entry, and whether it is a list."""
        if not isinstance(data, list):
            return (self.references.read(data, path, reader, axes=axes),), False
        items: list[Reference] = []
        broken = False
        for number, item in enumerate(data):
            if isinstance(item, list):
                self.catalogue.report("bad-reference", "a list inside a list is one too many", (*path, number))
                broken = True
                continue
            try:
                items.append(self.references.read(item, (*path, number), reader, axes=axes))
            except Broken:
                broken = True
        if broken:
            raise Broken
        return tuple(items), True

    def _outputs(self, raw: Any) -> Iterator[Wire]:
        path: Path = ("outputs",)
        self.wiring.form = "list" if isinstance(raw, list) else "single" if is_reference(raw) else "map"
        entries: list[tuple[str | None, Any, Path]]
        if isinstance(raw, list):
            entries = [(None, item, (*path, n)) for n, item in enumerate(raw)]
        elif is_reference(raw):
            entries = [(None, raw, path)]
        elif isinstance(raw, dict):
            entries = [(str(name), item, (*path, name)) for name, item in raw.items()]
        else:
            if raw is not None:
                self.catalogue.report("wrong-type", "outputs is a reference, a list of them or a map of names", path)
                self.wiring.broken.add("outputs")
            return
        for name, item, where in entries:
            try:
                if self.wiring.form == "list" and isinstance(item, list):
                    self._break("bad-reference", "outputs is one flat list; name a list of results in a map", where)
                items, listed = self._items(item, where, None, {})
                yield Wire(name, items, listed)
            except Broken:
                self.wiring.broken.add("outputs")

    def _name_roughly(self, task: TaskSpec, name: str) -> None:
        """Notes what a task that could not be read would have read, so that nobody is called unread for its sake."""
        for data in (task.in_, task.allreduce, task.allgather, task.reducescatter):
            self.references.named.update(_words(data))


def _words(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        parts = data.split(".")
        yield ".".join(parts[:2]) if parts[0] == "inputs" else parts[0]
    elif isinstance(data, dict):
        for value in data.values():
            yield from _words(value)
    elif isinstance(data, list):
        for item in data:
            yield from _words(item)


def edge_count(wiring: Wiring) -> int:
    """How many edges the spec makes, without making them."""
    total = sum(
        size_of(wiring.tasks[name].axes) * sum(item.count for wire in wires for item in wire.items)
        for name, wires in wiring.wires.items()
    )
    return total + sum(size_of(wiring.tasks[name].axes) * len(group.operands) for name, group in wiring.groups.items())


def read_families(wires: tuple[Wire, ...]) -> Iterator[At]:
    """Every family member that some wires may read."""
    for entry in wires:
        for item in entry.items:
            yield from leaves(item)
