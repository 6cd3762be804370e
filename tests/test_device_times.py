"""Device times: pairs of events on a stand-in stream, moved to the host's clock; then to the record."""

from __future__ import annotations

import csv
import gzip
import json
import pathlib
import sys
import time
from array import array
from collections.abc import Iterator
from types import FunctionType

import pytest
import torch
from graphs import Drawing
from jobs import actor, graph, job, task
from stand_ins.gpu import Host, RealHost, Stream

from cgspec import account, device_times, usercode
from cgspec.comparing import compare
from cgspec.device_times import DeviceRecorder, Pool, anchor, cuda_events
from cgspec.engines import ENGINES, Phase, PhaseData, TaskTimes
from cgspec.engines.local import LocalEngine
from cgspec.fusion import fuse
from cgspec.graph import Graph, InputRef, TaskRef
from cgspec.invocation import Failed
from cgspec.layout import lay_out
from cgspec.phases import Passed, Plan
from cgspec.record import load
from cgspec.running import run
from cgspec.timeline import read_phase
from cgspec.views.report import report
from cgspec.views.summary import text, to_json
from cgspec.views.trace import merge
from cgspec.worker import Job, Worker

ROOT = pathlib.Path(__file__).parent / "actors"
STEP = 125_000
"""ns; an eighth of a ms, which float32 holds exactly."""


def held(times: object) -> list[object]:
    first, starts, ends = times  # type: ignore[misc]
    return [first, list(starts), list(ends)]


def test_a_kernel_is_charged_to_the_task_that_launched_it_and_not_to_the_one_that_waits() -> None:
    """The host sees 1 step of ``a`` and 40 of ``b``; the device is busy for 40 steps of ``a``, and 2 of ``b``."""
    host = Host()
    stream, counts, begun = Stream(host), [0, 0], host.ns
    recorder = DeviceRecorder(counts, 1, Pool(stream.make, host.now))
    recorder.enter(0)
    stream.launch(40 * STEP)
    host.ns += STEP
    recorder.leave(0)
    recorder.enter(1)
    stream.launch(2 * STEP)
    stream.synchronize()
    recorder.leave(1)
    counts[:] = [1, 1]
    found = recorder.finish()
    assert held(found.times[0]) == [0, [begun], [begun + 40 * STEP]]
    assert held(found.times[1]) == [0, [begun + 40 * STEP], [begun + 42 * STEP]]
    # no call costs anything here: what is left is CUDA's resolution (42 steps are too few for float32 to lose any)
    assert (found.error, found.notes) == (500, ())


def test_an_anchor_lies_in_the_middle_of_what_the_host_saw_and_the_narrowest_try_counts() -> None:
    host = Host(cost=1000)
    stream = Stream(host)
    stream.launch(80 * STEP)  # the first try waits for this
    found = anchor(Pool(stream.make, host.now))
    assert (found.at, found.error) == (found.event.at, 1000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_a_clock_that_runs_at_another_rate_is_moved_by_both_anchors(rate: float) -> None:
    """Starts are right all over the phase, near either anchor; a length is by the device's own clock."""
    host = Host()
    stream, counts, begun = Stream(host, rate=rate), [0], host.ns
    recorder = DeviceRecorder(counts, 3, Pool(stream.make, host.now))
    for _ in range(3):
        recorder.enter(0)
        host.ns += 8 * STEP
        recorder.leave(0)
        counts[0] += 1
        host.ns += 8 * STEP
    starts = [begun, begun + 16 * STEP, begun + 32 * STEP]
    assert held(recorder.finish().times[0]) == [0, starts, [at + round(8 * STEP * rate) for at in starts]]


def test_a_ring_that_is_full_holds_the_latest_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine events for two tasks are two iterations: the events of the first three were used again."""
    monkeypatch.setattr(device_times, "POOL", 9)
    host = Host()
    stream, counts, begun = Stream(host), [0, 0], host.ns
    pool = Pool(stream.make, host.now)
    recorder = DeviceRecorder(counts, 100, pool)
    for _ in range(5):
        for slot in (0, 1):
            recorder.enter(slot)
            host.ns += STEP
            recorder.leave(slot)
            counts[slot] += 1
    assert len(pool.events) == 8
    found = recorder.finish()
    assert held(found.times[0]) == [3, [begun + 6 * STEP, begun + 8 * STEP], [begun + 7 * STEP, begun + 9 * STEP]]
    assert held(found.times[1])[0] == 3
    assert found.notes == ("device times are held of its last 2 of 5 iterations",)


def test_phases_share_their_events() -> None:
    host = Host()
    pool = Pool(Stream(host).make, host.now)
    for iterations, made in ((4, 8), (2, 8), (5, 10)):
        DeviceRecorder([0], iterations, pool)
        assert len(pool.events) == made


def test_a_skipped_iteration_has_no_times_even_where_its_events_were_used_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_times, "POOL", 4)
    host = Host()
    stream, counts, begun = Stream(host), [0], host.ns
    recorder = DeviceRecorder(counts, 9, Pool(stream.make, host.now))
    for skipped in (False, False, True, False):
        if not skipped:
            recorder.enter(0)
            host.ns += STEP
            recorder.leave(0)
        counts[0] += 1
    assert held(recorder.finish().times[0]) == [2, [0, begun + 2 * STEP], [0, begun + 3 * STEP]]


@pytest.mark.parametrize("when", ["before", "within", "after"])
def test_a_device_that_fails_costs_its_times_and_nothing_else(when: str) -> None:
    host = Host()
    stream, counts = Stream(host), [0]
    stream.broken = when == "before"
    recorder = DeviceRecorder(counts, 1, Pool(stream.make, host.now))
    recorder.enter(0)
    stream.broken = stream.broken or when == "within"
    recorder.leave(0)
    counts[0] = 1
    stream.broken = True
    found = recorder.finish()
    said = "its device times were lost (RuntimeError: CUDA error: an illegal memory access was encountered)"
    assert (found.times, found.error, found.notes) == ({}, None, (f"{said}: its times are by the host's clock",))


def test_events_are_made_where_torch_uses_cuda_and_torch_is_not_imported_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert cuda_events() is None and "torch" not in sys.modules

    made: list[dict[str, bool]] = []

    class Torch:
        class cuda:
            is_available = staticmethod(lambda: True)
            initialized = False

            @classmethod
            def is_initialized(cls) -> bool:
                return cls.initialized

            @classmethod
            def Event(cls, **options: bool) -> object:
                made.append(options)
                return Stream(Host()).make()

    monkeypatch.setitem(sys.modules, "torch", Torch)  # type: ignore[arg-type]
    assert cuda_events() is None
    Torch.cuda.initialized = True
    make = cuda_events()
    assert make is not None and make().at == 1_000_000  # type: ignore[attr-defined]
    assert made == [{"enable_timing": True}]


def on_gpu(worker: Worker) -> Stream:
    """A worker whose process has a GPU: the stand-in's, by this machine's clock."""
    stream = Stream(RealHost())
    worker.events = lambda: stream.make  # type: ignore[method-assign, assignment]
    return stream


@pytest.mark.parametrize("short", [True, False])
def test_a_worker_times_what_runs_and_what_raises_and_not_what_is_skipped(short: bool) -> None:
    drawing = Drawing().actor("a", "plain.py:Trouble").input("x").task("t", "a.raises", {"x": "inputs.x"})
    made, worker = drawing.graph("t"), Worker()
    on_gpu(worker)
    steps = lay_out(made, transports=False, devices=False).steps[0]
    worker.construct(Job(str(ROOT), made.actors[0], steps, "cuda"))
    worker.begin(9, None, () if short else (0,))
    assert isinstance(worker.calls[0], FunctionType) is short
    before = time.monotonic_ns()
    failed = worker.run(0, -3)
    assert isinstance(failed, Failed) and worker.run(0, failed) is failed and worker.run(0, 1) == 1
    after, phase = time.monotonic_ns(), worker.end()
    usercode.uninstall()
    first, starts, ends = phase.device[0]
    assert first == 0 and [end > 0 for end in ends] == [True, False, True] == [end > 0 for end in phase.times[0][2]]
    assert phase.device_error is not None
    for start, end in zip(starts, ends, strict=True):
        assert not start or before - phase.device_error <= start <= end <= after + phase.device_error


def test_a_collective_is_timed_from_its_entry_to_its_end() -> None:
    drawing = Drawing().actor("a", "plain.py:Counter").input("x").task("t", "a.echo", {"x": "inputs.x"})
    made, worker = drawing.collective("s", "allreduce", ["t"]).graph("s.0"), Worker()
    stream = on_gpu(worker)
    steps = lay_out(made, transports=True, devices=False).steps[0]
    worker.construct(Job(str(ROOT), made.actors[0], steps, "cuda"))
    worker.begin(1)
    entered = worker.run(1, worker.run(0, torch.ones(2)))
    stream.launch(3_000_000)
    worker.run(2, entered)
    phase = worker.end()
    usercode.uninstall()
    host, device = phase.times[1], phase.device[1]
    assert phase.device_error is not None and device[1][0] <= host[1][0] + phase.device_error
    assert device[2][0] - device[1][0] >= 3_000_000, "what was launched after the entry is in it"


def test_every_task_of_a_chain_that_is_one_call_is_timed() -> None:
    drawing = Drawing().actor("a", "plain.py:Counter").input("x").task("s", "a.inc", {"x": "inputs.x"})
    made, worker = drawing.task("t", "a.inc", {"x": "s"}).graph("t"), Worker()
    on_gpu(worker)
    layout = fuse(lay_out(made, transports=False, devices=False))
    worker.construct(Job(str(ROOT), made.actors[0], layout.steps[0], "cuda"))
    worker.begin(2)
    (chain,) = layout.binds
    assert [worker.run(chain.step, 10), worker.run(chain.step, 10)] == [13, 17]
    phase = worker.end()
    usercode.uninstall()
    (_, starts, ends), (_, later, last) = phase.device[0], phase.device[1]
    assert all(a <= b <= c <= d for a, b, c, d in zip(starts, ends, later, last, strict=True)) and len(last) == 2


def test_an_actor_without_a_gpu_makes_no_events() -> None:
    drawing = Drawing().actor("a", "plain.py:Counter").input("x").task("t", "a.echo", {"x": "inputs.x"})
    made, worker = drawing.graph("t"), Worker()
    worker.events = lambda: pytest.fail("asked")  # type: ignore[method-assign, assignment]
    worker.construct(Job(str(ROOT), made.actors[0], lay_out(made, transports=False, devices=False).steps[0], "cpu"))
    worker.begin(1)
    worker.run(0, 1)
    assert (worker.end().device, worker._device) == ({}, None)
    usercode.uninstall()


def two_stages() -> Graph:
    actors = [actor("gpu", (0,), num_gpus=1.0), actor("cpu", (1,))]
    tasks = [task("send", 0, "double", {"x": InputRef(0)}), task("wait", 1, "echo", {"x": TaskRef(0)})]
    return graph({"x": 1}, actors, tasks, [("wait", TaskRef(1))])


def test_the_analysis_takes_the_devices_times_where_there_are_any() -> None:
    """By the host ``send`` takes 1 ms and ``wait`` 9; by the GPU ``send`` takes 9 of an iteration's 10 ms."""
    ms, steps = 1_000_000, range(30)

    def times(first: int, begins: list[int], length: int) -> TaskTimes:
        starts = array("q", [1 + at * ms for at in begins])
        return TaskTimes(first, starts, array("q", [at + length * ms for at in starts]))

    send, device = times(0, [10 * k for k in steps], 1), times(10, [10 * k for k in steps[10:]], 9)
    passed = Passed(Plan(Phase("measure", 30)))
    passed.submitted.extend(1 + 10 * k * ms for k in steps)
    passed.done.extend(1 + (10 * k + 10) * ms for k in steps)
    passed.seconds = 0.3
    given = TaskTimes(send.first, send.start, send.end, device)
    passed.data = PhaseData((given, times(0, [10 * k + 9 for k in steps], 1)), device_errors={"gpu": 1500})
    busy = account.Busy(two_stages(), passed)
    records = account.task_records(two_stages(), busy, lambda path: None)
    assert records["send"].busy_us is not None and records["send"].host_us is not None
    assert (records["send"].busy_us.p50, records["send"].busy_us.count) == (9000, 20)
    assert (records["send"].host_us.p50, records["wait"].host_us) == (1000, None)
    found = busy.utilisation(0)
    assert found is not None and (found.busy, found.share) == (9 * ms, 0.9)
    actors = account.actor_records(two_stages(), {})
    account.fill_in_actors(actors, busy)
    assert [each.device_error_us for each in actors] == [1.5, None]


class OnGpu(LocalEngine):
    """The workers of actors with GPUs have a stand-in's, on which each task launches 3 ms of work."""

    def place(self) -> None:
        super().place()
        for worker, each in zip(self.workers, self.graph.actors, strict=True):
            stream = on_gpu(worker)
            worker._has_gpu = bool(each.num_gpus)
            double = worker._user.double
            worker._user.double = lambda x, double=double, stream=stream: (stream.launch(3_000_000), double(x))[1]
            worker.adopt(
                Job(str(self.options.root), each, self.layout.steps[self.workers.index(worker)], ""), fresh=False
            )


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(ENGINES, "compiled", lambda graph, options: OnGpu(graph, options))
    yield


def test_both_times_are_in_the_run_folder_and_what_is_shown_says_which_clock_it_is(
    a_gpu: None, tmp_path: pathlib.Path
) -> None:
    made = job(two_stages(), tmp_path, engine="compiled", run={"iterations": 8, "warmup": 1})
    result = run(made)
    record = result.record
    assert record.status == "passed", record.failure
    with (result.run_dir / "timeline.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["phase"] == "measure"]
    kept = {row["task"]: row for row in rows}
    assert len(rows) == 16 and kept["wait"]["device_start_ns"] == ""
    assert int(kept["send"]["device_end_ns"]) - int(kept["send"]["device_start_ns"]) >= 3_000_000
    send = record.tasks["send"]
    assert send.busy_us is not None and send.host_us is not None
    assert send.busy_us.min >= 3000 and send.host_us.p50 < send.busy_us.p50
    segment = read_phase(result.run_dir, "measure")
    assert segment is not None and list(segment.device) == ["send"] and len(segment.device["send"]) == 8
    assert segment.busy["send"] is segment.device["send"] and segment.busy["wait"] is segment.tasks["wait"]
    said = "busy times of gpu are by the GPU's clock (CUDA events around each task), on the host's to ±"
    assert said in text(record) and said.replace("'", "&#39;") in report(result.run_dir)
    assert [told["clock"] for told in to_json(record)["tasks"].values()] == ["device", "host"]
    with gzip.open(merge(result.run_dir).path) as trace:
        events = json.load(trace)["traceEvents"]
    slices = [(event["name"], event["cat"]) for event in events if event["ph"] == "X" and event["cat"] != "iteration"]
    assert slices.count(("send", "task")) == slices.count(("send", "device")) == slices.count(("wait", "task")) == 8
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert names.count("tasks, by the GPU's clock") == 1


def test_runs_that_were_timed_by_different_clocks_say_so_when_they_are_compared(
    a_gpu: None, tmp_path: pathlib.Path
) -> None:
    sections = {"engine": "compiled", "run": {"iterations": 8, "warmup": 0}}
    one = run(job(two_stages(), tmp_path, **sections)).run_dir
    other = run(job(two_stages(), tmp_path, **sections)).run_dir
    data = json.loads((other / "run.json").read_text())
    data["actors"][0]["device_error_us"] = None
    (other / "run.json").write_text(json.dumps(data))
    found = {each.what: (each.before, each.after) for each in compare(one, other).differences}
    told = ("the GPU's clock of gpu; the others by their hosts'", "the hosts' clocks")
    assert found["busy times by"] == told
    assert "busy times of gpu are by the host's clock, which charges kernels" in text(load(other))
    assert not any(each.what == "busy times by" for each in compare(one, one).differences)
