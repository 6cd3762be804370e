"""The verdict on a run in plain words: a synthetic pipeline with busy times of 2, 5 and 3 ms, on paper and for real."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from jobs import actor, graph, job, reader, task

from cgspec import account
from cgspec.engines import Phase, PhaseData, TaskTimes
from cgspec.graph import Graph, InputRef, TaskRef
from cgspec.phases import Passed, Plan
from cgspec.record import LimitsRecord
from cgspec.running import run
from cgspec.views.summary import text

MS = 1_000_000
BUSY = (2, 5, 3)


def pipeline(scale: float = 1.0) -> Graph:
    """Three stages that sleep for 2, 5 and 3 ms."""
    tasks = []
    for stage, ms in enumerate(BUSY):
        read = TaskRef(stage - 1) if stage else InputRef(0)
        seconds = reader().read(scale * ms / 1e3, ())
        tasks.append(task(f"work.{stage}", stage, "nap", {"x": read}, consts={"seconds": seconds}))
    return graph({"x": 1}, [actor(f"stage.{n}", (n,)) for n in range(3)], tasks, [("work", TaskRef(2))])


def passed(begins: list[list[int]], submitted: list[int], done: list[int], inflight: int) -> Passed:
    """A pass in which task t of iteration k began ``begins[t][k]`` ms after the start."""
    times = []
    for begun, ms in zip(begins, BUSY, strict=True):
        start = array("q", [1 + at * MS for at in begun])
        times.append(TaskTimes(0, start, array("q", [at + ms * MS for at in start])))
    found = Passed(Plan(Phase("measure", len(done)), inflight))
    found.submitted.extend(1 + at * MS for at in submitted)
    found.done.extend(1 + at * MS for at in done)
    found.seconds = (done[-1] - submitted[0]) / 1e3
    found.data = PhaseData(tuple(times))
    return found


def limits_of(measured: Passed, *, parallel: bool = True) -> LimitsRecord:
    busy = account.Busy(pipeline(), measured)
    phase = account.phase_record(measured, profiled=None)
    found = account.limits_record(busy, phase, measured.plan.inflight, parallel=parallel)
    assert found is not None
    return found


def test_a_full_pipeline_is_bounded_by_its_slowest_stage() -> None:
    """Every 5 ms an iteration ends; stage.1 works for 500 of 505 ms, 99%."""
    steps = range(100)
    begins = [[5 * k for k in steps], [5 * k + 2 for k in steps], [5 * k + 7 for k in steps]]
    found = limits_of(passed(begins, [5 * k for k in steps], [5 * k + 10 for k in steps], 3))
    assert (found.critical_path_us, found.critical_path) == (10_000, ["work.0", "work.1", "work.2"])
    assert (1e6 / found.busiest_actor_us, found.busiest_actor, found.busiest_task) == (200, "stage.1", "work.1")
    assert found.advice == (
        "stage.1 is busy 99% of the time: it bounds throughput at 200/s; nothing else matters until it is faster"
    )


def test_one_iteration_at_a_time_leaves_the_slowest_stage_idle_half_of_the_time() -> None:
    """Iterations of 10 ms, one after the other: all of it is the critical path, and 200/s would be possible."""
    steps = range(40)
    begins = [[10 * k for k in steps], [10 * k + 2 for k in steps], [10 * k + 7 for k in steps]]
    found = limits_of(passed(begins, [10 * k for k in steps], [10 * k + 10 for k in steps], 1))
    assert (found.critical_path_us, found.busiest_actor_us) == (10_000, 5_000)
    assert found.advice == (
        "the tasks on the critical path take 100% of the latency. "
        "With more run.inflight stage.1 would allow up to 200/s"
    )


def test_a_pipeline_that_waits_is_not_bounded_by_a_stage() -> None:
    """Iterations of 100 ms, of which 10 are work: what is between the tasks is to blame."""
    steps = range(20)
    begins = [[100 * k for k in steps], [100 * k + 50 for k in steps], [100 * k + 97 for k in steps]]
    found = limits_of(passed(begins, [100 * k for k in steps], [100 * k + 100 for k in steps], 1))
    assert "take 10% of the latency; the rest is sending, waiting and Ray's own work" in found.advice


def test_real_sleeps_give_the_same_limits(tmp_path: Path) -> None:
    """20, 50 and 30 ms: within 5% of 100 ms and 20/s; a busy machine may need another try."""
    for attempt in range(3):
        made = job(pipeline(10), tmp_path / str(attempt), run={"iterations": 20, "warmup": 1})
        result = run(made)
        found = result.record.limits
        assert found is not None
        assert (found.busiest_actor, found.busiest_task) == ("stage.1", "work.1")
        assert found.advice.startswith("one task follows the other here")
        assert "busiest actor: stage.1, 5" in text(result.record)
        close = pytest.approx((100_000, 50_000), rel=0.05)
        if (found.critical_path_us, found.busiest_actor_us) == close:
            return
    raise AssertionError(found)
