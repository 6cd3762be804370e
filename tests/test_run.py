"""Phases, windows, failures and the end of a run, on the local engine and on one that follows a script."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from jobs import actor, fan, graph, job, one, task

from cgspec import usercode
from cgspec.engines import ENGINES, Fetched, Options, Phase, PhaseData, Position, TaskTimes
from cgspec.errors import ActorDied, Failure, RunError, SpecError, Stalled, TaskRaised, UsageError
from cgspec.graph import Graph, InputRef, Pack, TaskRef
from cgspec.record import load
from cgspec.run import Job, Result, run
from cgspec.views.summary import error_json, text, to_json


def samples(result: Result) -> list[dict[str, str]]:
    with (result.run_dir / "samples.csv").open() as file:
        return list(csv.DictReader(file))


# --- what comes back ---------------------------------------------------------------------------------------------


def test_a_run_on_the_local_engine_passes_and_leaves_its_folder(tmp_path: Path) -> None:
    expect = [{"output": 0, "equals": {"$expr": "2 * i"}}, {"output": 1, "equals_input": "x"}]
    result = run(job(fan(), tmp_path, run={"iterations": 30, "warmup": 4, "inflight": 3}, expect=expect))
    assert (result.status, result.exit_code, result.error) == ("passed", 0, None)
    assert (result.first, result.last) == ([0, 0], [58, 29])
    assert [(phase.name, phase.iterations) for phase in result.record.phases] == [("warmup", 4), ("measure", 30)]
    assert [(verdict.passed, verdict.looked) for verdict in result.record.expect] == [(True, 30), (True, 30)]
    rows = samples(result)
    assert [(row["phase"], row["iteration"]) for row in rows] == [
        *(("warmup", str(n)) for n in range(4)),
        *(("measure", str(n)) for n in range(30)),
    ]
    assert all(int(row["latency_ns"]) > 0 for row in rows)
    assert load(result.run_dir).status == "passed"


@pytest.mark.parametrize(
    "outputs, form, expected",
    [
        ([("left", TaskRef(2))], "single", 2),
        ([(0, TaskRef(2)), (1, InputRef(0))], "list", [2, 1]),
        ([("a", TaskRef(3)), ("b", TaskRef(2))], "map", {"a": 1, "b": 2}),
        (
            [("all", Pack((TaskRef(2), TaskRef(3), TaskRef(2)))), ("one", TaskRef(3))],
            "map",
            {"all": [2, 1, 2], "one": 1},
        ),
        ([(0, Pack(()))], "list", [[]]),
    ],
)
def test_outputs_come_in_the_form_of_the_spec(tmp_path: Path, outputs: Any, form: str, expected: object) -> None:
    made = replace(fan(x=1), outputs=tuple(outputs), output_form=form)  # type: ignore[arg-type]
    assert run(job(made, tmp_path, run={"iterations": 2, "warmup": 0})).last == expected


def test_json_has_exactly_the_promised_shape(tmp_path: Path) -> None:
    data = to_json(run(job(fan(), tmp_path, run={"iterations": 2}, expect=[{"output": 0, "equals": 0}])).record)
    assert ",".join(data) == (
        "run_dir,status,rehearsal,engine,fused,phases,startup,first_result_s,outputs,expect,limits,tasks,failure,findings"
    )
    assert list(data["phases"][1]) == ["name", "iterations", "latency_us", "throughput_per_s", "profiled"]
    assert list(data["phases"][1]["latency_us"]) == ["p50", "p95", "p99", "mean", "min", "max"]
    assert data["outputs"] == {"first": [0, 0], "last": [2, 1]}
    (expectation,) = data["expect"]
    assert expectation == {
        "what": "output 0 equals",
        "passed": False,
        "expected": "0",
        "found": "2",
        "iteration": 1,
    }
    assert list(data["limits"]) == ["critical_path_us", "busiest_actor_us"]
    assert list(data["tasks"]["left"]["busy_us"]) == ["p50", "p95", "p99", "mean", "min", "max"]
    assert data["failure"] is None
    json.dumps(data, allow_nan=False)


def test_json_of_a_failure_and_of_an_early_error_have_the_same_shape(tmp_path: Path) -> None:
    failed = to_json(run(job(one("fail_at", 1, {"at": 1}), tmp_path)).record)
    early = [
        error_json(SpecError((), "text")),
        error_json(UsageError("no such thing")),
        error_json(RunError(Failure("x", "y"))),
    ]
    for data in early:
        assert list(data) == list(failed)
    assert list(failed["failure"]) == list(early[1]["failure"]) == list(early[2]["failure"])
    assert (early[0]["status"], early[0]["run_dir"], early[1]["failure"]["message"]) == (
        "invalid",
        None,
        "no such thing",
    )


# --- inputs ------------------------------------------------------------------------------------------------------


def test_a_value_that_uses_the_iteration_is_made_anew_and_any_other_once(tmp_path: Path) -> None:
    made = fan(x={"$call": "actors.py:batch", "args": {"n": {"$expr": "i"}}})
    result = run(job(made, tmp_path, run={"iterations": 5, "warmup": 2}))
    assert result.last == [[4, 16, 4, 16], [4, 16]]
    counted = fan(x={"$call": "actors.py:batch", "args": {"n": 3}})
    assert run(job(counted, tmp_path, run={"iterations": 5})).last == [[3, 9, 3, 9], [3, 9]]


@pytest.mark.parametrize("inflight", [1, 4])
def test_feedback_gives_the_output_of_lag_iterations_ago(tmp_path: Path, inflight: int) -> None:
    """x_i = 2 x_(i-4) from 1: after 12 iterations three doublings have gone in, and the output doubles once more."""
    made = one("double", {"$feedback": "work", "lag": 4, "first": 1})
    expect = [{"output": "work", "equals": {"$expr": "2 ** (i // 4 + 1)"}}]
    settings = {"iterations": 12, "warmup": 5, "inflight": inflight}
    result = run(job(made, tmp_path, run=settings, expect=expect))
    assert (result.status, result.last) == ("passed", 8)


def test_an_input_that_cannot_be_made_ends_the_run_after_those_that_could(tmp_path: Path) -> None:
    for inflight in (1, 2):
        result = run(job(one("echo", {"$values": [1, 2, 3]}), tmp_path, run={"warmup": 0, "inflight": inflight}))
        failure = result.record.failure
        assert failure is not None
        assert (failure.kind, failure.iteration, failure.phase) == ("input", 3, "measure")
        assert "the input x cannot be made for iteration 3: $values has 3 values" in failure.message
        assert (failure.file, failure.line) == ("small.yaml", 10)
        assert (result.record.phases[0].iterations, result.last) == (3, 3)


def test_a_users_function_that_raises_is_told_with_its_own_lines(tmp_path: Path) -> None:
    made = one("echo", {"$call": "actors.py:broken", "args": {"n": {"$expr": "i"}}})
    result = run(job(made, tmp_path))
    failure = result.record.failure
    assert failure is not None
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert failure.message == "making the input x for iteration 0 raised RuntimeError: no data"
    assert 'raise RuntimeError("no data")' in failure.traceback and "cgspec/" not in failure.traceback


# --- failures on the local engine --------------------------------------------------------------------------------


def test_a_task_that_raises_ends_the_run_with_everything_that_is_known(tmp_path: Path) -> None:
    result = run(job(one("fail_at", {"$expr": "i"}, {"at": 7}), tmp_path, run={"warmup": 0, "inflight": 3}))
    failure = result.record.failure
    assert failure is not None
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert (failure.kind, failure.task, failure.iteration, failure.phase) == ("raised", "work", 7, "measure")
    assert (failure.actor, failure.file, failure.line) == ("only", "small.yaml", 20)
    assert 'raise ValueError(f"no {x} please")' in failure.traceback
    assert "small.yaml:20, task work, iteration 7 of measure" in text(result.record)
    assert "--only 7 --engine local" in text(result.record)
    rows = samples(result)
    assert [row["latency_ns"] == "" for row in rows] == [n == 7 for n in range(len(rows))]
    assert len(rows) >= 8


def test_on_error_continue_counts_what_raised_and_goes_on(tmp_path: Path) -> None:
    settings = {"iterations": 20, "warmup": 6, "on_error": "continue", "inflight": 2}
    expect = [{"output": "work", "equals": {"$expr": "i"}}]
    result = run(job(one("fail_at", {"$expr": "i"}, {"at": [5, 9, 19]}), tmp_path, run=settings, expect=expect))
    warmup, measure = result.record.phases
    assert (warmup.iterations, warmup.errors, measure.iterations, measure.errors) == (6, 1, 20, 3)
    assert measure.latency_us is not None and measure.latency_us.count == 17
    assert (result.status, result.exit_code, result.last) == ("task-raised", 4, 18)
    assert [(verdict.passed, verdict.looked) for verdict in result.record.expect] == [(True, 17)]


def test_a_failure_while_starting_is_told(tmp_path: Path) -> None:
    made = one("echo", 1)
    broken = replace(made, actors=(replace(made.actors[0], kwargs={"nonsense": made.inputs[0].value}),))
    result = run(job(broken, tmp_path, expect=[{"output": "work", "equals": 1}]))
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert result.record.failure is not None and result.record.failure.phase == "startup"
    assert [verdict.passed for verdict in result.record.expect] == [None]
    assert result.record.phases == []


def test_only_runs_the_one_iteration_with_its_own_number(tmp_path: Path) -> None:
    made = replace(job(one("fail_at", {"$expr": "i"}, {"at": 7}), tmp_path, profile="torch"), only=7)
    result = run(made)
    assert result.record.failure is not None
    assert (result.record.failure.iteration, len(result.record.phases)) == (7, 1)
    assert "in iteration 7" in result.record.failure.message
    fine = run(replace(made, only=6))
    assert (fine.status, fine.last, samples(fine)[0]["iteration"]) == ("passed", 6, "6")


def test_duration_ends_the_measure_phase_only(tmp_path: Path) -> None:
    settings = {"iterations": 10_000, "warmup": 5, "duration": "200ms", "inflight": 2}
    result = run(job(one("nap", 1, {"seconds": 0.02}), tmp_path, run=settings))
    warmup, measure = result.record.phases
    assert (warmup.iterations, result.status) == (5, "passed")
    assert 5 <= measure.iterations <= 12 and measure.asked == 10_000


def test_setup_calls_happen_once_or_before_every_phase(tmp_path: Path) -> None:
    made = one("add", 1)
    once = [{"call": "only.reset", "with": {"total": 100}}]
    settings = {"iterations": 3, "warmup": 2}
    assert run(job(made, tmp_path, run=settings, setup=once)).last == 105
    each = [{"call": "only.reset", "with": {"total": {"$expr": "50 * 2"}}, "at": "phase"}]
    assert run(job(made, tmp_path, run=settings, setup=each)).last == 103


def test_setup_reaches_every_member_of_a_family_with_its_own_index(tmp_path: Path) -> None:
    tasks = [task(f"t.{n}", n, "add", {"x": InputRef(0)}) for n in range(3)]
    actors = [actor(f"a.{n}", (n,)) for n in range(3)]
    made = graph({"x": 0}, actors, tasks, [("t", Pack(tuple(TaskRef(n) for n in range(3))))])
    said = [{"call": "a.reset", "with": {"total": {"$expr": "10 * index.axis0 + size.axis0"}}}]
    assert run(job(made, tmp_path, setup=said)).last == [3, 13, 23]
    last = [{"call": "a.-1.reset", "with": {"total": 7}}]
    assert run(job(made, tmp_path, setup=last)).last == [0, 0, 7]


@pytest.mark.parametrize(
    "sections, message",
    [
        ({"run": {"reset": True}}, "run.reset is not supported yet"),
        ({"metrics": {"gbps": {"$expr": "1"}}}, "metrics is not supported yet"),
        ({"expect": [{"task": "work", "finite": True}]}, "expect on what a task returns"),
        ({"setup": [{"call": "onyl.reset"}]}, "there is no actor onyl; did you mean only?"),
        ({"profile": [{"kind": "torch", "actors": ["onyl"]}]}, "there is no actor onyl; did you mean only?"),
    ],
)
def test_what_a_run_cannot_do_yet_is_refused_by_name(tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(job(one("echo", 1), tmp_path, **sections))
    assert not list((tmp_path / "runs").rglob("run.json"))


# --- an engine that follows a script -----------------------------------------------------------------------------


@dataclass
class Scripted:
    """An engine whose fetch does what it is told; it checks the order of calls itself."""

    graph: Graph
    options: Options
    fetching: Callable[[Scripted, int], object] = lambda engine, number: None
    during: Callable[[str], None] = lambda step: None
    startup: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    pending: deque[object] = field(default_factory=deque)
    most: int = 0
    number: int = 0
    phases: list[Phase] = field(default_factory=list)

    def _step(self, name: str) -> None:
        self.log.append(name)
        self.during(name)

    def place(self) -> None:
        self._step("place")

    def compile(self) -> None:
        self._step("compile")

    def call(self, actor: int, method: str, kwargs: Mapping[str, object]) -> object:
        self._step(f"call {actor} {method} {dict(kwargs)}")
        return None

    def begin(self, phase: Phase) -> None:
        assert not self.pending
        self.phases.append(phase)
        self.number = 0
        self._step(f"begin {phase.name}")

    def submit(self, inputs: Sequence[object]) -> None:
        self.pending.append(inputs[0])
        self.most = max(self.most, len(self.pending))
        assert len(self.pending) <= self.options.inflight

    def fetch(self) -> Fetched:
        value = self.pending.popleft()
        number, self.number = self.number, self.number + 1
        found = self.fetching(self, number)
        if isinstance(found, RunError):
            return Fetched([], time.monotonic_ns(), found)
        return Fetched([value if found is None else found] * len(self.graph.output_refs), time.monotonic_ns())

    def end(self) -> PhaseData:
        assert not self.pending
        self._step("end")
        times = TaskTimes(0, array("q"), array("q"))
        data = PhaseData(tuple(times for _ in self.graph.tasks))
        if (folder := self.phases[-1].trace_dir) is not None:
            folder.mkdir()
            (folder / "only.pt.trace.json.gz").write_bytes(b"")
            data.files.append(folder / "only.pt.trace.json.gz")
        return data

    def where(self) -> tuple[Position, ...]:
        return ()

    def teardown(self) -> None:
        self._step("teardown")

    def late_files(self) -> list[Path]:
        return []


def scripted(monkeypatch: pytest.MonkeyPatch, **script: Any) -> list[Scripted]:
    made: list[Scripted] = []

    def make(graph: Graph, options: Options) -> Scripted:
        made.append(Scripted(graph, options, **script))
        return made[-1]

    monkeypatch.setitem(ENGINES, "local", make)
    return made


@pytest.mark.parametrize("inflight", [1, 2, 7])
@pytest.mark.parametrize("x", [1, {"$expr": "i"}])
def test_the_window_is_filled_and_never_exceeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inflight: int, x: object
) -> None:
    engines = scripted(monkeypatch)
    settings = {"iterations": 1000, "warmup": 3, "inflight": inflight}
    result = run(job(one("echo", x), tmp_path, run=settings, expect=[{"output": "work", "equals_input": "x"}]))
    assert result.status == "passed"
    assert engines[0].most == inflight
    assert engines[0].log == ["place", "compile", "begin warmup", "end", "begin measure", "end", "teardown"]


def test_looking_and_making_inputs_are_outside_latency_and_throughput(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making each input takes 2 ms and fetching 1: with four under way the throughput is near 1000/s, not 330/s."""

    def slow(engine: Scripted, number: int) -> None:
        time.sleep(0.001)

    scripted(monkeypatch, fetching=slow)
    x = {"$call": "slow.py:slowly", "args": {"n": {"$expr": "i"}}}
    made = job(one("echo", x), tmp_path, run={"iterations": 100, "warmup": 0, "inflight": 4})
    (tmp_path / "slow.py").write_text("import time\ndef slowly(n):\n    time.sleep(0.002)\n    return n\n")
    usercode.install(tmp_path)
    (measure,) = run(made).record.phases
    assert measure.throughput_per_s is not None and measure.latency_us is not None
    assert measure.throughput_per_s > 600
    assert 3000 < measure.latency_us.p50 < 8000


@pytest.mark.parametrize("error, status, code", [(Stalled, "timeout", 5), (ActorDied, "actor-died", 5)])
def test_an_engine_that_cannot_go_on_ends_the_run_with_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[RunError], status: str, code: int
) -> None:
    def stall(engine: Scripted, number: int) -> None:
        if engine.phases[-1].name == "measure" and number == 10:
            raise error(Failure("stall", "nothing moved for 5 min", waiting=("a waits for b", "b waits for a")))

    engines = scripted(monkeypatch, fetching=stall)
    result = run(job(one("echo", {"$expr": "i"}), tmp_path, run={"inflight": 3}, profile="torch"))
    assert (result.status, result.exit_code) == (status, code)
    assert engines[0].log[-2:] == ["begin measure", "teardown"]
    assert result.record.phases[1].iterations == 10
    assert result.record.phases[1].throughput_per_s is not None
    assert len(samples(result)) == 15
    assert (result.first, result.last) == (0, 9)
    assert "b waits for a" in text(result.record)
    assert result.record.failure is not None and result.record.failure.phase == "measure"


def test_the_record_is_closed_before_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def watch(step: str) -> None:
        (folder,) = (tmp_path / "runs" / "small").glob("2*")
        seen.append(f"{step}: {load(folder).status}")

    scripted(monkeypatch, during=watch)
    run(job(one("echo", 1), tmp_path, run={"warmup": 0}))
    assert seen == ["place: running", "compile: running", "begin measure: running", "end: running", "teardown: passed"]


@pytest.mark.parametrize("step", ["place", "compile", "begin measure", "end"])
def test_our_own_mistakes_close_the_record_and_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def crash(name: str) -> None:
        if name == step:
            raise ZeroDivisionError("ours")

    engines = scripted(monkeypatch, during=crash)
    with pytest.raises(ZeroDivisionError):
        run(job(one("echo", 1), tmp_path, run={"warmup": 0}))
    assert engines[0].log[-1] == "teardown"
    assert load(tmp_path / "runs" / "small" / "latest").status == "crashed"


@pytest.mark.parametrize("step", ["place", "compile", "begin measure", "end"])
@pytest.mark.parametrize("how", [KeyboardInterrupt(), SystemExit(signal.SIGTERM)])
def test_an_interrupt_at_any_step_ends_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, how: BaseException
) -> None:
    def interrupt(name: str) -> None:
        if name == step:
            raise how

    engines = scripted(monkeypatch, during=interrupt)
    result = run(job(one("echo", 1), tmp_path, run={"warmup": 0}))
    assert (result.status, result.exit_code) == ("interrupted", 130)
    assert engines[0].log[-1] == "teardown"
    assert load(result.run_dir).status == "interrupted"


def test_each_profiler_has_a_phase_and_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines = scripted(monkeypatch)
    profile = [
        {"kind": "torch", "actors": ["sender.1", "receiver"]},
        "none",
        {"kind": "torch", "warmup": 1, "iterations": 3},
    ]
    result = run(job(fan(), tmp_path, run={"warmup": 0}, profile=profile))
    _, first, second = engines[0].phases
    assert (first.iterations, first.actors, first.profile and first.profile.kind) == (12, (1, 2), "torch")
    assert (second.iterations, second.actors) == (4, None)
    assert result.record.phases[1].files == ["trace/only.pt.trace.json.gz"]
    assert result.record.phases[2].files == ["trace-2/only.pt.trace.json.gz"]
    assert [phase.profiled for phase in result.record.phases] == [None, "torch", "torch"]
    assert "perfetto" in text(result.record)


def test_nsight_watches_whole_processes_so_the_measured_numbers_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = scripted(monkeypatch)
    profile = [{"kind": "nsight", "actors": ["receiver"]}, "torch"]
    result = run(job(fan(), tmp_path, run={"warmup": 1}, profile=profile))
    assert engines[0].options.nsight_actors == (2,)
    assert [phase.profiled for phase in result.record.phases] == ["nsight", "nsight", "nsight", "torch"]


def test_a_rehearsal_leaves_out_nsight_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    engines = scripted(monkeypatch)
    made = replace(job(fan(), tmp_path, run={"warmup": 0}, profile=["nsight", "torch"]), rehearse=True)
    result = run(made)
    assert [phase.name for phase in engines[0].phases] == ["measure", "profile"]
    assert [profile.kind for profile in engines[0].options.profiles] == ["torch"]
    assert [phase.profiled for phase in result.record.phases] == [None, "torch"]
    assert "nsys is not on PATH" in text(result.record)
    assert [profile.kind for profile in scripted_run(made, monkeypatch).options.profiles] == ["nsight", "torch"]


def scripted_run(made: Job, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """The engine of the same job where it is no rehearsal."""
    engines = scripted(monkeypatch)
    run(replace(made, rehearse=False))
    return engines[0]


# --- the disk ----------------------------------------------------------------------------------------------------


def test_a_full_disk_ends_with_a_sentence_and_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    class Full:
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            pass

        def close(self) -> None:
            pass

    def opened(self: Path, *args: Any, **more: Any) -> Any:
        return Full() if self.name == "samples.csv" else real(self, *args, **more)

    monkeypatch.setattr(Path, "open", opened)
    result = run(job(one("echo", 1), tmp_path))
    assert (result.status, result.exit_code) == ("not-able", 3)
    assert result.record.failure is not None
    assert "samples.csv" in result.record.failure.message and "No space left on device" in result.record.failure.message
    assert result.record.phases[1].latency_us is not None and result.record.phases[1].iterations == 100
    assert load(result.run_dir).phases[1].iterations == 100


def test_a_folder_that_vanishes_does_not_lose_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    def vanish(step: str) -> None:
        if step == "begin measure":
            shutil.rmtree(tmp_path / "runs")
            (tmp_path / "runs").write_text("a file now")

    scripted(monkeypatch, during=vanish)
    result = run(job(one("echo", 1), tmp_path))
    assert (result.status, result.exit_code) == ("not-able", 3)
    assert result.record.phases[1].latency_us is not None


# --- signals and size --------------------------------------------------------------------------------------------

SIGNALLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from jobs import job, one
from cgspec.run import run

class Tell:
    def phase(self, name, total): print(name, flush=True)
    def progress(self, done): pass
    def note(self, text): pass

made = job(one("nap", 1, {{"seconds": {seconds}}}), Path({root!r}), run={{"iterations": 100000, "warmup": 0}})
result = run(made, Tell())
print(result.status, result.record.failure.message, flush=True)
sys.exit(result.exit_code)
"""


@pytest.mark.parametrize("number, word", [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
@pytest.mark.parametrize("seconds", [0.01, 60])
def test_a_signal_ends_the_run_soon_with_what_was_measured(
    tmp_path: Path, number: signal.Signals, word: str, seconds: float
) -> None:
    code = SIGNALLED.format(tests=str(Path(__file__).parent), root=str(tmp_path), seconds=seconds)
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline().strip() for _ in range(2)] == ["startup", "measure"]
    time.sleep(0.5)
    sent = time.monotonic()
    process.send_signal(number)
    said, _ = process.communicate(timeout=20)
    assert time.monotonic() - sent < 5
    assert process.returncode == 130
    assert f"interrupted {word} arrived in the measure phase, after" in said
    record = load(tmp_path / "runs" / "small" / "latest")
    assert record.status == "interrupted"
    done = record.phases[0].iterations
    assert (done > 10) if seconds < 1 else (done == 0)
    rows = (Path(record.run_dir) / "samples.csv").read_text().splitlines()
    assert len(rows) == done + 1
    if seconds < 1:
        assert record.tasks["work"].busy_us is not None


def test_handlers_of_signals_are_put_back(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    run(job(one("echo", 1), tmp_path))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_works_outside_the_main_thread(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run, job(one("echo", 1), tmp_path)).result().status == "passed"


@pytest.mark.parametrize("inflight", [1, 4])
def test_memory_stays_flat_whatever_the_outputs_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inflight: int
) -> None:
    """3000 iterations of 1 MB each, looked at: at most the 256 MB that a block may hold, and a little."""
    scripted(monkeypatch, fetching=lambda engine, number: bytes(1_000_000))
    made = job(one("echo", 1), tmp_path, run={"iterations": 3000, "inflight": inflight}, expect=[
        {"output": "work", "length": 1_000_000}])  # fmt: skip
    tracemalloc.start()
    result = run(made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (result.status, result.record.expect[0].looked) == ("passed", 3000)
    assert peak < (30 if inflight == 1 else 320) * 2**20


def test_a_hundred_thousand_iterations_are_right(tmp_path: Path) -> None:
    settings = {"iterations": 100_000, "warmup": 10, "inflight": 8}
    result = run(job(one("echo", {"$count": {}}), tmp_path, run=settings, expect=[
        {"output": "work", "equals": {"$expr": "i"}}]))  # fmt: skip
    assert (result.status, result.last, result.record.expect[0].looked) == ("passed", 99_999, 100_000)
    latencies = sorted(int(row["latency_ns"]) for row in samples(result)[10:])
    measure = result.record.phase("measure")
    assert measure is not None and measure.latency_us is not None
    assert len(latencies) == 100_000
    assert measure.latency_us.p50 == pytest.approx((latencies[49_999] + latencies[50_000]) / 2e3, abs=0.001)


def test_a_task_error_of_the_engine_that_is_final_counts_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def final(engine: Scripted, number: int) -> object:
        if number == 2:
            raise TaskRaised(
                Failure("arity", "three returns, not two", task="work", iteration=2, path=("tasks", "work"))
            )
        return None

    scripted(monkeypatch, fetching=final)
    result = run(job(one("echo", 1), tmp_path, run={"warmup": 0, "on_error": "continue"}))
    assert (result.status, result.exit_code, result.record.phases[0].iterations) == ("task-raised", 4, 2)
    assert result.record.failure is not None and result.record.failure.line == 20
