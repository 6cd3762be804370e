"""Merges a run's traces into one file for Perfetto, from the run folder alone, in memory that does not grow with them.

A process stands for each actor: its tasks as the flight recorder saw them, with the iteration and the spec's line, and
beneath them the torch profiler's own events. Another stands for the driver and its iterations. Arrows follow the
graph's edges. Times are µs since the first moment that is shown, by the recorder's clock; the clock of each torch trace
is moved to it (``alignment.align``), and how exactly is among the arguments of the actor's ``process_labels``. So are
the times of nodes that began at another moment than the driver's (``alignment.foreign``), which a note says.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cgspec.alignment import on_the_drivers_clock
from cgspec.errors import UsageError
from cgspec.quantities import show_duration
from cgspec.record import PhaseRecord, Record, load
from cgspec.timeline import Segment, folder_of, label_of, read_segments
from cgspec.views.trace_events import Recorded, metadata
from cgspec.views.trace_torch import Torch

MERGED = "trace/merged.json.gz"
PLAN = "plan.json"
"""What ``cgspec plan --json`` prints, kept in the run folder: who reads whom."""
SUFFIX = ".pt.trace.json.gz"
LEVEL = 3
"""Of gzip: twice as fast as the default, and a few percent larger."""


@dataclass
class Merged:
    """What was written: the file, how many events it holds, and sentences about what could not be read."""

    path: Path
    events: int = 0
    phases: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(run: str | Path, *, output: Path | None = None, phases: Iterable[str] | None = None) -> Merged:
    """Writes one trace of a run, by default to ``trace/merged.json.gz`` in its folder.

    Args:
        phases: names of phases as in ``timeline.csv`` (``measure``, ``profile-torch``); by default those that were
            profiled, or the measure phase where none was.

    Raises:
        UsageError: there is no such run or phase, or the file cannot be written.
    """
    record, run_dir = load(run), folder_of(run)
    segments = _chosen(run_dir, phases)
    target = output or run_dir / MERGED
    merged = Merged(target, phases=[segment.label for segment, _ in segments])
    new = target.with_name(f".{target.name}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(new, "wt", compresslevel=LEVEL, encoding="utf-8") as file:
            _write(file, record, run_dir, segments, merged)
        os.replace(new, target)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
    return merged


def told(merged: Merged) -> str:
    """What the command says."""
    head = f"{merged.path}: {merged.events:,} events of {', '.join(merged.phases)}"
    notes = [f"note: {note}" for note in merged.notes]
    return "\n".join([head, *notes, "next: open https://ui.perfetto.dev and load it"])


def _chosen(run_dir: Path, phases: Iterable[str] | None) -> list[tuple[Segment, int]]:
    """The phases to show, each with its place among those of its label."""
    found: list[tuple[Segment, int]] = []
    for segment in read_segments(run_dir):
        found.append((segment, sum(other.label == segment.label for other, _ in found)))
    if phases is None:
        profiled = [pair for pair in found if pair[0].label.startswith("profile") and pair[0].tasks]
        chosen = profiled or [pair for pair in found if pair[0].label == "measure"]
    else:
        wanted = set(phases)
        chosen = [pair for pair in found if pair[0].label in wanted]
    if not chosen:
        names = ", ".join(dict.fromkeys(segment.label for segment, _ in found)) or "no phases"
        raise UsageError(f"{run_dir} holds no times of {', '.join(phases or ['a measured phase'])}; it has {names}")
    return chosen


def _write(file: IO[str], record: Record, run_dir: Path, segments: list[tuple[Segment, int]], merged: Merged) -> None:
    segments = [(_on_one_clock(record, segment, merged), place) for segment, place in segments]
    origin = min((rows.start[0] for segment, _ in segments for rows in _all_rows(segment) if len(rows)), default=0)
    recorded = Recorded(record, _edges(run_dir), origin)
    torch = [trace for segment, place in segments for trace in _traces(record, run_dir, segment, place, origin)]
    writer = _Writer(file)
    writer.start({"displayTimeUnit": "ms", "run": record.id, "spec": record.name, "clock": "CLOCK_MONOTONIC, driver"})
    writer.add(metadata(record, {trace.name: trace.labels() for trace in torch if not trace.whole_process}))
    for segment, _ in segments:
        writer.add(recorded.events(segment))
    for trace in torch:
        writer.add(trace.events())
        merged.notes += trace.notes
    writer.end()
    merged.events = writer.count


def _on_one_clock(record: Record, segment: Segment, merged: Merged) -> Segment:
    told, moved = on_the_drivers_clock(segment, record)
    for node, each in moved.items():
        error = show_duration(each.error / 1e9)
        merged.notes.append(f"the clock of {node} was aligned with the driver's in {segment.label}, to ±{error}")
    return told


def _all_rows(segment: Segment) -> Iterator[Any]:
    yield segment.driver
    yield from segment.tasks.values()
    yield from segment.device.values()
    yield from segment.channels.values()


def _traces(record: Record, run_dir: Path, segment: Segment, place: int, origin: int) -> Iterator[Torch]:
    """The torch traces of one phase, aligned with the recorder."""
    same = [phase for phase in record.phases if label_of(phase) == segment.label]
    files = _trace_files(same[place], run_dir) if place < len(same) else []
    names = [actor.name for actor in record.actors]
    names += sorted({path.name.removesuffix(SUFFIX) for path in files}.difference(names))
    owners = [path.name.removesuffix(SUFFIX) for path in files]
    traces = [
        Torch(path, name, names.index(name), origin, whole_process=names.index(name) >= len(record.actors))
        for path, name in zip(files, owners, strict=True)
    ]
    for trace in traces:
        trace.look(segment.tasks)
    shared = [trace.alignment for trace in traces if trace.alignment is not None]
    for trace in traces:
        trace.settle(shared, segment.driver.start[0] if len(segment.driver) else origin)
    yield from traces


def _trace_files(phase: PhaseRecord, run_dir: Path) -> list[Path]:
    paths = [run_dir / name for name in phase.files if name.endswith(SUFFIX)]
    return [path for path in paths if path.is_file()]


def _edges(run_dir: Path) -> list[tuple[str, str]]:
    """(from, to) by name; none where an older run did not keep them."""
    try:
        plan = json.loads((run_dir / PLAN).read_bytes())
        return list(dict.fromkeys((str(edge["from"]), str(edge["to"])) for edge in plan["edges"]))
    except (OSError, ValueError, KeyError, TypeError):
        return []


class _Writer:
    """Writes events as they come."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self.count = 0

    def start(self, head: dict[str, Any]) -> None:
        self._file.write(self._encode(head)[:-1] + ',"traceEvents":[\n')

    def add(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            self._file.write((",\n" if self.count else "") + self._encode(event))
            self.count += 1

    def end(self) -> None:
        self._file.write("\n]}\n")
