"""Who reads what, family by family: every ``in``, collective and output of a spec, read and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cgspec.diagnostics import Path, Related
from cgspec.families import COLLECTIVES, Catalogue, TaskFamily, axes_made, size_of
from cgspec.groups import CollectiveReader, Group
from cgspec.parsing import ValueReader
from cgspec.references import Broken, Reference, ReferenceReader, is_reference
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


@dataclass
class Wiring:
    """All families of a spec with what they read.

    Attributes:
        tasks: in file order; only those that could be read whole.
        wires: per call task, its ``in``; groups: per collective.
        outputs: what the driver gets, with ``form`` ``single``, ``list`` or ``map``.
        named: names of tasks, and of inputs as ``inputs.x``, that some reference names, or most likely meant.
        strays: how many references name nothing like a task (``tasks``) or an input (``inputs``) that there is.
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
    strays: Counter[str] = field(default_factory=Counter)


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
        self.collectives = CollectiveReader(catalogue, self.references, self.wiring.groups)

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
        self.references.named.update(_words(self.catalogue.lost))
        wiring.named = self.references.named
        wiring.strays = self.references.strays
        return wiring

    def family(self, name: str) -> TaskFamily | None:
        """The task family of that name; None where there is none that can be spoken of."""
        if name in self.families:
            return self.families[name]
        task = self.catalogue.spec.tasks.get(name)
        if task is None:
            return None
        if name in self.open:
            self._report_circle(self.open[self.open.index(name) :])
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

    def _report_circle(self, names: list[str]) -> None:
        chain = " -> ".join([*names, names[0]])
        others = tuple(Related(f"{name} is here", ("tasks", name), "key") for name in names[1:])
        why = "each of them waits for the one before, so none can begin"
        fix = "let one of them take the result of a call"
        message = f"collectives read each other: {chain}"
        path = ("tasks", names[0])
        self.catalogue.report("cycle", message, path, on="key", why=why, fix=fix, related=others)

    def _make(self, name: str, task: TaskSpec) -> TaskFamily | None:
        path: Path = ("tasks", name)
        kinds = [kind for kind in KINDS if kind in task.model_fields_set]
        if len(kinds) != 1:
            if ("tasks", name) not in self.catalogue.incomplete:
                said = f"has both {kinds[0]} and {kinds[1]}" if kinds else "says neither call nor a collective"
                message = f"{name} {said}; a task is exactly one of {', '.join(KINDS)}"
                fix = (
                    f"make two tasks of it: {kinds[1]} reads the one that calls" if kinds else "add call: actor.method"
                )
                self.catalogue.report("bad-task", message, path, on="key", fix=fix)
            return None
        kind = kinds[0]
        misplaced = _COLLECTIVE_ONLY if kind == "call" else _CALL_ONLY
        given = {field.alias or key for key, field in TaskSpec.model_fields.items() if key in task.model_fields_set}
        for key in misplaced:
            if key in given:
                what = "calls a method" if kind == "call" else f"is {a_collective(kind)}"
                message, fix = f"{name} {what}, which takes no {key}", f"remove {key}"
                self.catalogue.report("bad-task", message, (*path, key), on="key", fix=fix)
        return self._call(name, task) if kind == "call" else self.collectives.read(name, task, kind)

    def _call(self, name: str, task: TaskSpec) -> TaskFamily | None:
        path: Path = ("tasks", name)
        target = self.catalogue.target(task.call or "", (*path, "call"))
        if target is None:
            return None
        for axis in task.axes:
            if axis in target.actor.axes:
                message = f"{axis} is an axis of actor {target.actor.name} already, and of its task {name} too"
                fix = f"remove it: {name} has the axes of its actor by itself; an axis of its own needs another name"
                made = axes_made(target.actor)
                self.catalogue.report("axis-mismatch", message, (*path, "axes", axis), on="key", fix=fix, related=made)
                return None
        return TaskFamily(name, {**target.axes, **task.axes}, task, target, "call")

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
                self.references.named.update(_words(data))
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
                fix = "a list holds references; let a task make the inner list"
                self.catalogue.report("bad-reference", "a list inside a list is one too many", (*path, number), fix=fix)
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
                fix = "write e.g. outputs: TASK, outputs: [a, b] or outputs: {loss: a}"
                message = "outputs is a reference, a list of them or a map of names"
                self.catalogue.report("wrong-type", message, path, fix=fix)
                self.wiring.broken.add("outputs")
                self.references.strays["tasks"] += len(self.catalogue.spec.tasks)
            return
        for name, item, where in entries:
            try:
                if self.wiring.form == "list" and isinstance(item, list):
                    fix = "give the list a name: outputs: {pair: [a, b]}"
                    self._break("bad-reference", "outputs is one flat list, and this is a list in it", where, fix=fix)
                items, listed = self._items(item, where, None, {})
                yield Wire(name, items, listed)
            except Broken:
                self.wiring.broken.add("outputs")
                self.references.named.update(_words(item))

    def _name_roughly(self, task: TaskSpec, name: str) -> None:
        """Notes what a task that could not be read would have read, so that nobody is called unread for its sake."""
        for data in (task.in_, task.allreduce, task.allgather, task.reducescatter):
            self.references.named.update(_words(data))


def a_collective(kind: str) -> str:
    """``an allreduce``, ``a reducescatter``."""
    return f"{'an' if kind[0] == 'a' else 'a'} {kind}"


def _words(data: Any) -> Iterator[str]:
    """Names that raw data may mean: of tasks, and of inputs as ``inputs.x``."""
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
