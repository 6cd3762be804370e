"""Charts as numbers: where lines, dots and labels go, in percent of the chart's room; the page draws and escapes them.

Shapes are SVG paths in a room of 1000 by 1000 that is stretched to any width; labels are text beside it, so that they
keep their size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgspec.analysis import percentile
from cgspec.quantities import show_duration

ROOM = 1000
MOST_DOTS = 600
"""Iterations that are drawn one by one; of more, parts of them as a band from the least to the greatest."""
PARTS = 240
FEWEST_BINS, MOST_BINS = 8, 48


@dataclass(frozen=True)
class Tick:
    """A label at ``place`` percent, from the left or from the bottom."""

    place: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A line across the chart at ``place`` percent."""

    place: float
    text: str
    kind: str


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        dots, line, area, errors: SVG path data, empty where there is nothing.
        about: what it shows, in words.
        remark: what it leaves out.
    """

    about: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    marks: tuple[Mark, ...] = ()
    dots: str = ""
    line: str = ""
    area: str = ""
    errors: str = ""
    remark: str = ""


def over_time(iterations: Sequence[int], ns: Sequence[int]) -> Chart | None:
    """Latency by iteration; 0 ns stands for an iteration that raised."""
    good = sorted(latency for latency in ns if latency)
    if not good:
        return None
    top = _top(good)
    first, last = min(iterations), max(iterations)
    places = [(i - first) / max(1, last - first) * ROOM for i in iterations]
    pairs = [(x, latency) for x, latency in zip(places, ns, strict=True) if latency]
    few = len(pairs) <= MOST_DOTS
    above = sum(latency > top for latency in good)
    remark = f"{above} of {len(good)} are above the chart, up to {show_duration(good[-1] / 1e9)}" if above else ""
    return Chart(
        about="Latency of each iteration" if few else "Latency over the iterations: median, and least to greatest",
        across=tuple(Tick((at - first) / max(1, last - first) * 100, f"{at:,.0f}") for at in steps(first, last, 4)),
        up=tuple(_up(top)),
        marks=(Mark(_percent(percentile(good, 0.5), top), "p50", "middle"),),
        dots=_dots(pairs, top) if few else "",
        line="" if few else _line(pairs, top),
        area="" if few else _area(pairs, top),
        errors="".join(f"M{x:.1f} 1000V940" for x, latency in zip(places, ns, strict=True) if not latency),
        remark=remark,
    )


def distribution(ns: Sequence[int]) -> Chart | None:
    """How many iterations took how long, with the percentiles."""
    good = sorted(latency for latency in ns if latency)
    if len(good) < 2:
        return None
    top, low = _top(good), good[0]
    span = max(top - low, 1)
    bins = max(FEWEST_BINS, min(MOST_BINS, round(2 * math.sqrt(len(good)))))
    counts = [0] * bins
    for latency in good:
        if latency <= top:
            counts[min(bins - 1, int((latency - low) / span * bins))] += 1
    most, above = max(counts), sum(latency > top for latency in good)
    marks = [(share, percentile(good, share)) for share in (0.5, 0.95, 0.99)]
    return Chart(
        about="How many iterations took how long",
        across=tuple(Tick((at - low) / span * 100, show_duration(at / 1e9)) for at in steps(low, top, 4)),
        up=tuple(Tick(at / most * 100, f"{at:,.0f}") for at in steps(0, most, 3) if at == int(at)),
        marks=tuple(
            Mark((at - low) / span * 100, f"p{share * 100:.0f}", "middle" if share == 0.5 else "tail")
            for share, at in marks
            if at <= top
        ),
        area="".join(_bar(number, bins, count / most) for number, count in enumerate(counts) if count),
        remark=f"{above} more took longer" if above else "",
    )


def _top(good: Sequence[int]) -> float:
    """What the chart shows: everything, unless a few iterations would press the others to the ground."""
    usual = max(percentile(good, 0.99) * 1.25, percentile(good, 0.5) * 2)
    return min(good[-1] * 1.05, usual)


def _percent(value: float, top: float) -> float:
    return min(100.0, value / top * 100)


def _y(latency: float, top: float) -> float:
    return ROOM - min(1.0, latency / top) * ROOM


def _dots(pairs: Sequence[tuple[float, int]], top: float) -> str:
    return "".join(f"M{x:.1f} {_y(latency, top):.1f}h0" for x, latency in pairs)


def _parts(pairs: Sequence[tuple[float, int]]) -> Iterator[tuple[float, list[int]]]:
    """(middle, latencies) of equally many iterations each, the latencies in order of size."""
    size = math.ceil(len(pairs) / PARTS)
    for start in range(0, len(pairs), size):
        part = pairs[start : start + size]
        yield part[len(part) // 2][0], sorted(latency for _, latency in part)


def _line(pairs: Sequence[tuple[float, int]], top: float) -> str:
    points = [f"{x:.1f} {_y(percentile(part, 0.5), top):.1f}" for x, part in _parts(pairs)]
    return "M" + "L".join(points)


def _area(pairs: Sequence[tuple[float, int]], top: float) -> str:
    parts = list(_parts(pairs))
    upper = [f"{x:.1f} {_y(part[-1], top):.1f}" for x, part in parts]
    lower = [f"{x:.1f} {_y(part[0], top):.1f}" for x, part in reversed(parts)]
    return "M" + "L".join(upper + lower) + "Z"


def _bar(number: int, bins: int, share: float) -> str:
    width = ROOM / bins
    return f"M{number * width + 1:.1f} 1000V{ROOM - share * ROOM:.1f}h{width - 2:.1f}V1000Z"


def _up(top: float) -> Iterator[Tick]:
    for at in steps(0, top, 4):
        yield Tick(at / top * 100, show_duration(at / 1e9) if at else "0")


def steps(low: float, high: float, about: int) -> list[float]:
    """Round numbers from ``low`` to ``high``, about so many of them."""
    if high <= low:
        return [low]
    raw = (high - low) / about
    scale = 10 ** math.floor(math.log10(raw))
    step = next(factor * scale for factor in (1, 2, 2.5, 5, 10) if factor * scale >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]
