"""The points of a sweep: which there are, in which order they are run, and what each is called."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cgspec.spec import SweepSpec

Choice = tuple[tuple[str, int], ...]
"""Dotted path, and the number of the value that the matrix gives it."""


@dataclass(frozen=True)
class Point:
    """One point: ``values`` by dotted path; ``number`` counts the points that are not excluded."""

    number: int
    choice: Choice
    values: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        """``vars.cols=1024 tasks.send.transport=nccl``."""
        return " ".join(f"{path}={_shown(value)}" for path, value in self.values)


def points(sweep: SweepSpec) -> list[Point]:
    """Every point of the matrix that is not excluded, the last key changing fastest."""
    found: list[Point] = []
    for indices in itertools.product(*(range(len(values)) for values in sweep.matrix.values())):
        choice = tuple(zip(sweep.matrix, indices, strict=True))
        values = tuple((path, sweep.matrix[path][index]) for path, index in choice)
        if not any(_excludes(entry, dict(values)) for entry in sweep.exclude):
            found.append(Point(len(found), choice, values))
    return found


def turns(sweep: SweepSpec) -> Iterator[tuple[Point, int]]:
    """(point, repeat) in the order in which they are run."""
    found = points(sweep)
    if sweep.order == "sequential":
        yield from ((point, repeat) for point in found for repeat in range(sweep.repeats))
    else:
        yield from ((point, repeat) for repeat in range(sweep.repeats) for point in found)


def covering(sweep: SweepSpec) -> list[Point]:
    """Points in which every value of the matrix that is not excluded everywhere occurs at least once."""
    seen: set[tuple[str, int]] = set()
    chosen = []
    for point in points(sweep):
        if not seen.issuperset(point.choice):
            seen.update(point.choice)
            chosen.append(point)
    return chosen


def size(sweep: SweepSpec) -> int:
    """How many points the matrix has before any is excluded."""
    count = 1
    for values in sweep.matrix.values():
        count *= len(values)
    return count


def _excludes(entry: dict[str, Any], values: dict[str, Any]) -> bool:
    return all(path in values and values[path] == value for path, value in entry.items())


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
