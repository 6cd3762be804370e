"""Collectives: what each of them groups, read and judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from cgspec.diagnostics import Path, Related, suggest
from cgspec.families import MEMBER, Catalogue, TaskFamily, axes_made
from cgspec.references import At, Broken, ReferenceReader
from cgspec.spec import TaskSpec


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


class CollectiveReader:
    """Reads the collectives of a spec.

    Attributes:
        groups: by the collective's name; filled in while reading.
    """

    def __init__(self, catalogue: Catalogue, references: ReferenceReader, groups: dict[str, Group]) -> None:
        self.catalogue = catalogue
        self.references = references
        self.groups = groups

    def read(self, name: str, task: TaskSpec, kind: str) -> TaskFamily:
        """The family of a collective; notes its group.

        Raises:
            Broken: it cannot be read.
        """
        path: Path = ("tasks", name, kind)
        raw = getattr(task, kind)
        if isinstance(raw, dict) and "members" in raw:
            group, axes = self._members(name, task, raw, path)
        else:
            group, axes = self._operands(name, task, raw, path)
        self._check(name, task, kind, group)
        self.groups[name] = group
        return TaskFamily(name, axes, task, None, kind)  # type: ignore[arg-type]  # one of KINDS

    def _check(self, name: str, task: TaskSpec, kind: str, group: Group) -> None:
        path: Path = ("tasks", name)
        if kind == "allgather" and task.op is not None:
            message = f"{name} is an allgather, which reduces nothing and takes no op"
            self.catalogue.report("bad-task", message, (*path, "op"), on="key", fix="remove op")
        fused = not group.members and len(group.operands) > 1
        returns = task.returns
        if ("tasks", name) in self.catalogue.incomplete:
            return
        if fused and (returns is None or len(returns) != len(group.operands)):
            count, given = len(group.operands), "none" if returns is None else len(returns)
            message = f"{name} fuses {count} operands and needs {count} returns, one for each; it has {given}"
            where = (*path, "returns") if returns is not None else path
            fix = f"write returns: [{', '.join(operand.family.name for operand in group.operands)}]"
            self.catalogue.report("bad-task", message, where, on="key", fix=fix)
            raise Broken
        if not fused and returns is not None:
            message = f"{name} has one operand, so its result has one value and no returns"
            self.catalogue.report("bad-task", message, (*path, "returns"), on="key", fix="remove returns")
            raise Broken

    def _operands(self, name: str, task: TaskSpec, raw: Any, path: Path) -> tuple[Group, dict[str, int]]:
        listed = isinstance(raw, list)
        items = list(raw) if isinstance(raw, list) else [raw]
        if not items:
            fix = "name the task whose results it takes"
            self._break("bad-task", f"{name} needs at least one operand", path, fix=fix)
        operands = [self._operand(item, (*path, n) if listed else path) for n, item in enumerate(items)]
        first = operands[0]
        for operand in operands[1:]:
            if operand.kept != first.kept or self._owner(operand) != self._owner(first):
                message = f"fused operands live on the same actors, and {operand.text} is not where {first.text} is"
                fix = "make a collective of its own for each"
                made = (Related(f"{first.text} is made here", ("tasks", first.family.name), "key"),)
                self._break("unequal-group", message, operand.path, fix=fix, related=made)
        return Group(tuple(operands), self._group_axes(name, task, first, path), False), dict(first.kept)

    def _group_axes(self, name: str, task: TaskSpec, operand: At, path: Path) -> tuple[str, ...]:
        axes = operand.kept
        where = ("tasks", name, "axis") if task.axis is not None else ("tasks", name)
        if task.axis is None:
            if len(axes) != 1:
                shown = f"has the axes {', '.join(axes)}" if axes else "has no axes"
                fix = "group tasks of differently named actors with {members: [a, b]}, or give the actor axes"
                fix = f"say which, e.g. axis: {next(reversed(axes))}" if axes else fix
                made = axes_made(operand.family)
                message = f"{name} groups over an axis, and {operand.text} {shown}"
                self._break("missing-key", message, where, on="key", fix=fix, related=made)
            return tuple(axes)
        for axis in task.axis:
            if axis not in axes:
                offer = suggest(axis, axes, noun=f"axes of {operand.text}")
                place: Path = (*where, task.axis.index(axis))
                made = axes_made(operand.family)
                self._break("unknown-axis", f"{operand.text} has no axis {axis}; {offer}", place, related=made)
        return tuple(axis for axis in axes if axis in task.axis)

    def _members(self, name: str, task: TaskSpec, raw: dict[Any, Any], path: Path) -> tuple[Group, dict[str, int]]:
        for key in raw:
            if key != "members":
                message, fix = f"{key} does not stand beside members; members is all that there is", f"remove {key}"
                self._break("unknown-key", message, (*path, key), on="key", fix=fix)
        entries = raw["members"]
        if not isinstance(entries, list) or not entries:
            self._break("wrong-type", f"members of {name} is a list of tasks", (*path, "members"), fix="write [a, b]")
        if task.axis is not None:
            message = f"{name} groups its members, so it takes no axis"
            self._break("bad-task", message, ("tasks", name, "axis"), on="key", fix="remove axis")
        operands = [self._operand(item, (*path, "members", n), gathers=True) for n, item in enumerate(entries)]
        kept = operands[0].kept
        for operand in operands[1:]:
            if operand.kept != kept:
                message = f"members of one group have the same axes: {_axes(operand)}, and {_axes(operands[0])}"
                fix = f"pick or gather with a selector, e.g. {operand.family.name}.*"
                made = (*axes_made(operand.family), *axes_made(operands[0].family))
                self._break("unequal-group", message, operand.path, fix=fix, related=made)
        if MEMBER in kept:
            self._break("axis-mismatch", f"{name} makes an axis {MEMBER}, and its members have one already", path)
        count = sum(operand.count for operand in operands)
        return Group(tuple(operands), (MEMBER,), True), {MEMBER: count, **kept}

    def _operand(self, raw: Any, path: Path, *, gathers: bool = False) -> At:
        reference = self.references.read(raw, path, None, axes=None)
        if not isinstance(reference, At) or not isinstance(reference.family, TaskFamily):
            fix = "name a task; an input goes to a task first"
            self._break("bad-reference", "an operand of a collective is a task's result", path, fix=fix)
        if reference.gathered and not gathers:
            message = f"{reference.text} gathers, and a collective groups by itself"
            self._break("bad-reference", message, path, fix="name the task without `*` and say axis")
        returns = reference.family.returns
        if returns is not None and reference.ret is None:
            several = f"returns {', '.join(returns)}" if returns else "is called for its effect"
            fix = f"name one of them, e.g. {reference.text}.{returns[0]}" if returns else "name another task"
            self._break("bad-reference", f"an operand is one value, and {reference.text} {several}", path, fix=fix)
        return reference

    def _owner(self, operand: At) -> tuple[Any, ...]:
        """What decides on which actors an operand's members are."""
        family = operand.family
        while isinstance(family, TaskFamily) and family.target is None:
            group = self.groups[family.name]
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


def _axes(operand: At) -> str:
    """Which axes an operand keeps, for people."""
    kept = ", ".join(f"{axis} ({size})" for axis, size in operand.kept.items())
    return f"{operand.text} has {kept or 'none'}"
