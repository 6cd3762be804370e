"""Windows, blocks, phases and the end of a run, on an engine that follows a script; and a disk that is full."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import fan, job, one, samples
from scripted import Scripted, scripted

from cgspec import usercode
from cgspec.engines import ENGINES, Options
from cgspec.errors import ActorDied, Failure, RunError, Stalled
from cgspec.graph import Graph
from cgspec.phases import calm
from cgspec.record import load
from cgspec.running import Job, run
from cgspec.views.summary import text


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
    busy = result.record.tasks["work"].busy_us
    assert busy is not None and (busy.count, busy.p50) == (10, 1000.0)
    rows = [line for line in (result.run_dir / "timeline.csv").read_text().splitlines() if line.startswith("measure")]
    assert len(rows) == 11, "what it was at when it broke is there to be looked at"
    assert result.record.failure is not None and result.record.failure.phase == "measure"
    assert json.loads((result.run_dir / "failed-inputs.json").read_text())["inputs"] == {"x": 10}


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
    assert "trace/only.pt.trace.json.gz" in result.record.phases[1].files
    assert "trace-2/only.pt.trace.json.gz" in result.record.phases[2].files
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


def test_an_engine_whose_package_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(graph: Graph, options: Options) -> Scripted:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")

    monkeypatch.setitem(ENGINES, "local", missing)
    result = run(job(one("echo", 1), tmp_path))
    assert (result.status, result.exit_code) == ("not-able", 3)
    assert "needs the package ray, which is not installed" in text(result.record)


def test_an_engine_that_is_not_built_yet_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(ENGINES, "local")
    result = run(job(one("echo", 1), tmp_path))
    assert (result.status, result.exit_code) == ("not-able", 3)
    assert "the engine local is not supported yet" in text(result.record)


def test_the_driver_computes_on_one_thread_beside_actors_and_as_ever_where_they_live_in_it() -> None:
    torch.set_num_threads(2)
    with pytest.raises(ValueError), calm("compiled"):
        assert torch.get_num_threads() == 1
        raise ValueError
    with calm("local"):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 2
