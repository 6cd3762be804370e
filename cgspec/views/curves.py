"""Curves over a sweep's matrix as numbers: where lines, dots and labels go, in percent of the room for them.

One axis of the matrix goes to the right, the values of the others make one line each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cgspec.views.charts import ROOM, Tick, steps

MOST_LINES = 7
"""As many as there are colours that differ for everybody."""
FAR = 30
"""Numbers whose greatest is so many times the least are set apart by their ratios."""

Turn = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """The points with the same values on all axes but the one to the right: ``path`` through the medians, ``dots`` of
    all repeats, as SVG path data."""

    name: str
    path: str
    dots: str


@dataclass(frozen=True)
class Curves:
    """One metric over the matrix; ``axis``: what goes to the right, ``remark``: what is left out."""

    about: str
    axis: str
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    remark: str = ""


def draw(
    about: str, turns: Sequence[Turn], value: Callable[[Turn], float | None], show: Callable[[float], str]
) -> Curves | None:
    """The curves of one metric; None where fewer than two points have it."""
    known = [(turn, found) for turn in turns if (found := value(turn)) is not None and math.isfinite(found)]
    axis = _axis([turn for turn, _ in known])
    if axis is None:
        return None
    scale = Scale([turn["values"][axis] for turn, _ in known])
    top = max(found for _, found in known) * 1.06
    if top <= 0:
        return None
    groups: dict[str, list[tuple[float, float]]] = {}
    for turn, found in known:
        groups.setdefault(_others(turn, axis), []).append((scale.place(turn["values"][axis]), found / top))
    lines = [_line(name, places) for name, places in list(groups.items())[:MOST_LINES]]
    left = len(groups) - len(lines)
    remarks = [f"{left} more lines are not drawn; the table has them"] * bool(left)
    remarks += [f"{axis} on a logarithmic scale"] * scale.by_ratio
    up = [Tick(at / top * 100, show(at) if at else "0") for at in steps(0, top, 4)]
    return Curves(about, axis, tuple(lines), tuple(scale.ticks()), tuple(up), "; ".join(remarks))


def _axis(turns: Sequence[Turn]) -> str | None:
    """The axis with the most values; numbers before names."""
    names = list(dict.fromkeys(name for turn in turns for name in turn["values"]))
    values = {name: [turn["values"].get(name) for turn in turns] for name in names}
    sizes = {name: len({tell(value) for value in values[name]}) for name in names}
    many = [name for name in names if sizes[name] > 1]
    return max(many, key=lambda name: (all(map(_is_number, values[name])), sizes[name]), default=None)


def _others(turn: Turn, axis: str) -> str:
    return " ".join(f"{name}={tell(value)}" for name, value in turn["values"].items() if name != axis)


def tell(value: Any) -> str:
    """A value of the matrix, for people."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class Scale:
    """Where values stand from left to right, 0 to 1: numbers by size, others side by side."""

    def __init__(self, values: Sequence[Any]) -> None:
        told = {tell(value): value for value in values}
        self.numbers = all(map(_is_number, told.values()))
        self.ordered = sorted(told.values()) if self.numbers else list(told.values())
        low, high = (self.ordered[0], self.ordered[-1]) if self.numbers else (0, 0)
        self.by_ratio = self.numbers and low > 0 and high / low >= FAR
        self._places = {tell(value): place for place, value in enumerate(self.ordered)}

    def place(self, value: Any) -> float:
        """From 0.05 to 0.95, so that dots have room."""
        at, low, high = (self._at(each) for each in (value, self.ordered[0], self.ordered[-1]))
        return 0.05 + 0.9 * ((at - low) / (high - low) if high > low else 0.5)

    def _at(self, value: Any) -> float:
        if not self.numbers:
            return float(self._places[tell(value)])
        return math.log(value) if self.by_ratio else float(value)

    def ticks(self) -> list[Tick]:
        """A label at each value, as long as there is room for it."""
        kept: list[Tick] = []
        for value in self.ordered:
            place, text = self.place(value) * 100, tell(value)
            if not kept or place - kept[-1].place > 9 + len(text):
                kept.append(Tick(place, text if len(text) <= 24 else text[:23] + "…"))
        return kept


def _line(name: str, places: Sequence[tuple[float, float]]) -> Line:
    columns: dict[float, list[float]] = {}
    for x, y in places:
        columns.setdefault(x, []).append(y)
    middle = [(x, median(ys)) for x, ys in sorted(columns.items())]
    path = "M" + "L".join(_point(x, y) for x, y in middle) if len(middle) > 1 else ""
    return Line(name, path, "".join(f"M{_point(x, y)}h0" for x, y in places))


def _point(x: float, y: float) -> str:
    return f"{x * ROOM:.1f} {ROOM - y * ROOM:.1f}"
