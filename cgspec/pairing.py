"""Whether what is read pairs with its reader: shared axes index with index, all others picked or gathered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cgspec.diagnostics import Finding
from cgspec.families import TaskFamily, axes_made

if TYPE_CHECKING:
    from cgspec.references import At


def problem(leaves: Iterable[At], axes: Mapping[str, int], reader: TaskFamily | None) -> Finding | None:
    """What keeps members from pairing with a reader's, if anything does.

    Args:
        leaves: every family that is read.
        axes: the reader's, where there is one; else it is an output.
    """
    for leaf in leaves:
        for axis, size in leaf.kept.items():
            if axis not in axes:
                return _unpaired(leaf, axis, axes, reader)
            if axes[axis] != size:
                return _unequal(leaf, axis, axes[axis], reader)
    return None


def _unequal(leaf: At, axis: str, size: int, reader: TaskFamily | None) -> Finding:
    owner = reader.name if reader else "outputs"
    message = f"{axis} has {leaf.family.axes[axis]} members in {leaf.family.name} and {size} in {owner}"
    why = "an axis that both have pairs member with member"
    fix = f"give both the same size, gather with {_all(leaf, axis)}, or rename one of the axes"
    made = (*axes_made(leaf.family, axis), *(axes_made(reader, axis) if reader else ()))
    return Finding("axis-mismatch", message, leaf.path, why=why, fix=fix, related=made)


def _unpaired(leaf: At, axis: str, axes: Mapping[str, int], reader: TaskFamily | None) -> Finding:
    count = leaf.family.axes[axis]
    members = f"the {count} members of {leaf.text} on {axis} meet" if count > 1 else f"{leaf.text} on {axis} meets"
    who = f"{reader.name} has no axis {axis}" if reader else "outputs have no axes"
    fix = f"gather them with {_all(leaf, axis)}, or pick one with {{$at: {leaf.name}, {axis}: 0}}"
    if len(leaf.kept) == len(leaf.family.axes) and not axes:
        zeros = ".".join("0" for _ in leaf.kept)
        fix = f"gather them with {leaf.name}.*, or pick one, e.g. {leaf.name}.{zeros}"
    why = "an axis that only the producer has must be picked or gathered"
    made = axes_made(leaf.family, axis)
    return Finding("gather-missing", f"{members} one reader: {who}", leaf.path, why=why, fix=fix, related=made)


def _all(leaf: At, axis: str) -> str:
    return f"{{$all: {leaf.name}, axis: {axis}}}"
