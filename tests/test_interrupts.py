"""Signals end a run soon and whole; and runs that are long or large stay right and small."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from jobs import job, one, samples
from scripted import Scripted, scripted

from cgspec.errors import Failure, TaskRaised
from cgspec.interrupts import held
from cgspec.record import load
from cgspec.running import run

SIGNALLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from jobs import job, one
from cgspec.running import run

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


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ignore(step: str) -> None:
        if step == "begin measure":
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        scripted(monkeypatch, during=ignore)
        assert run(job(one("echo", 1), tmp_path)).status == "passed"
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number, word", [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_signal_that_comes_when_all_is_measured_changes_the_exit_code_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, word: str
) -> None:
    def late(step: str) -> None:
        if step == "teardown":
            os.kill(os.getpid(), number)

    scripted(monkeypatch, during=late)
    result = run(job(one("echo", 1), tmp_path, run={"iterations": 7}))
    assert (result.status, result.exit_code, result.record.phases[1].iterations) == ("passed", 130, 7)
    assert load(result.run_dir).notes == [f"{word} arrived when everything was measured"]


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


def test_what_must_not_be_broken_off_holds_the_first_ctrl_c_and_not_the_second() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held(60):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        steps.append("to the end")
    with pytest.raises(KeyboardInterrupt), held(60):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        steps.append("half-way")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        steps.append("never here")
    with pytest.raises(KeyboardInterrupt), held(0.05):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        steps.append("nor here: it has taken too long")
    assert steps == ["to the end", "half-way"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
