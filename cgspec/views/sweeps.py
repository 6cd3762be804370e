"""A sweep as a table: one row for each point, medians over its repeats, the spec's own metrics as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cgspec.quantities import show_duration, show_rate
from cgspec.sweep import Row, Sweep, rows
from cgspec.sweeping import points

REPORT = "report.html"
MOST_FAULTS = 10
HEAD = ("point", "runs", "status", "p50", "spread", "p95", "throughput")


def text(sweep: Sweep) -> str:
    """The table, and where everything is."""
    table = list(rows(sweep))
    names = list(dict.fromkeys(name for row in table for name in row.metrics))
    cells = [(*HEAD, *names), *(_cells(row, names) for row in table)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEAD) + len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    done, planned = len(sweep.record.turns), sweep.record.planned
    left = "" if done == planned else f" ({planned - done} left: --resume {sweep.path})"
    head = [f"{sweep.name}: {done} of {planned} runs{left}", f"sweep folder: {sweep.path}"]
    head += [f"report: {sweep.path / REPORT}"] if (sweep.path / REPORT).is_file() else []
    return "\n".join([*head, "", *lines, *_faults(sweep)])


def _faults(sweep: Sweep) -> Iterator[str]:
    """What was wrong, by run."""
    labels = {point.number: point.label for point in points(sweep.spec)}
    told = [
        f"{labels[turn.point]}, run {turn.repeat + 1}: {fault}" for turn in sweep.record.turns for fault in turn.faults
    ]
    yield from ["", *told[:MOST_FAULTS]] if told else []
    if len(told) > MOST_FAULTS:
        yield f"… {len(told) - MOST_FAULTS} more in sweep.json"


def _cells(row: Row, names: Sequence[str]) -> Sequence[str]:
    return (
        row.label,
        str(row.runs),
        row.status,
        _us(row.p50_us),
        "" if row.spread is None else f"{row.spread:.1%}",
        _us(row.p95_us),
        "" if row.throughput_per_s is None else show_rate(row.throughput_per_s),
        *("" if (value := row.metrics.get(name)) is None else f"{value:.4g}" for name in names),
    )


def _us(us: float | None) -> str:
    return "" if us is None else show_duration(us / 1e6)


def as_data(sweep: Sweep) -> dict[str, Any]:
    """The shape of ``run --json`` for a sweep."""
    turns = [turn.model_dump() for turn in sweep.record.turns]
    return {"sweep_dir": str(sweep.path), "name": sweep.name, "planned": sweep.record.planned, "runs": turns}
