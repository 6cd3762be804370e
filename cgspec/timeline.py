"""Reads what the clocks left in a run folder: ``timeline.csv`` (the flight recorder), ``samples.csv`` (the driver) and
``channels.csv`` (reads and writes, where a phase timed them).

All are in ns of the driver's ``time.monotonic_ns``. A phase is a ``Segment``: the files are read once, row by row, and
two phases with the same label are two segments. What is missing, or was cut off when a run was killed, is not there.
"""

from __future__ import annotations

import csv
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cgspec.record import PhaseRecord

TIMELINE, SAMPLES, CHANNELS = "timeline.csv", "samples.csv", "channels.csv"


@dataclass
class Rows:
    """Intervals of one task, or of the driver: ``iteration[k]`` ran from ``start[k]`` to ``end[k]``, in ns.

    ``end`` is 0 for an iteration of the driver that raised.
    """

    iteration: array[int] = field(default_factory=lambda: array("q"))
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))

    def add(self, iteration: int, start: int, end: int) -> None:
        """One more interval."""
        self.iteration.append(iteration)
        self.start.append(start)
        self.end.append(end)

    def lengths(self) -> list[int]:
        """The ns of every interval that has an end."""
        return [end - start for start, end in zip(self.start, self.end, strict=True) if end]

    def by_iteration(self) -> Mapping[int, tuple[int, int]]:
        """Start and end of every iteration that is held."""
        return _ByIteration(self)

    def __len__(self) -> int:
        return len(self.start)


class _ByIteration(Mapping[int, tuple[int, int]]):
    """Rows by their iteration, which ascends in a segment; nothing is copied, since there may be a million."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __getitem__(self, iteration: int) -> tuple[int, int]:
        rows = self._rows
        place = bisect_left(rows.iteration, iteration)
        if place == len(rows.iteration) or rows.iteration[place] != iteration:
            raise KeyError(iteration)
        return rows.start[place], rows.end[place]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows.iteration)

    def __len__(self) -> int:
        return len(self._rows)


@dataclass
class Segment:
    """One phase: ``tasks`` by name, and the driver's iterations.

    ``device`` holds tasks by their GPU's clock; ``channels`` their reads and writes, by name and ``read`` or ``write``.
    """

    label: str
    tasks: dict[str, Rows] = field(default_factory=dict)
    driver: Rows = field(default_factory=Rows)
    device: dict[str, Rows] = field(default_factory=dict)
    channels: dict[tuple[str, str], Rows] = field(default_factory=dict)

    @property
    def busy(self) -> dict[str, Rows]:
        """What a run's numbers are made of: the times by a task's GPU where it was timed, else those by the host."""
        return {**self.tasks, **self.device}


def folder_of(run: str | Path) -> Path:
    """The folder of a run that ``record.load`` understands."""
    path = Path(run)
    if path.is_file():
        return path.parent / path.read_text(encoding="utf-8").strip() if path.name == "latest" else path.parent
    return path


def label_of(phase: PhaseRecord) -> str:
    """A phase's name in the two files."""
    return f"{phase.name}-{phase.profiled}" if phase.name == "profile" and phase.profiled else phase.name


def read_segments(run_dir: Path) -> list[Segment]:
    """All phases, in the order in which they happened."""
    tasks = list(_task_segments(run_dir / TIMELINE))
    drivers = list(_driver_segments(run_dir / SAMPLES))
    found: list[Segment] = []
    for segment in drivers:
        same = next((other for other in tasks if other.label == segment.label), None)
        if same is not None:
            tasks.remove(same)
            segment.tasks, segment.device = same.tasks, same.device
        found.append(segment)
    found += tasks
    _add_channels(run_dir / CHANNELS, found)
    return found


def _add_channels(path: Path, segments: list[Segment]) -> None:
    """Reads and writes, to the first phase of their label."""
    first = {segment.label: segment for segment in reversed(segments)}
    for label, place, task, operation, began, ended in _rows(path, 6):
        if label in first and ended and int(began) <= int(ended):
            rows = first[label].channels.setdefault((task, operation), Rows())
            rows.add(int(place), int(began), int(ended))


def read_phase(run_dir: Path, label: str) -> Segment | None:
    """The first phase with that label."""
    return next((segment for segment in read_segments(run_dir) if segment.label == label), None)


def _task_segments(path: Path) -> Iterator[Segment]:
    segment, rows, current = None, Rows(), None
    for label, place, task, began, ended, *device in _rows(path, 5):
        if not ended or int(ended) < int(began):
            continue
        iteration, start, end = int(place), int(began), int(ended)
        again = segment is not None and task in segment.tasks
        if (
            segment is None
            or label != segment.label
            or (again and (task != current or iteration <= rows.iteration[-1]))
        ):
            if segment is not None:
                yield segment
            segment, current = Segment(label), None
        if task != current:
            current, rows = task, segment.tasks.setdefault(task, Rows())
        rows.add(iteration, start, end)
        if len(device) == 2 and all(device) and int(device[0]) <= int(device[1]):
            segment.device.setdefault(task, Rows()).add(iteration, int(device[0]), int(device[1]))
    if segment is not None:
        yield segment


def _driver_segments(path: Path) -> Iterator[Segment]:
    segment = None
    for label, iteration, submitted, latency in _rows(path, 4):
        place, start = int(iteration), int(submitted)
        if segment is None or label != segment.label or place <= segment.driver.iteration[-1]:
            if segment is not None:
                yield segment
            segment = Segment(label)
        segment.driver.add(place, start, start + int(latency) if latency else 0)
    if segment is not None:
        yield segment


def _rows(path: Path, columns: int) -> Iterator[list[str]]:
    """The rows below the head, which has so many columns or more; a last one that was cut off is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file)
        width = len(next(reader, ()))
        for row in reader:
            if len(row) == width >= columns and _whole(row[1]) and _numbers(row[columns - 2 :]):
                yield row


def _numbers(cells: list[str]) -> bool:
    """Whole numbers; all but the first may be missing."""
    return _whole(cells[0]) and all(_whole(cell or "0") for cell in cells[1:])


def _whole(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()
