"""Runs a sweep: one run for each point and repeat, one table, actors that live on while the next run needs the same.

The folder of a sweep holds ``sweep.json`` (written after every run, so that a killed sweep can be resumed), and below
``points/<number>/`` the run folders of each point's repeats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cgspec import sweeping
from cgspec.errors import UsageError
from cgspec.folder import RunFolder
from cgspec.phases import Observer
from cgspec.running import Job, Live, Result, run
from cgspec.spec import SweepSpec
from cgspec.sweeping import Point

FILE = "sweep.json"
INTERRUPTED = 130


class Turn(BaseModel):
    """One run of a sweep, in ``sweep.json``; ``faults``: what ended it, and the expectations that failed."""

    model_config = ConfigDict(extra="ignore")

    point: int
    repeat: int
    values: dict[str, Any]
    run_dir: str
    status: str
    exit_code: int
    p50_us: float | None = None
    p95_us: float | None = None
    throughput_per_s: float | None = None
    metrics: dict[str, float | None] = {}
    faults: list[str] = []


class SweepRecord(BaseModel):
    """``sweep.json``: what was swept, and what became of it so far."""

    model_config = ConfigDict(extra="ignore")

    schema_version: int = 1
    name: str
    fingerprint: str
    planned: int
    turns: list[Turn] = []


@dataclass(frozen=True)
class Row:
    """One point in the table: medians over its repeats, and how far the repeats' p50 lie apart.

    ``metrics`` are the spec's own.
    """

    label: str
    runs: int
    status: str
    p50_us: float | None
    spread: float | None
    p95_us: float | None
    throughput_per_s: float | None
    metrics: Mapping[str, float | None]


@dataclass
class Sweep:
    """A sweep under way.

    Attributes:
        name: the spec's.
        job: makes the job of a point, which puts its run folder below ``out`` under the point's number.
        data: the spec's merged data; a sweep is resumed only with the same.
    """

    name: str
    spec: SweepSpec
    job: Callable[[Point, Path], Job]
    data: Mapping[str, Any]
    folder: RunFolder = field(init=False)
    record: SweepRecord = field(init=False)

    def begin(self, out: Path, resume: Path | None) -> None:
        """Makes the sweep's folder, or opens the one that is resumed.

        Raises:
            UsageError: what is to be resumed is no sweep of this spec.
        """
        planned = len(sweeping.points(self.spec)) * self.spec.repeats
        self.record = SweepRecord(name=self.name, fingerprint=_fingerprint(self.data), planned=planned)
        if resume is None:
            self.folder = RunFolder(out, self.name)
        else:
            self._resume(resume / FILE)
            self.folder = RunFolder.opened(resume)
        self._save()

    def _resume(self, file: Path) -> None:
        try:
            before = SweepRecord.model_validate_json(file.read_text(encoding="utf-8"))
        except (OSError, ValidationError, ValueError) as error:
            raise UsageError(f"{file.parent} cannot be resumed: {str(error).splitlines()[0]}") from None
        if before.fingerprint != self.record.fingerprint:
            raise UsageError(f"{file.parent} is a sweep of another spec, or the spec was changed since")
        self.record = before

    def run(self, observer: Observer) -> int:
        """Runs what is not done yet; a run that fails does not keep the others from running.

        Returns:
            The exit code: the greatest of the runs' own.
        """
        done = {(turn.point, turn.repeat): turn for turn in self.record.turns if turn.exit_code <= 1}
        self.record.turns = list(done.values())
        live = Live()
        try:
            for point, repeat in sweeping.turns(self.spec):
                if (point.number, repeat) in done:
                    continue
                observer.note(f"{len(self.record.turns) + 1} of {self.record.planned}: {point.label}")
                turn = self._turn(point, repeat, observer, live)
                self.record.turns.append(turn)
                self._save()
                if turn.exit_code == INTERRUPTED:
                    return INTERRUPTED
        finally:
            live.end()
            self._present(observer)
            self.folder.close()
        return max((turn.exit_code for turn in self.record.turns), default=0)

    def _present(self, observer: Observer) -> None:
        from cgspec.views import sweep_report

        try:
            sweep_report.write(self.path)
        except Exception as error:
            observer.note(f"the report of the sweep could not be made: {type(error).__name__}: {error}")

    def _turn(self, point: Point, repeat: int, observer: Observer, live: Live) -> Turn:
        job = self.job(point, self.path / "points")
        result = run(job, observer, live=None if self.spec.fresh else live)
        return _told(point, repeat, result, self.path)

    @property
    def path(self) -> Path:
        """The sweep's folder."""
        return self.folder.path

    def _save(self) -> None:
        self.folder.write(FILE, self.record.model_dump_json(indent=2) + "\n")


def rows(sweep: Sweep) -> Iterator[Row]:
    """The table, in the order of the points."""
    for point in sweeping.points(sweep.spec):
        turns = [turn for turn in sweep.record.turns if turn.point == point.number]
        if turns:
            yield _row(point, turns)


def _row(point: Point, turns: list[Turn]) -> Row:
    p50s = [turn.p50_us for turn in turns if turn.p50_us is not None]
    spread = (max(p50s) - min(p50s)) / median(p50s) if len(p50s) > 1 and median(p50s) else None
    statuses = list(dict.fromkeys(turn.status for turn in turns))
    return Row(
        point.label,
        len(turns),
        ", ".join(statuses),
        _middle([turn.p50_us for turn in turns]),
        spread,
        _middle([turn.p95_us for turn in turns]),
        _middle([turn.throughput_per_s for turn in turns]),
        {name: _middle([turn.metrics.get(name) for turn in turns]) for turn in turns for name in turn.metrics},
    )


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _told(point: Point, repeat: int, result: Result, sweep: Path) -> Turn:
    from cgspec.views.summary import faults

    measured = result.record.phase("measure")
    latency = measured.latency_us if measured is not None else None
    return Turn(
        point=point.number,
        repeat=repeat,
        values=dict(point.values),
        run_dir=str(result.run_dir.relative_to(sweep)),
        status=result.status,
        exit_code=result.exit_code,
        p50_us=latency.p50 if latency is not None else None,
        p95_us=latency.p95 if latency is not None else None,
        throughput_per_s=measured.throughput_per_s if measured is not None else None,
        metrics=result.record.metrics,
        faults=faults(result.record),
    )


def _fingerprint(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()
