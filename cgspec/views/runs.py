"""The runs below a folder, the newest first: how each ended, when, and how fast it was; broken ones are told too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.folder import LATEST
from cgspec.quantities import show_duration, show_rate
from cgspec.record import load
from cgspec.views.summary import WORDS

SWEEP = "sweep.json"
UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Entry:
    """One run folder, or one sweep's; ``status`` is the record's word, ``killed``, ``sweep`` or ``unreadable``."""

    name: str
    id: str
    path: str
    status: str
    started: str = ""
    engine: str = ""
    rehearsal: bool = False
    p50_us: float | None = None
    throughput_per_s: float | None = None
    remark: str = ""


def runs(out: str | Path = "runs", *, name: str | None = None) -> list[Entry]:
    """Every run folder below ``out``; with ``name``, those of that spec.

    Raises:
        UsageError: there is no such folder, or no run of that name.
    """
    above = Path(out)
    if not above.is_dir():
        raise UsageError(f"there is no folder {out}: cgspec run makes it, and --out DIR chooses another")
    folders = list(_folders(above))
    names = list(dict.fromkeys(path.parent.name for path in folders))
    if name is not None and name not in names:
        raise UsageError(f"there are no runs named {name} in {out}; {suggest(name, names, noun='runs')}")
    found = [_entry(path) for path in folders if name in (None, path.parent.name)]
    return sorted(found, key=lambda entry: (entry.id, entry.name), reverse=True)


def _folders(above: Path) -> Iterator[Path]:
    """``<name>/<id>``; ``latest`` and what is hidden is left out."""
    for parent in sorted(above.iterdir()):
        if parent.is_dir() and not parent.name.startswith("."):
            yield from (path for path in sorted(parent.iterdir()) if path.is_dir() and _is_run(path))


def _is_run(path: Path) -> bool:
    return path.name != LATEST and not path.name.startswith(".")


def _entry(path: Path) -> Entry:
    if (path / SWEEP).exists():
        return _sweep(path)
    try:
        record = load(path)
    except UsageError as error:
        return Entry(path.parent.name, path.name, str(path), UNREADABLE, started=_moment(path.name), remark=str(error))
    measure = record.phase("measure")
    times = measure.latency_us if measure is not None else None
    failed = sum(verdict.passed is False for verdict in record.expect)
    remark = record.failure.message if record.failure is not None else f"{failed} failed" if failed else ""
    return Entry(
        name=record.name,
        id=path.name,
        path=str(path),
        status=record.state,
        started=record.started,
        engine=record.engine,
        rehearsal=record.rehearsal,
        p50_us=times.p50 if times is not None else None,
        throughput_per_s=measure.throughput_per_s if measure is not None else None,
        remark=remark,
    )


def _sweep(path: Path) -> Entry:
    try:
        told = json.loads((path / SWEEP).read_bytes())
        turns, name = told["turns"], str(told["name"])
        bad = sum(turn["exit_code"] != 0 for turn in turns)
        remark = f"{len(turns)} of {told['planned']} runs" + (f", {bad} did not pass" if bad else "")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remark = f"{path / SWEEP} cannot be read: {error}"
        return Entry(path.parent.name, path.name, str(path), UNREADABLE, started=_moment(path.name), remark=remark)
    return Entry(name, path.name, str(path), "sweep", started=_moment(path.name), remark=remark)


def _moment(id: str) -> str:
    """When a run began, from its folder's name."""
    day, _, clock = id[:20].partition("T")
    return f"{day}T{clock.replace('-', ':')}" if clock.endswith("Z") else ""


def text(entries: Sequence[Entry]) -> str:
    """A table for people."""
    if not entries:
        return "no runs yet"
    rows = [("when (UTC)", "name", "how it ended", "p50", "throughput", "folder")]
    rows += [_row(entry) for entry in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    remarks = [f"  {entry.id}: {_one_line(entry.remark)}" for entry in entries if entry.status == UNREADABLE]
    return "\n".join(lines + remarks)


def _row(entry: Entry) -> tuple[str, str, str, str, str, str]:
    ended = WORDS.get(entry.status, entry.status) + (" (rehearsal)" if entry.rehearsal else "")
    if entry.status == "sweep":
        ended = f"sweep: {entry.remark}"
    latency = "" if entry.p50_us is None else show_duration(entry.p50_us / 1e6)
    rate = "" if entry.throughput_per_s is None else show_rate(entry.throughput_per_s)
    return entry.started[:19].replace("T", " "), entry.name, ended, latency, rate, entry.path


def _one_line(text: str) -> str:
    return " ".join(text.split())


def as_data(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(entry) for entry in entries]
