"""Places on axes: enumerating them row-major, naming members, and the arithmetic from a place to an offset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

Place = Mapping[str, int]
"""Axis to index."""


def places(axes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every place on some axes, row-major; one empty place where there are no axes."""
    names = list(axes)
    for index in itertools.product(*(range(size) for size in axes.values())):
        yield dict(zip(names, index, strict=True))


def member_name(family: str, place: Place) -> str:
    """``fwd.0.2``: the family, then the indices in axis order."""
    return ".".join([family, *map(str, place.values())]) if place else family


def names_at(place: Place, axes: Mapping[str, int]) -> dict[str, object]:
    """What ``index.<axis>`` and ``size.<axis>`` are at a place."""
    names: dict[str, object] = {f"size.{axis}": size for axis, size in axes.items()}
    names.update((f"index.{axis}", index) for axis, index in place.items())
    return names


def strides(axes: Mapping[str, int]) -> dict[str, int]:
    """How far apart two neighbours on each axis are in row-major order."""
    steps: dict[str, int] = {}
    step = 1
    for axis in reversed(list(axes)):
        steps[axis] = step
        step *= axes[axis]
    return steps


def offset_of(place: Place, axes: Mapping[str, int]) -> int:
    """The row-major number of the member at a place; axes that the place has beyond ``axes`` do not count."""
    offset = 0
    for axis, size in axes.items():
        offset = offset * size + place[axis]
    return offset


def place_of(offset: int, axes: Mapping[str, int]) -> dict[str, int]:
    """The place of the member with a row-major number."""
    return {axis: offset // step % axes[axis] for axis, step in strides(axes).items()}
