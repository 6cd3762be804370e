"""Rows of the benchmark's table: a ratio with its spread, beside the ratio of the script against itself."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Ratios:
    """Ratios of several rounds: the median, and the 10th and 90th percentile."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3g} ({self.low:.3g}-{self.high:.3g})"


def spread(values: Sequence[float]) -> Ratios:
    ordered = sorted(values)
    last = len(ordered) - 1
    return Ratios(statistics.median(ordered), ordered[round(0.1 * last)], ordered[round(0.9 * last)])


@dataclass(frozen=True)
class Row:
    """One line.

    Attributes:
        script, cgspec: medians of what was measured, with units, for people.
        same: the script against itself; None where that says nothing.
        reach: what the ratio is to be; ``held``: whether it is; None where nothing is asked.
    """

    what: str
    script: str
    cgspec: str
    ratio: Ratios
    same: Ratios | None
    reach: str
    held: bool | None

    def as_data(self) -> dict[str, object]:
        return asdict(self)


def row_of(data: dict[str, object]) -> Row:
    same = data["same"]
    ratios = {"ratio": Ratios(**data["ratio"]), "same": None if same is None else Ratios(**same)}  # type: ignore[arg-type]
    return Row(**{**data, **ratios})  # type: ignore[arg-type]


def within(what: str, script: str, cgspec: str, ratio: Ratios, same: Ratios) -> Row:
    """Held where the ratio is no larger than the script is against itself."""
    limit = max(1.0, same.high)
    return Row(what, script, cgspec, ratio, same, f"≤ A/A ({limit:.3g})", ratio.middle <= limit)


def at_most(what: str, script: str, cgspec: str, ratio: Ratios, same: Ratios | None, limit: float) -> Row:
    return Row(what, script, cgspec, ratio, same, f"≤ {limit:g}", ratio.middle <= limit)


def at_least(what: str, script: str, cgspec: str, ratio: Ratios, same: Ratios | None, limit: float) -> Row:
    return Row(what, script, cgspec, ratio, same, f"≥ {limit:g}", ratio.middle >= limit)


def said(what: str, script: str, cgspec: str, ratio: Ratios, same: Ratios | None) -> Row:
    """A row of which nothing is asked."""
    return Row(what, script, cgspec, ratio, same, "", None)


HEAD = ("what", "script", "cgspec", "ratio (10-90%)", "A/A (10-90%)", "reach", "")


def shown(rows: Sequence[Row]) -> str:
    """The table as text."""
    marks = {True: "held", False: "NOT HELD", None: ""}
    lines = [HEAD]
    for row in rows:
        same = str(row.same) if row.same is not None else ""
        lines.append((row.what, row.script, row.cgspec, str(row.ratio), same, row.reach, marks[row.held]))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])


def seconds(value: float) -> str:
    """A duration for people."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.0f} MB"


def rate(value: float) -> str:
    return f"{value:.4g}/s"
