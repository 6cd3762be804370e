"""Keeps a run's record while it happens: what is known so far is in ``run.json`` after each step."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cgspec import account, machine, presenting
from cgspec.diagnostics import finding_data
from cgspec.engines import ChannelTimes, Engine, TaskTimes
from cgspec.errors import Failure, NotAble, RunError
from cgspec.expectations import Verdict
from cgspec.folder import RunFolder, now
from cgspec.formulas import formulas_of
from cgspec.job import Job
from cgspec.metrics import Metrics
from cgspec.phases import Observer, Passed
from cgspec.plans import profiles_of
from cgspec.quantities import show_duration
from cgspec.readout import Readout
from cgspec.record import FILE, Record
from cgspec.redaction import Redactor
from cgspec.showing import plain
from cgspec.sources import read_files
from cgspec.values import Scope
from cgspec.views import plan
from cgspec.writing import as_yaml

SAMPLES_HEAD = "phase,iteration,submitted_ns,latency_ns\n"
TIMELINE_HEAD = "phase,iteration,task,start_ns,end_ns"
CHANNELS_HEAD = "phase,iteration,task,operation,start_ns,end_ns\n"
DEVICE_HEAD = ",device_start_ns,device_end_ns"
"""Two columns more, where actors have GPUs; empty where a task was not timed by its GPU's clock."""
TIMELINE_ROWS = 100_000
"""Rows of one phase that ``timeline.csv`` gets: its last iterations."""
FAILED = "failed-inputs.json"
CHUNK = 2**20


class Chronicle:
    """The record, and the files beside it."""

    def __init__(self, job: Job, folder: RunFolder, observer: Observer) -> None:
        self._job, self._folder, self._observer = job, folder, observer
        self._redactor = Redactor(dict(job.resolved), dict(job.overrides))
        self._machine, self._diff = machine.ask(job.root)
        self._saved = 0
        self._phase: Passed | None = None
        self.metrics: Metrics | None = None
        self.record = Record(
            id=folder.id,
            name=job.graph.name,
            status="running",
            started=now(),
            pid=os.getpid(),
            run_dir=str(folder.path),
            spec_file=job.file,
            root=str(job.root),
            engine=job.spec.engine.kind,
            rehearsal=job.rehearse,
            inflight=job.spec.run.inflight if job.only is None else 1,
            overrides=plain(self._redactor.overrides(dict(job.overrides))),
            actors=account.actor_records(job.graph, {}),
            findings=[finding_data(finding) for finding in job.findings],
        )
        self._begin()

    def _begin(self) -> None:
        said = {key: value for key, value in self._job.resolved.items() if key not in ("name", "root", "include")}
        place = {"cgspec": 1, "name": self._job.graph.name, "root": str(self._job.root)}
        resolved = place | self._redactor.spec(said)
        self._folder.write("spec.yaml", self._redactor.yaml(self._job.text))
        self._folder.write("spec.resolved.yaml", as_yaml(resolved))
        planned = plan.as_data(self._job.graph, self._job.spec, rehearse=self._job.rehearse)
        self._folder.write("plan.json", json.dumps(planned, ensure_ascii=False) + "\n")
        for name, text in read_files(self._job.graph, self._job.root):
            self._folder.write(f"source/{name}", self._redactor.text(text))
        self._folder.append("samples.csv", SAMPLES_HEAD)
        self.save()

    def note(self, text: str) -> None:
        """Tells it now, and keeps it."""
        self.record.notes.append(text)
        self._log(text)
        self._observer.note(text)

    def _log(self, text: str) -> None:
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._folder.append("log.txt", f"{moment} {self._redactor.text(text)}\n")

    def reachable(self, socket: Path | None) -> None:
        """The run answers whoever asks where it is."""
        self.record.where = str(socket) if socket is not None else None
        self.save()

    def placed(self, engine: Engine) -> None:
        """Actors are live and the graph is compiled."""
        self.record.actors = account.actor_records(self._job.graph, engine.nodes)
        self.record.fused = [[self._job.graph.tasks[task].name for task in chain] for chain in engine.fused]
        self.record.startup = {step: round(seconds, 6) for step, seconds in engine.startup.items()}
        self._engine_notes(engine)
        self._log("actors are live, the graph is compiled")
        self.save()

    def _engine_notes(self, engine: Engine) -> None:
        for note in engine.notes:
            if note not in self.record.notes:
                self.note(note)

    def samples(self, passed: Passed) -> None:
        """Appends the latencies that came since the last time."""
        if passed is not self._phase:
            self._phase, self._saved = passed, 0
        name, first = _label(passed), passed.plan.first
        rows = []
        for place in range(self._saved, len(passed.done)):
            start = passed.submitted[place]
            latency = "" if place in passed.raised else passed.done[place] - start
            rows.append(f"{name},{first + place},{start},{latency}\n")
        self._saved = len(passed.done)
        self._folder.append("samples.csv", "".join(rows))
        self._folder.flush()

    def passed(self, passed: Passed, engine: Engine, *, began: float) -> None:
        """A phase ended."""
        profile = passed.plan.phase.profile
        nsight = any(other.kind == "nsight" for other in profiles_of(self._job.spec, rehearse=self._job.rehearse))
        profiled = profile.kind if profile is not None else "nsight" if nsight else None
        phase = account.phase_record(passed, profiled=profiled)
        self.record.phases.append(phase)
        if self.record.first_result_s is None and passed.done:
            self.record.first_result_s = round(passed.done[0] / 1e9 - began, 6)
        self.record.startup = {step: round(seconds, 6) for step, seconds in engine.startup.items()}
        if passed.data is not None:
            phase.files = [self._relative(path) for path in passed.data.files]
            self._peaks(passed.data.peaks)
            self._timeline(passed)
            self._channels(passed, passed.data.channels)
        self._failed(passed)
        for note in phase.notes:
            self._log(note)
        self._engine_notes(engine)
        if passed.plan.phase.name == "measure":
            self._measured(passed)
        self._log(f"phase {_label(passed)}: {phase.iterations} iterations")
        self.save()

    def _failed(self, passed: Passed) -> None:
        """Keeps the inputs of the first iteration that raised, of the whole run."""
        failed, names = passed.failed, [given.name for given in self._job.graph.inputs]
        if failed is None or (self._folder.path / FAILED).exists():
            return
        inputs = {name: plain(value) for name, value in zip(names, failed.inputs, strict=True)}
        told = {"phase": passed.plan.phase.name, "iteration": failed.i, "inputs": self._redactor.data(inputs)}
        self._folder.write(FAILED, json.dumps(told, indent=2, ensure_ascii=False) + "\n")

    def _measured(self, passed: Passed) -> None:
        record, graph = self.record, self._job.graph
        busy, phase = account.Busy(graph, passed), record.phases[-1]
        record.tasks = account.task_records(graph, busy, self._job.locate)
        record.limits = account.limits_record(busy, phase, passed.plan.inflight, parallel=record.engine != "local")
        account.fill_in_actors(record.actors, busy)
        self.metrics = account.metrics(busy, passed, phase, record.first_result_s)
        self._user_metrics(busy, passed)

    def _user_metrics(self, busy: account.Busy, passed: Passed) -> None:
        """The spec's own metrics."""
        assert self.metrics is not None
        outputs = passed.last.outputs if passed.last is not None else None
        formulas = formulas_of(self._job.spec)
        readout = Readout(self._job.graph, self.metrics.run, busy.spans, outputs, self._var)
        self.record.metrics = readout.evaluate(formulas)
        for node, clock in self.record.phases[-1].clocks.items() if formulas else ():
            error = show_duration(clock.error_ns / 1e9)
            self.note(f"metrics: the clock of {node} was aligned with the driver's, to ±{error}")
        self.metrics = replace(self.metrics, user=readout.values)
        for note in readout.notes:
            self.note(note)

    def _var(self, name: str) -> object:
        if name not in self._job.spec.vars:
            raise KeyError(name)
        return self._job.read(f"${name}", ("vars", name)).make(Scope())

    def _peaks(self, peaks: dict[str, int]) -> None:
        for actor in self.record.actors:
            if actor.name in peaks:
                actor.peak_bytes = max(peaks[actor.name], actor.peak_bytes or 0)

    def _timeline(self, passed: Passed) -> None:
        """The flight recorder's last iterations, in the clock of ``samples.csv`` where a task was on this node."""
        assert passed.data is not None
        keep = max(1, TIMELINE_ROWS // max(1, len(passed.data.times)))
        devices = not self._job.rehearse and any(actor.num_gpus for actor in self._job.graph.actors)
        if not self._phase_rows():
            self._folder.append("timeline.csv", TIMELINE_HEAD + DEVICE_HEAD * devices + "\n")
        for task, times in zip(self._job.graph.tasks, passed.data.times, strict=True):
            for place in range(max(0, len(times.start) - keep), len(times.start)):
                if times.start[place]:
                    iteration = passed.plan.first + times.first + place
                    span = f"{times.start[place]},{times.end[place]}" + _device_span(times, place) * devices
                    self._folder.append("timeline.csv", f"{_label(passed)},{iteration},{task.name},{span}\n")

    def _channels(self, passed: Passed, channels: Sequence[ChannelTimes]) -> None:
        """Reads and writes of channels, where the phase timed them: the last iterations, and the times by task."""
        if not channels:
            return
        account.add_channels(self.record.tasks, self._job.graph, channels)
        keep = max(1, TIMELINE_ROWS // len(channels))
        rows = [] if (self._folder.path / "channels.csv").exists() else [CHANNELS_HEAD]
        for each in channels:
            said = f"{self._job.graph.tasks[each.task].name},{each.kind}"
            held = list(zip(each.start, each.end, strict=True))
            first = max(0, len(held) - keep)
            for place, (start, end) in enumerate(held[first:], passed.plan.first + each.first + first):
                if start:
                    rows.append(f"{_label(passed)},{place},{said},{start},{end}\n")
        self._folder.append("channels.csv", "".join(rows))

    def _phase_rows(self) -> bool:
        return (self._folder.path / "timeline.csv").exists()

    def judged(self, verdicts: Sequence[Verdict]) -> None:
        """What became of the expectations."""
        self.record.expect = [account.verdict_record(verdict, self._job.locate) for verdict in verdicts]

    def outputs(self, first: object, last: object) -> None:
        """The outputs of the first and the last measured iteration."""
        self.record.outputs = {"first": plain(first), "last": plain(last)}

    def close(self, error: RunError | None, *, crashed: bool) -> None:
        """Says how the run ended."""
        record = self.record
        record.ended, record.where = now(), None
        if error is not None:
            record.failure = account.failure_record(error.failure, self._job.locate)
        failed = any(verdict.passed is False for verdict in record.expect)
        ended = error.status if error is not None else "expectation-failed" if failed else "passed"
        record.status = "crashed" if crashed else ended
        self._log(f"ended: {record.status}" + (f": {error}" if error is not None else ""))
        self._folder.flush()
        self.save(wait=machine.PATIENCE)
        with suppress(TooLate):
            if diff := self._diff.result(timeout=machine.PATIENCE):
                self._folder.write("source/git.diff", self._redactor.text(diff))

    def finish(self, engine: Engine | None) -> None:
        """After the engine is down: what came late, the picture, and logs without secrets."""
        if engine is not None:
            self._engine_notes(engine)
            for path in engine.late_files():
                self._late(path)
        self._picture()
        self._clean_logs()
        self._folder.close()
        if (error := self.trouble()) is not None and self.record.failure is None:
            self.record.failure = account.failure_record(error.failure, self._job.locate)
            self.record.status = error.status
        self.save()

    def present(self) -> None:
        """Makes what is shown of the run; takes a while where traces are large."""
        path, graph = self._folder.path, self._job.graph
        presenting.present(path, self.record, graph, clean=self._redactor.text, save=self.save)

    def trouble(self) -> NotAble | None:
        """What the folder could not take, as an error."""
        if self._folder.trouble is None:
            return None
        message = f"{self._folder.trouble}; what was measured is told here, and may be missing there"
        return NotAble(Failure("not-able", message, phase=None))

    def _late(self, path: Path) -> None:
        relative = self._relative(path)
        owner = next((p for p in reversed(self.record.phases) if p.profiled == "nsight" and p.name == "profile"), None)
        if owner is not None and relative not in owner.files:
            owner.files.append(relative)

    def _picture(self) -> None:
        try:
            from cgspec.views.picture import render

            self._folder.write("graph.svg", self._redactor.text(render(self._job.graph, "svg").decode()))
        except Exception as error:
            self.note(f"graph.svg could not be drawn: {type(error).__name__}: {error}")

    def _clean_logs(self) -> None:
        if not self._redactor.knows_any:
            return
        for path in sorted((self._folder.path / "logs").glob("*")):
            with suppress(OSError):
                self._clean(path)

    def _clean(self, path: Path) -> None:
        """Line by line: a log may be large."""
        new = path.with_name(f".{path.name}.new")
        with path.open(encoding="utf-8", errors="backslashreplace") as old, new.open("w", encoding="utf-8") as clean:
            for line in iter(lambda: old.readline(CHUNK), ""):
                clean.write(self._redactor.text(line))
        os.replace(new, path)

    def _relative(self, path: Path) -> str:
        with suppress(ValueError):
            return path.resolve().relative_to(self._folder.path.resolve()).as_posix()
        return str(path)

    def save(self, *, wait: float = 0.0) -> None:
        """Writes the record as it is; ``wait`` seconds for what is asked of the machine."""
        with suppress(TooLate):
            self.record.machine = self._machine.result(timeout=wait)
        self._folder.write(FILE, self.told().as_json())

    def told(self) -> Record:
        """The record without secrets: what is written and shown."""
        shown: dict[str, Any] = self.record.model_dump(mode="json", by_alias=True)
        clean = self._redactor.data(shown) | {"run_dir": shown["run_dir"], "root": shown["root"]}
        return Record.model_validate(clean)


def _device_span(times: TaskTimes, place: int) -> str:
    device, at = times.device, times.first + place
    held = device is not None and 0 <= at - device.first < len(device.start) and device.start[at - device.first]
    return f",{device.start[at - device.first]},{device.end[at - device.first]}" if device and held else ",,"


def _label(passed: Passed) -> str:
    """A phase's name in the files, with its profiler."""
    phase = passed.plan.phase
    return phase.name if phase.profile is None else f"{phase.name}-{phase.profile.kind}"
