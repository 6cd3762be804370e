"""The record of a run, ``run.json``: what presenters read, today and a year later, without Ray.

A field is only ever added, with a default; ``schema_version`` grows when a reader has to know. Times are in µs, sizes
in bytes, moments in UTC (ISO 8601). ``load`` reads a run folder or the file itself.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cgspec.errors import UsageError

SCHEMA_VERSION = 1
FILE = "run.json"
LONG_CHAIN = 5
"""From so many tasks on, only the ends of a fused chain are named."""


class Part(BaseModel):
    """What all parts share: a key of a later version is left alone."""

    model_config = ConfigDict(extra="ignore")


class Times(Part):
    """A distribution in µs; the confidence intervals (95%) are None where there are too few samples."""

    count: int
    p50: float
    p95: float
    p99: float
    mean: float
    min: float
    max: float
    p50_ci: tuple[float, float] | None = None
    p95_ci: tuple[float, float] | None = None


class ClockRecord(Part):
    """What was added to a node's CLOCK_MONOTONIC to have the driver's, right to within ``error_ns``."""

    offset_ns: int
    error_ns: int


class PhaseRecord(Part):
    """One phase.

    ``iterations`` were completed; ``errors`` of them raised and have no latency. ``profiled`` names what watched, in a
    measure phase too (Nsight watches whole processes). ``seconds`` is the time under way, without the making of inputs
    and the looking at results; ``first_held`` is the first iteration of which the recorder still has times. ``clocks``
    are those of other machines' nodes, by address.
    """

    name: str
    iterations: int
    asked: int
    errors: int = 0
    latency_us: Times | None = None
    throughput_per_s: float | None = None
    seconds: float = 0.0
    profiled: str | None = None
    steady: str = ""
    steady_reason: str = ""
    first_held: int = 0
    clocks: dict[str, ClockRecord] = Field(default_factory=dict)
    files: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


class ActorRecord(Part):
    """One actor member; ``tasks`` in the order in which it executes them.

    Where ``device_error_us`` is known, its busy times are by its GPU's clock (CUDA events), which is on the host's to
    within so much; everywhere else they are by the host's.
    """

    name: str
    class_: str = Field(alias="class")
    num_gpus: float = 0
    node: str | None = None
    tasks: list[str] = Field(default_factory=list)
    busy_us: float | None = None
    utilisation: float | None = None
    peak_bytes: int | None = None
    device_error_us: float | None = None


class TaskRecord(Part):
    """One task instance, in the measure phase.

    ``host_us`` is its time by the host's clock where ``busy_us`` is not. ``read_us`` and ``write_us`` are what its
    reads (with the waiting for whoever writes) and writes of channels took in each iteration of a profile phase that
    timed them.
    """

    busy_us: Times | None = None
    host_us: Times | None = None
    read_us: Times | None = None
    write_us: Times | None = None
    line: str | None = None


class LimitsRecord(Part):
    """The graph's own limits (``limits.Limits``), in µs; ``advice`` says what bounds the run, and what to change first.

    ``busiest_task`` is the one that takes the most of ``busiest_actor``'s time.
    """

    critical_path_us: float
    critical_path: list[str]
    busiest_actor_us: float
    busiest_actor: str
    busiest_task: str = ""
    advice: str = ""


class VerdictRecord(Part):
    """One condition of ``expect`` (``expectations.Verdict``)."""

    what: str
    passed: bool | None
    expected: str
    found: str
    iteration: int | None = None
    looked: int = 0
    failed: int = 0
    margin: float | None = None
    file: str | None = None
    line: int | None = None


class FailureRecord(Part):
    """What ended the run early (``errors.Failure``), with the place of the spec's entry."""

    kind: str
    message: str
    task: str | None = None
    phase: str | None = None
    iteration: int | None = None
    actor: str | None = None
    node: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    traceback: str = ""
    waiting: list[str] = Field(default_factory=list)


class Machine(Part):
    """Where it ran, and with what."""

    host: str = ""
    platform: str = ""
    cpus: int | None = None
    memory_bytes: int | None = None
    load: tuple[float, float, float] | None = None
    gpus: list[str] = Field(default_factory=list)
    versions: dict[str, str | None] = Field(default_factory=dict)
    git_commit: str | None = None
    git_dirty: bool | None = None


class Record(Part):
    """A whole run.

    ``status`` is ``running`` until the record is closed, then the word of ``run --json``, or ``crashed`` where cgspec
    itself failed. ``pid`` and ``machine.host`` tell whether a run that says ``running`` still does (``state``).
    ``where`` is the socket on which a live run tells where it is. ``metrics`` are the spec's own, None where one has no
    value.
    """

    schema_version: int = SCHEMA_VERSION
    id: str
    name: str
    status: str
    started: str
    ended: str | None = None
    pid: int = 0
    where: str | None = None
    run_dir: str = ""
    spec_file: str | None = None
    root: str = ""
    engine: str = ""
    rehearsal: bool = False
    inflight: int = 1
    overrides: dict[str, Any] = Field(default_factory=dict)
    fused: list[list[str]] = Field(default_factory=list)
    machine: Machine = Field(default_factory=Machine)
    startup: dict[str, float] = Field(default_factory=dict)
    first_result_s: float | None = None
    actors: list[ActorRecord] = Field(default_factory=list)
    phases: list[PhaseRecord] = Field(default_factory=list)
    tasks: dict[str, TaskRecord] = Field(default_factory=dict)
    limits: LimitsRecord | None = None
    metrics: dict[str, float | None] = Field(default_factory=dict)
    outputs: dict[str, Any] = Field(default_factory=dict)
    expect: list[VerdictRecord] = Field(default_factory=list)
    failure: FailureRecord | None = None
    findings: list[dict[str, Any]] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)

    def phase(self, name: str) -> PhaseRecord | None:
        """The phase of that name, the first where there are several."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def state(self) -> str:
        """``status``, but ``killed`` where the process that was running is gone."""
        if self.status == "running" and self.machine.host in ("", platform.node()) and not _alive(self.pid):
            return "killed"
        return self.status

    @property
    def fused_text(self) -> str:
        """The tasks that ran as one call, for people; empty where there are none."""
        return "; ".join(
            "+".join(names) if len(names) < LONG_CHAIN else f"{names[0]} to {names[-1]} ({len(names)} tasks)"
            for names in self.fused
        )

    def as_json(self) -> str:
        return self.model_dump_json(indent=2, by_alias=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def load(run: str | Path) -> Record:
    """The record of a run folder, of ``runs/<name>/latest``, or of the file itself.

    Raises:
        UsageError: there is none, it cannot be read, or a later cgspec wrote it.
    """
    path = Path(run)
    if path.is_file() and path.name == "latest":
        path = path.parent / path.read_text(encoding="utf-8").strip()
    path = path / FILE if path.is_dir() else path
    try:
        record = Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{run} is no run folder: it has no {FILE}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "as a whole"
        raise UsageError(f"{path} is no record of a run: {place}: {first['msg']}") from None
    if record.schema_version > SCHEMA_VERSION:
        raise UsageError(
            f"{path} was written by a later cgspec (schema {record.schema_version}, here {SCHEMA_VERSION})"
        )
    return record
