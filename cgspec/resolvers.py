"""From a reference and a reader's place to the members that are read there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cgspec.families import TaskFamily, range_message
from cgspec.graph import InputRef, Ref, TaskRef
from cgspec.places import Place, places, strides
from cgspec.references import At, Reference
from cgspec.values import CannotMake, Literal, Value

Resolve = Callable[[Place, Mapping[str, object]], list[Ref]]
"""From a reader's place, and its ``index.*`` and ``size.*``, to what it reads."""

Report = Callable[..., None]


class Resolver:
    """Compiles references to functions.

    Attributes:
        inputs, tasks: family name to the number of its first member.
        report: takes a code, a message and a path.
    """

    def __init__(self, inputs: Mapping[str, int], tasks: Mapping[str, int], report: Report) -> None:
        self.inputs = inputs
        self.tasks = tasks
        self.report = report

    def compile(self, reference: Reference, shift: Mapping[str, int] | None = None) -> Resolve:
        """A function from a reader's place to what it reads there.

        Args:
            shift: how far from the reader's place the reference is read: an operand of ``$prev`` or ``$next`` moves
                along their axes, while ``first`` and ``last`` are read from the reader's own place, however deep.
        """
        shift = shift or {}
        if isinstance(reference, At):
            return self._at(reference, shift)
        axis = reference.axis
        moved = shift.get(axis, 0) + reference.step
        operand, edge = self.compile(reference.operand, {**shift, axis: moved}), self.compile(reference.edge)
        size_name = f"size.{axis}"

        def resolve(place: Place, names: Mapping[str, object]) -> list[Ref]:
            size = names[size_name]
            assert isinstance(size, int)
            return (operand if 0 <= place[axis] + moved < size else edge)(place, names)

        return resolve

    def _at(self, reference: At, shift: Mapping[str, int]) -> Resolve:
        family, axes = reference.family, reference.family.axes
        is_task = isinstance(family, TaskFamily)
        start = (self.tasks if is_task else self.inputs)[family.name]
        steps = strides(axes)
        start += sum(steps[axis] * pick for axis, pick in reference.picks.items() if isinstance(pick, int))
        start += sum(steps[axis] * shift.get(axis, 0) for axis in reference.kept)
        open_picks = [(axis, pick) for axis, pick in reference.picks.items() if isinstance(pick, Value)]
        kept = [(axis, steps[axis]) for axis in reference.kept]
        gathered = [_offset(steps, place) for place in places({axis: axes[axis] for axis in reference.gathers})]
        ret = reference.ret

        def resolve(place: Place, names: Mapping[str, object]) -> list[Ref]:
            base = start + sum(place[axis] * step for axis, step in kept)
            if open_picks:
                there = {**names, **{f"index.{axis}": place[axis] + by for axis, by in shift.items()}}
                base += sum(steps[axis] * self._picked(reference, axis, pick, there) for axis, pick in open_picks)
            if is_task:
                return [TaskRef(base + offset, ret) for offset in gathered]
            return [InputRef(base + offset) for offset in gathered]

        return resolve

    def _picked(self, reference: At, axis: str, pick: Value, names: Mapping[str, object]) -> int:
        """The index that a computed pick gives for one reader."""
        size, path = reference.family.axes[axis], (*reference.path, axis)
        try:
            bound = pick.bind(names)
        except CannotMake as error:
            self.report("bad-value", str(error), path)
            return 0
        index = bound.data if isinstance(bound, Literal) else None
        if not isinstance(index, int) or isinstance(index, bool):
            self.report("wrong-type", f"a place on {axis} is a whole number, not {index!r}", path)
            return 0
        if not -size <= index < size:
            self.report("index-out-of-range", range_message(reference.family.name, axis, size, index), path)
            return 0
        return index % size


def _offset(steps: Mapping[str, int], place: Place) -> int:
    return sum(steps[axis] * index for axis, index in place.items())
