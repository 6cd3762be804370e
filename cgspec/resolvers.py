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

    def compile(self, reference: Reference) -> Resolve:
        """A function from a reader's place to what it reads there."""
        if isinstance(reference, At):
            return self._at(reference)
        operand, edge = self.compile(reference.operand), self.compile(reference.edge)
        axis, step = reference.axis, reference.step

        def resolve(place: Place, names: Mapping[str, object]) -> list[Ref]:
            at = place[axis] + step
            size = names[f"size.{axis}"]
            assert isinstance(size, int)
            if not 0 <= at < size:
                return edge(place, names)
            return operand({**place, axis: at}, {**names, f"index.{axis}": at})

        return resolve

    def _at(self, reference: At) -> Resolve:
        family, axes = reference.family, reference.family.axes
        is_task = isinstance(family, TaskFamily)
        start = (self.tasks if is_task else self.inputs)[family.name]
        steps = strides(axes)
        start += sum(steps[axis] * pick for axis, pick in reference.picks.items() if isinstance(pick, int))
        open_picks = [(axis, pick) for axis, pick in reference.picks.items() if isinstance(pick, Value)]
        kept = [(axis, steps[axis]) for axis in reference.kept]
        gathered = [_offset(steps, place) for place in places({axis: axes[axis] for axis in reference.gathers})]
        ret = reference.ret

        def resolve(place: Place, names: Mapping[str, object]) -> list[Ref]:
            base = start + sum(place[axis] * step for axis, step in kept)
            for axis, pick in open_picks:
                base += steps[axis] * self._picked(reference, axis, pick, names)
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
