"""References: what ``in``, ``outputs`` and collectives read, from text to axes that are picked, gathered or kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from cgspec import pairing
from cgspec.diagnostics import Path, nearest, suggest
from cgspec.families import (
    Catalogue,
    InputFamily,
    TaskFamily,
    axes_made,
    range_message,
    selector_spans,
    size_of,
    too_many,
    whole,
)
from cgspec.parsing import ValueReader
from cgspec.values import Literal, Value

Family = TaskFamily | InputFamily
MARKS = ("$at", "$all", "$prev", "$next")


@dataclass(frozen=True)
class At:
    """Members of one family.

    Attributes:
        picks: axis → the place on it, a number or (in ``$at``) a value that depends on the reader's index.
        gathers: axes that become a list, in the family's axis order.
        ret: the number of the return that is read, or None.
    """

    family: Family
    picks: Mapping[str, int | Value]
    gathers: tuple[str, ...]
    ret: int | None
    path: Path
    text: str

    @property
    def kept(self) -> dict[str, int]:
        """The axes that pair with the reader's."""
        axes = self.family.axes
        return {axis: size for axis, size in axes.items() if axis not in self.picks and axis not in self.gathers}

    @property
    def name(self) -> str:
        """How the family is named in a reference."""
        return f"inputs.{self.family.name}" if isinstance(self.family, InputFamily) else self.family.name

    @property
    def gathered(self) -> bool:
        return bool(self.gathers)

    @property
    def count(self) -> int:
        """How many references it is for one reader."""
        return size_of({axis: self.family.axes[axis] for axis in self.gathers})


@dataclass(frozen=True)
class Shift:
    """A neighbour on an axis (``$prev``: step -1, ``$next``: +1), and what is read where there is none."""

    operand: Reference
    axis: str
    step: int
    edge: Reference
    path: Path
    text: str

    @property
    def gathered(self) -> bool:
        return self.operand.gathered or self.edge.gathered

    @property
    def count(self) -> int:
        return max(self.operand.count, self.edge.count)


Reference = At | Shift


def leaves(reference: Reference) -> Iterator[At]:
    """Every family that a reference may read."""
    if isinstance(reference, At):
        yield reference
    else:
        yield from leaves(reference.operand)
        yield from leaves(reference.edge)


def is_reference(data: Any) -> bool:
    """Whether raw data has the form of one reference (not of a list of them)."""
    return isinstance(data, str) or (isinstance(data, dict) and any(mark in data for mark in MARKS))


class Broken(Exception):
    """The reference cannot be read; what was to be said has been reported (or is somebody else's fault)."""


class ReferenceReader:
    """Reads references against the families of a spec.

    Attributes:
        named: names of tasks and inputs (as ``inputs.x``) that some reference names, or most likely meant.
        strays: how many references name nothing like a task (``tasks``) or an input (``inputs``) that there is.
    """

    def __init__(
        self, catalogue: Catalogue, values: ValueReader, task: Callable[[str], TaskFamily | None], names: list[str]
    ) -> None:
        self.catalogue = catalogue
        self.values = values
        self.task = task
        self.task_names = names
        self.named: set[str] = set()
        self.strays: Counter[str] = Counter()

    def read(self, data: Any, path: Path, reader: TaskFamily | None, *, axes: Mapping[str, int] | None) -> Reference:
        """The reference that ``data`` is.

        Args:
            reader: the task that reads, where one does.
            axes: the reader's axes, with which kept axes must pair; None where any may be kept.

        Raises:
            Broken: it is none.
        """
        reference = self._read(data, path, reader)
        problem = pairing.problem(leaves(reference), axes, reader) if axes is not None else None
        if problem is not None:
            self.catalogue.findings.append(problem)
            raise Broken
        return reference

    def _read(self, data: Any, path: Path, reader: TaskFamily | None) -> Reference:
        if isinstance(data, str):
            return self._text(data, path)
        if isinstance(data, dict):
            marks = [mark for mark in MARKS if mark in data]
            if len(marks) > 1:
                message = f"{marks[0]} and {marks[1]} do not stand in one map"
                self._break("bad-reference", message, (*path, marks[1]), on="key", fix="keep one of them")
            mark = marks[0] if marks else None
            if mark in ("$prev", "$next"):
                return self._shift(str(mark), data, path, reader)
            if mark is not None:
                return self._marked(mark, data, path, reader)
        if data is None or isinstance(data, dict):
            self.strays.update(("tasks", "inputs"))
        fix = "constants go under `with`" if path[:1] == ("tasks",) and path[2:3] == ("in",) else ""
        shown = "a map" if isinstance(data, dict) else "nothing" if data is None else repr(data)[:60]
        self._break(
            "bad-reference", f"a reference is needed here, e.g. inputs.x or a task's name, not {shown}", path, fix=fix
        )

    def _break(self, code: str, message: str, path: Path, **more: Any) -> NoReturn:
        self.catalogue.report(code, message, path, **more)
        raise Broken

    def _text(self, text: str, path: Path) -> At:
        family, rest, start = self._family(text, path)
        if "" in rest:
            fix = f"write {text.split('..')[0].rstrip('.')}"
            self._break("bad-reference", f"{text} has a dot with nothing behind it", path, fix=fix)
        ret: int | None = None
        if rest and not _is_selector(rest[-1]):
            ret = self._return(text, family, rest.pop(), path)
        axes = list(family.axes)
        spans = selector_spans(rest, start)
        for part, span in zip(rest, spans, strict=True):
            if not _is_selector(part):
                message = f"{part!r} in {text} is no selector: a whole number or *"
                fix = "selectors come first, the name of a return last: task.0.hidden"
                self._break("wrong-selectors", message, path, span=span, fix=fix)
        if rest == ["*"] and axes:
            return At(family, {}, tuple(axes), ret, path, text)
        if len(rest) > len(axes):
            span = (spans[len(axes)][0], spans[-1][1])
            message = too_many(text, family.name, rest, family.axes)
            self._break("wrong-selectors", message, path, span=span, related=axes_made(family))
        picks, gathers = self._select(text, family, rest, spans, path)
        return At(family, picks, gathers, ret, path, text)

    def _family(self, text: str, path: Path) -> tuple[Family, list[str], int]:
        """The family that a text names, its further words, and where in the text those begin."""
        name, *rest = text.split(".")
        if name == "inputs":
            if not rest:
                self._break("unknown-reference", "inputs is no reference; write inputs.NAME", path)
            name = rest.pop(0)
            self.named.add(f"inputs.{name}")
            found = self.catalogue.inputs.get(name)
            if found is None:
                self._unknown_input(name, path)
            return found, rest, len("inputs.") + len(name) + 1
        self.named.add(name)
        task = self.task(name)
        if task is None:
            self._unknown_task(name, path)
        return task, rest, len(name) + 1

    def _unknown_input(self, name: str, path: Path) -> NoReturn:
        if self.catalogue.is_faulty("inputs", name):
            raise Broken
        offer = suggest(name, self.catalogue.inputs, noun="inputs")
        self._note_meant("inputs", nearest(name, self.catalogue.inputs), "inputs.")
        start = len("inputs.")
        self._break("unknown-reference", f"there is no input {name}; {offer}", path, span=(start, start + len(name)))

    def _unknown_task(self, name: str, path: Path) -> NoReturn:
        if self.catalogue.full or name in self.task_names or self.catalogue.is_faulty("tasks", name):
            raise Broken
        span = (0, len(name))
        if name.startswith("$"):
            fix = "vars and other values go under `with`; references are bare names"
            self._break("bad-reference", f"{name} is a value, and a reference is needed here", path, fix=fix)
        if name in self.catalogue.inputs:
            message = f"there is no task {name}; the input is inputs.{name}"
            self.named.add(f"inputs.{name}")
            self._break("unknown-reference", message, path, span=span, fix=f"write inputs.{name}")
        if name in self.catalogue.actors:
            message = f"{name} is an actor, and references name tasks and inputs"
            self.strays["tasks"] += 1
            fix = f"name the task that calls it; {suggest(name, self.task_names, noun='tasks')}"
            self._break("unknown-reference", message, path, span=span, fix=fix)
        names = [*self.task_names, *(f"inputs.{key}" for key in self.catalogue.inputs)]
        offer = suggest(name, names, noun="there are")
        self._note_meant("tasks", nearest(name, names))
        if nearest(name, names) is None:
            self.strays["inputs"] += 1  # it may have meant inputs.NAME
        self._break("unknown-reference", f"there is no task {name or repr(name)}; {offer}", path, span=span)

    def _note_meant(self, section: str, near: str | None, prefix: str = "") -> None:
        """Remembers what a wrong name most likely meant, so that this is not called unread as well."""
        if near is not None:
            self.named.add(prefix + near)
        else:
            self.strays[section] += 1

    def _return(self, text: str, family: Family, name: str, path: Path) -> int:
        span = (len(text) - len(name), len(text))
        returns = family.returns if isinstance(family, TaskFamily) else None
        if returns is None:
            if isinstance(family, TaskFamily) and ("tasks", family.name) in self.catalogue.incomplete:
                raise Broken
            fix = (
                f"say returns: [{name}, ..] on {family.name} if its method returns several"
                if name.isidentifier()
                else ""
            )
            self._break("unknown-reference", f"{family.name} has no returns, so no {name}", path, span=span, fix=fix)
        elif name not in returns:
            offer = suggest(name, returns, noun="its returns are")
            self._break("unknown-reference", f"{family.name} returns no {name}; {offer}", path, span=span)
        return (returns or ()).index(name)

    def _select(
        self, text: str, family: Family, rest: list[str], spans: list[tuple[int, int]], path: Path
    ) -> tuple[dict[str, int | Value], tuple[str, ...]]:
        picks: dict[str, int | Value] = {}
        gathers: list[str] = []
        for part, span, (axis, size) in zip(rest, spans, family.axes.items(), strict=False):
            if part == "*":
                gathers.append(axis)
                continue
            index = whole(part) or 0
            if not -size <= index < size:
                message = range_message(text, axis, size, index)
                self._break("index-out-of-range", message, path, span=span, related=axes_made(family, axis))
            picks[axis] = index % size
        return picks, tuple(gathers)

    def _marked(self, mark: str, data: dict[Any, Any], path: Path, reader: TaskFamily | None) -> At:
        """``$at`` and ``$all``."""
        base = self._text(data[mark], (*path, mark)) if isinstance(data[mark], str) else None
        if base is None:
            fix = "$at takes several axes at once: {$at: task, pp: 0, tp: 1}" if mark == "$at" else ""
            fix = fix or "selectors may stand in the name: {$all: task.0, axis: tp}"
            self._break("bad-reference", f"{mark} takes a task or an input by name", (*path, mark), fix=fix)
        if mark == "$all":
            return self._gather(base, data, path)
        picks = dict(base.picks)
        for key, raw in data.items():
            if key == mark:
                continue
            if key not in base.family.axes:
                offer = suggest(str(key), base.family.axes, noun=f"axes of {base.family.name}")
                message, made = f"{base.family.name} has no axis {key}; {offer}", axes_made(base.family)
                self._break("unknown-axis", message, (*path, key), on="key", related=made)
            picks[key] = self._place(base, str(key), raw, (*path, key), reader)
        gathers = tuple(axis for axis in base.gathers if axis not in picks)
        return At(base.family, picks, gathers, base.ret, path, _shown(mark, data))

    def _place(self, base: At, axis: str, raw: Any, path: Path, reader: TaskFamily | None) -> int | Value:
        """The place on an axis that ``$at`` picks."""
        value = self.values.read(raw, path)
        size = base.family.axes[axis]
        if not isinstance(value, Literal):
            known = reader.known if reader else {}
            check_axes_known(self.catalogue, value, known, path)
            return value
        index = value.data
        if not isinstance(index, int) or isinstance(index, bool):
            self._break("wrong-type", f"a place on {axis} is a whole number, not {index!r}", path)
        if not -size <= index < size:
            message = range_message(base.text, axis, size, index)
            self._break("index-out-of-range", message, path, related=axes_made(base.family, axis))
        return index % size

    def _gather(self, base: At, data: dict[Any, Any], path: Path) -> At:
        raw = data.get("axis")
        axes = [raw] if isinstance(raw, str) else raw
        for key in data:
            if key not in ("$all", "axis"):
                self._break("unknown-key", f"$all takes no {key}; it takes axis", (*path, key), on="key")
        if raw is not None and (not isinstance(axes, list) or not axes):
            fix = f"it has {', '.join(base.kept)}" if base.kept else ""
            self._break("wrong-type", f"axis of $all names an axis, not {raw!r}"[:120], (*path, "axis"), fix=fix)
        if not isinstance(axes, list) or not axes:
            fix = f"write {{$all: {base.text}, axis: {next(reversed(base.kept), 'tp')}}}"
            self._break("missing-key", "$all needs axis: the axis that it gathers", path, fix=fix)
        for axis in axes:
            if not isinstance(axis, str) or axis not in base.kept:
                offer = suggest(str(axis), base.kept, noun=f"axes of {base.text}")
                message, made = f"{base.text} has no axis {axis} to gather; {offer}", axes_made(base.family)
                self._break("unknown-axis", message, (*path, "axis"), related=made)
        gathers = tuple(axis for axis in base.family.axes if axis in axes or axis in base.gathers)
        return At(base.family, base.picks, gathers, base.ret, path, _shown("$all", data))

    def _shift(self, mark: str, data: dict[Any, Any], path: Path, reader: TaskFamily | None) -> Shift:
        edge_key = "first" if mark == "$prev" else "last"
        for key in data:
            if key not in (mark, "axis", edge_key):
                offer = suggest(str(key), ("axis", edge_key), noun="it takes")
                self._break("unknown-key", f"{mark} takes no {key}; {offer}", (*path, key), on="key")
        missing = [key for key in ("axis", edge_key) if key not in data]
        if missing:
            self.strays.update(("tasks", "inputs") if edge_key in missing else ())
            message = f"{mark} needs {' and '.join(missing)}"
            end = "first" if mark == "$prev" else "last"
            why = (
                f"the {end} member has no neighbour there, and reads what {edge_key} names"
                if edge_key in missing
                else ""
            )
            fix = f"write {{{mark}: task, axis: pp, {edge_key}: inputs.x}}"
            self._break("missing-key", message, path, why=why, fix=fix)
        axis = data["axis"]
        axes = reader.axes if reader else {}
        if not isinstance(axis, str) or axis not in axes:
            if reader is None:
                message = f"{mark} is read from a neighbour's place, and outputs have no axes"
                self._break("unknown-axis", message, path, fix="name the task with a selector: task.* or task.0")
            offer = suggest(str(axis), axes, noun=f"axes of {reader.name}")
            message = f"{mark} goes along {axis}, which {reader.name} does not have; {offer}"
            self._break("unknown-axis", message, (*path, "axis"), related=axes_made(reader))
        operand = self._read(data[mark], (*path, mark), reader)
        edge = self._read(data[edge_key], (*path, edge_key), reader)
        if all(axis not in leaf.kept for leaf in leaves(operand)):
            message = f"{mark} goes along {axis}, which {operand.text} does not have there"
            fix = f"only a result with the axis {axis} has neighbours on it: name {operand.text} without {mark}"
            self._break("unknown-axis", message, (*path, "axis"), fix=fix)
        return Shift(operand, axis, -1 if mark == "$prev" else 1, edge, path, _shown(mark, data))


def check_axes_known(catalogue: Catalogue, value: Value, known: Mapping[str, int], path: Path) -> bool:
    """Whether every ``index.<axis>`` and ``size.<axis>`` of a value is an axis there."""
    good = True
    for use in sorted(value.uses):
        head, dot, axis = use.partition(".")
        if dot and head in ("index", "size") and axis not in known:
            offer = suggest(axis, known, noun="axes here")
            catalogue.report("unknown-axis", f"{use} is not known here: there is no axis {axis}; {offer}", path)
            good = False
    return good


def _is_selector(part: str) -> bool:
    return part == "*" or whole(part) is not None


def _shown(mark: str, data: dict[Any, Any]) -> str:
    operand = data[mark]
    return f"{{{mark}: {operand if isinstance(operand, str) else '..'}}}"
