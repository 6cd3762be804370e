"""What is said at the end of a run, from its record alone: a short text for people, and the shape of ``run --json``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from cgspec.diagnostics import Finding, finding_data
from cgspec.errors import CgspecError, RunError, SpecError
from cgspec.quantities import show_duration, show_rate
from cgspec.record import FailureRecord, PhaseRecord, Record, TaskRecord, Times, VerdictRecord
from cgspec.views.clocks import clocks
from cgspec.views.taming import printable

MOST_TASKS = 12
"""Tasks that the summary shows, the busiest first."""
MOST_VERDICTS = 20
MOST_LINES = 30
"""Lines of a user's traceback that the summary shows, the last ones."""

WORDS = {
    "passed": "passed",
    "expectation-failed": "an expectation failed",
    "task-raised": "a task raised",
    "timeout": "a deadline passed",
    "actor-died": "an actor died",
    "not-able": "cannot be run here",
    "interrupted": "interrupted",
    "invalid": "the spec asks for something that cannot be made",
    "crashed": "cgspec itself failed",
    "running": "still running",
    "killed": "killed",
}
"""Status to words for people."""

Style = str


@dataclass(frozen=True)
class Line:
    """A line of the summary; ``style`` is rich's."""

    text: str = ""
    style: Style = ""


def text(record: Record) -> str:
    """The summary as plain text."""
    return "".join(printable(line.text.rstrip()) + "\n" for line in lines(record))


def show(record: Record, stream: IO[str]) -> None:
    """Writes the summary, in colour where the stream is a terminal."""
    if not stream.isatty():
        stream.write(text(record))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for line in lines(record):
        console.print(Text(printable(line.text.rstrip()), style=line.style))


def lines(record: Record) -> Iterator[Line]:
    """The summary, line by line."""
    yield from _head(record)
    yield from _phases(record)
    yield from _tasks(record)
    yield from _limits(record)
    yield from _metrics(record)
    yield from _expect(record)
    yield from _failure(record)
    yield from _notes(record)
    yield from _next(record)


def _head(record: Record) -> Iterator[Line]:
    state = record.state
    marks = [record.engine] + ["rehearsal on CPUs"] * record.rehearsal
    good = "bold green" if state == "passed" else "bold yellow" if state in ("running", "interrupted") else "bold red"
    yield Line(f"{record.name}: {WORDS.get(state, state)} ({', '.join(marks)})", good)
    yield Line(f"run folder: {record.run_dir}")
    if record.first_result_s is not None:
        steps = ", ".join(f"{step} {show_duration(seconds)}" for step, seconds in record.startup.items())
        yield Line(f"first result after {show_duration(record.first_result_s)}" + (f" ({steps})" if steps else ""))
    if record.fused:
        yield Line(f"fused: {record.fused_text}")


def _phases(record: Record) -> Iterator[Line]:
    if not record.phases:
        return
    rows: list[Sequence[str]] = [("phase", "iterations", "p50", "p95", "p99", "throughput", "")]
    rows += [_phase_row(phase, record.inflight) for phase in record.phases]
    yield Line()
    yield from _table(rows)
    measure = record.phase("measure")
    if measure is not None and measure.latency_us is not None:
        yield from _confidence(measure, measure.latency_us, record.inflight)


def _phase_row(phase: PhaseRecord, inflight: int) -> tuple[str, ...]:
    count = f"{phase.iterations}" if phase.iterations == phase.asked else f"{phase.iterations} of {phase.asked}"
    times = phase.latency_us
    shown = [_us(times.p50), _us(times.p95), _us(times.p99)] if times else ["", "", ""]
    rate = "" if phase.throughput_per_s is None else show_rate(phase.throughput_per_s)
    remarks = [f"under {phase.profiled}"] * bool(phase.profiled) + [f"{phase.errors} raised"] * bool(phase.errors)
    return phase.name, count, *shown, rate, ", ".join(remarks)


def _confidence(phase: PhaseRecord, times: Times, inflight: int) -> Iterator[Line]:
    parts = []
    for name, interval in (("p50", times.p50_ci), ("p95", times.p95_ci)):
        if interval is not None:
            parts.append(f"{name} {_us(interval[0])} to {_us(interval[1])}")
    if parts:
        yield Line(f"95% confidence: {', '.join(parts)}", "dim")
    if inflight > 1:
        yield Line(f"latency includes queueing: {inflight} iterations are under way at once", "dim")
    if phase.steady not in ("", "too-few"):
        yield Line(f"{phase.steady}: {phase.steady_reason}", "dim" if phase.steady == "steady" else "yellow")


def _tasks(record: Record) -> Iterator[Line]:
    busy = [(name, task.busy_us) for name, task in record.tasks.items() if task.busy_us is not None]
    if not busy:
        return
    owners = {task: actor for actor in record.actors for task in actor.tasks}
    chosen = {name for name, _ in sorted(busy, key=lambda pair: -pair[1].p50)[:MOST_TASKS]}
    channels = any(record.tasks[name].read_us or record.tasks[name].write_us for name in chosen)
    rows = [("task", "actor", "busy p50", "p95", "actor busy") + ("read p50", "write p50") * channels]
    for name, times in busy:
        if name in chosen:
            owner = owners.get(name)
            share = "" if owner is None or owner.utilisation is None else f"{owner.utilisation * 100:.0f}%"
            told = (name, owner.name if owner else "", _us(times.p50), _us(times.p95), share)
            rows.append(told + _channels(record.tasks[name]) * channels)
    yield Line()
    yield from _table(rows)
    if len(busy) > len(chosen):
        yield Line(f"… the {len(chosen)} busiest of {len(busy)} tasks; run.json has them all", "dim")
    if channels:
        yield Line("read and write: of channels, in the profile phase; a read waits for whoever writes", "dim")
    yield from (Line(said, "dim") for said in clocks(record))


def _channels(task: TaskRecord) -> tuple[str, str]:
    read, write = (_us(times.p50) if times is not None else "" for times in (task.read_us, task.write_us))
    return read, write


def _limits(record: Record) -> Iterator[Line]:
    found = record.limits
    if found is None:
        return
    path = found.critical_path
    shown = " → ".join(path if len(path) <= 8 else [*path[:3], "…", *path[-3:]])
    yield Line()
    yield Line(f"critical path: {_us(found.critical_path_us)} ({shown})")
    rate = f", so at most {show_rate(1e6 / found.busiest_actor_us)}" if found.busiest_actor_us else ""
    most = f" (most of it {found.busiest_task})" if _several(record, found.busiest_actor) else ""
    yield Line(f"busiest actor: {found.busiest_actor}, {_us(found.busiest_actor_us)} an iteration{most}{rate}")
    if found.advice:
        yield Line(found.advice)


def _metrics(record: Record) -> Iterator[Line]:
    if not record.metrics:
        return
    yield Line()
    shown = [(name, "no value" if value is None else f"{value:.4g}") for name, value in record.metrics.items()]
    yield from _table([("metric", "value"), *shown])


def _several(record: Record, name: str) -> bool:
    """Whether an actor has more than one task."""
    return any(actor.name == name and len(actor.tasks) > 1 for actor in record.actors)


def _expect(record: Record) -> Iterator[Line]:
    if not record.expect:
        return
    counts = [
        (len([verdict for verdict in record.expect if verdict.passed is passed]), word)
        for passed, word in ((True, "passed"), (False, "failed"), (None, "not judged"))
    ]
    yield Line()
    yield Line("expectations: " + ", ".join(f"{count} {word}" for count, word in counts if count))
    over = record.failure is not None
    wanting = [verdict for verdict in record.expect if not (verdict.passed or (over and verdict.passed is None))]
    for verdict in wanting[:MOST_VERDICTS]:
        yield from _verdict(verdict)
    if len(wanting) > MOST_VERDICTS:
        yield Line(f"  … {len(wanting) - MOST_VERDICTS} more in run.json")


def faults(record: Record) -> list[str]:
    """What ended a run, and the expectations that failed, a line each."""
    ended = [record.failure.message.partition("\n")[0]] if record.failure is not None else []
    failed = [verdict for verdict in record.expect if verdict.passed is False]
    return ended + [f"{_which(verdict)}: expected {verdict.expected}, found {verdict.found}" for verdict in failed]


def _which(verdict: VerdictRecord) -> str:
    """What was expected, where the spec says so, and how often it failed."""
    place = f" ({verdict.file}:{verdict.line})" if verdict.file else ""
    times = f", iteration {verdict.iteration}" if verdict.iteration is not None else ""
    return verdict.what + place + times + (f" ({verdict.failed} of {verdict.looked} failed)" * (verdict.looked > 1))


def _verdict(verdict: VerdictRecord) -> Iterator[Line]:
    if verdict.passed is None:
        place = f" ({verdict.file}:{verdict.line})" if verdict.file else ""
        yield Line(f"  - {verdict.what}{place}: {verdict.found}", "yellow")
        return
    yield Line(f"  ✗ {_which(verdict)}", "red")
    yield Line(f"      expected  {verdict.expected}")
    yield Line(f"      found     {verdict.found}")


def _failure(record: Record) -> Iterator[Line]:
    failure = record.failure
    if failure is None:
        return
    yield Line()
    said = f"{_place(failure)}: {failure.message}" if record.status == "invalid" and failure.file else failure.message
    yield Line(said, "bold red" if record.status != "interrupted" else "bold yellow")
    if place := _where(failure):
        yield Line(f"  {place}")
    shown = failure.traceback.splitlines()
    if len(shown) > MOST_LINES:
        yield Line(f"  … {len(shown) - MOST_LINES} lines more in run.json", "dim")
    yield from (Line(f"  {line}") for line in shown[-MOST_LINES:])
    yield from (Line(f"  {line}", "yellow") for line in failure.waiting)


def _place(failure: FailureRecord) -> str:
    return f"{failure.file}:{failure.line}" + (f":{failure.column}" if failure.column else "")


def _where(failure: FailureRecord) -> str:
    parts = [_place(failure)] * bool(failure.file)
    parts += [f"task {failure.task}"] * bool(failure.task)
    if failure.iteration is not None:
        parts.append(f"iteration {failure.iteration}" + (f" of {failure.phase}" if failure.phase else ""))
    elif failure.phase:
        parts.append(f"phase {failure.phase}")
    if failure.actor:
        parts.append(f"actor {failure.actor}" + (f" on {failure.node}" if failure.node else ""))
    return ", ".join(parts)


def _notes(record: Record) -> Iterator[Line]:
    notes = [*record.notes, *(note for phase in record.phases for note in phase.notes)]
    for note in dict.fromkeys(notes):
        yield Line(f"note: {note}", "yellow")


def _next(record: Record) -> Iterator[Line]:
    if (command := next_command(record)) is not None:
        yield Line()
        yield Line(f"next: {command}", "bold")


def next_command(record: Record) -> str | None:
    """What a user would type next; None where nothing suggests itself."""
    failure = record.failure
    if record.status == "not-able" and not record.rehearsal and any(actor.num_gpus for actor in record.actors):
        return f"{_command(record)}{_engine(record)} --rehearse"
    if failure is not None:
        again = failure.iteration is not None and failure.task is not None and failure.kind in LOCAL_KINDS
        return f"{_command(record)} --only {failure.iteration} --engine local" if again else None
    failed = [verdict for verdict in record.expect if verdict.passed is False]
    if failed:
        again = failed[0].iteration is not None
        return f"{_command(record)} --only {failed[0].iteration} --engine local" if again else None
    traces = [name for phase in record.phases for name in phase.files if name.endswith(".json.gz")]
    if traces:
        return f"open https://ui.perfetto.dev and load {record.run_dir}/{traces[0]}"
    return f"{_command(record)}{_engine(record)} --profile torch" if record.status == "passed" else None


LOCAL_KINDS = ("raised", "arity")
"""Failures that the local engine repeats; others belong to processes and their borders."""
FLAGS = ("variant", "engine.kind", "profile", "run.iterations")
"""Overrides that have flags of their own; of these the variant belongs in every suggestion, and the engine in those
that do not choose another one."""


def _command(record: Record) -> str:
    """How the same spec is run again, but for the phases."""
    words = ["cgspec", "run", record.spec_file or "spec.yaml"]
    words += [f"{path}={_scalar(value)}" for path, value in record.overrides.items() if path not in FLAGS]
    words += ["--variant", str(record.overrides["variant"])] if "variant" in record.overrides else []
    words += ["--rehearse"] if record.rehearsal else []
    return shlex.join(words)


def _engine(record: Record) -> str:
    said = record.overrides.get("engine.kind")
    return f" --engine {said}" if said else ""


def _scalar(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _us(us: float) -> str:
    return show_duration(us / 1e6)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield Line("  ".join(cells).rstrip(), "dim" if number == 0 else "")


LATENCY = ("p50", "p95", "p99", "mean", "min", "max")
FAILURE = ("kind", "task", "iteration", "actor", "node", "file", "line", "message", "traceback", "waiting")


def to_json(record: Record) -> dict[str, Any]:
    """The shape of ``run --json``: stable, and no dump of the record."""
    found, failure = record.limits, record.failure
    return {
        "run_dir": record.run_dir,
        "status": record.status,
        "rehearsal": record.rehearsal,
        "engine": record.engine,
        "fused": record.fused,
        "phases": [_phase_json(phase) for phase in record.phases],
        "startup": record.startup,
        "first_result_s": record.first_result_s,
        "outputs": {"first": record.outputs.get("first"), "last": record.outputs.get("last")},
        "expect": [
            verdict.model_dump(include={"what", "passed", "expected", "found", "iteration"})
            for verdict in record.expect
        ],
        "limits": {
            "critical_path_us": found.critical_path_us if found else None,
            "busiest_actor_us": found.busiest_actor_us if found else None,
        },
        "tasks": {name: _task_json(task) for name, task in record.tasks.items()},
        "metrics": record.metrics,
        "failure": {name: getattr(failure, name) for name in FAILURE} if failure is not None else None,
        "findings": record.findings,
    }


def _phase_json(phase: PhaseRecord) -> dict[str, Any]:
    return {
        "name": phase.name,
        "iterations": phase.iterations,
        "latency_us": _times_json(phase.latency_us),
        "throughput_per_s": phase.throughput_per_s,
        "profiled": phase.profiled,
    }


def _task_json(task: TaskRecord) -> dict[str, Any]:
    return {"busy_us": _times_json(task.busy_us), "clock": "host" if task.host_us is None else "device"}


def _times_json(times: Times | None) -> dict[str, float] | None:
    return None if times is None else {name: getattr(times, name) for name in LATENCY}


def error_json(error: CgspecError, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """The same shape for an error that came before there was a run folder."""
    empty = to_json(Record(id="", name="", status=error.status, started=""))
    if isinstance(error, SpecError):
        findings = error.findings
    elif isinstance(error, RunError):
        told = error.failure
        empty["failure"] = {name: getattr(told, name, None) for name in FAILURE} | {"waiting": list(told.waiting)}
    else:
        empty["failure"] = dict.fromkeys(FAILURE) | {"kind": "usage", "message": str(error), "traceback": ""}
        empty["failure"]["waiting"] = []
    return empty | {"run_dir": None, "engine": None, "findings": [finding_data(finding) for finding in findings]}
