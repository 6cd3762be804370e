"""Nsight: the chosen actors run under ``nsys``, and its reports, which come late, come home named after actors."""

from __future__ import annotations

import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
import ray
from engines_running import ROOT, error_of, one, options, started
from graphs import Drawing

from cgspec import raynames, usercode
from cgspec.engines import ENGINES, Phase
from cgspec.errors import NotAble
from cgspec.invocation import FLUSH
from cgspec.layout import lay_out
from cgspec.profilers import WatchJob, capture, make_watch, nsight
from cgspec.spec import ProfileSpec
from cgspec.worker import Job, Worker

STAND_INS = pathlib.Path(__file__).parent / "stand_ins"


def drawing(num_gpus: float = 0.0) -> Drawing:
    drawing = Drawing().actor("a.0", "plain.py:Counter", num_gpus=num_gpus).actor("a.1", "plain.py:Counter").input("x")
    return drawing.task("p", "a.0.pid", {"x": "inputs.x"}).task("q", "a.1.echo", {"x": "p"})


@pytest.fixture
def nsys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in on PATH, and no ``python`` but the system's: the environment's own has to be found."""
    monkeypatch.setenv("PATH", f"{STAND_INS}:/usr/bin:/bin")


def test_a_missing_nsys_is_said_before_ray_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    began = time.monotonic()
    error = error_of(drawing().graph("q"), [1], options(profiles=(ProfileSpec(kind="nsight"),)))
    assert isinstance(error, NotAble) and "nsys is not on PATH" in error.failure.message
    assert time.monotonic() - began < 3 and not ray.is_initialized()


def test_reports_of_the_chosen_actors_come_home_after_the_run(
    nsys: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", "pdb.set_trace")
    profile = ProfileSpec(
        kind="nsight", iterations=2, warmup=0, options={"t": "cuda,nvtx", "stats": "false"}, nvtx=True
    )
    given = options(profiles=(profile,), nsight_actors=(0,))
    path = os.environ["PATH"]
    with started(drawing().graph("q"), given) as engine:
        (pid,) = one(engine, 1)
        engine.end()
        engine.begin(Phase("profile", 2, profile=profile, actors=(0,), trace_dir=tmp_path / "nsight"))
        assert one(engine, 1) == one(engine, 1) == [pid]
        assert engine.end().files == []
    assert [file.name for file in engine.late_files()] == ["a.0.nsys-rep"]
    report = engine.late_files()[0].read_text()
    assert f"pid {pid}" in report and "('t', 'cuda,nvtx')" in report and "('stats', 'false')" in report
    assert not ray.is_initialized() and os.environ["PATH"] == path
    assert "RAY_process_group_cleanup_enabled" not in os.environ
    assert os.environ["PYTHONBREAKPOINT"] == "pdb.set_trace"


@pytest.fixture
def ready_ray(nsys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Ray that was started as an engine would start it, for several tests."""
    monkeypatch.setenv("PATH", nsight.python_on_path())
    monkeypatch.setenv(raynames.CLEANUP, "0")
    if not ray.is_initialized():
        ray.init(
            address="local", num_cpus=4, num_gpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
        )
    yield


@pytest.fixture(scope="module", autouse=True)
def _end() -> Iterator[None]:
    yield
    ray.shutdown()


def test_default_options_reports_of_all_actors_and_of_actors_that_were_killed(
    ready_ray: None, tmp_path: pathlib.Path
) -> None:
    profile = ProfileSpec(kind="nsight", iterations=1, warmup=0)
    mixed = drawing(num_gpus=1).graph("q")
    engine = ENGINES["compiled"](mixed, options(profiles=(profile,)))
    try:
        engine.place()
        engine.compile()
        engine.begin(Phase("profile", 1, profile=profile, trace_dir=tmp_path))
        engine.submit([1])  # under way at the teardown: the actors are killed
    finally:
        engine.teardown()
    assert sorted(file.name for file in engine.late_files()) == ["a.0.nsys-rep", "a.1.nsys-rep"]
    limited, whole = (file.read_text() for file in sorted(engine.late_files()))
    assert all("('t', 'cuda,cudnn,cublas,nvtx')" in report for report in (limited, whole))
    assert "('capture-range', 'cudaProfilerApi'), ('capture-range-end', 'stop')" in limited
    assert "capture-range" not in whole  # without a GPU nobody could tell nsys when to record


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {**nsight.CAPTURE, **nsight.DEFAULT}),
        ({"t": "cuda"}, {**nsight.CAPTURE, "t": "cuda"}),
        ({"capture-range-end": "repeat:2"}, {"capture-range": "cudaProfilerApi", "capture-range-end": "repeat:2"}),
        ({"capture-range": "none", "t": "cuda"}, {"capture-range": "none", "t": "cuda"}),
        ({"c": "nvtx", "p": "step"}, {"c": "nvtx", "p": "step"}),
    ],
)
def test_the_capture_is_limited_unless_the_user_says_when_it_is_on(given: dict[str, str], found: object) -> None:
    told = nsight.nsight_env(options(profiles=(ProfileSpec(kind="nsight", options=given),)), 3, "r", gpu=True)
    assert told == {"nsight": {**found, "o": "cgspec-r-actor-3"}}  # type: ignore[dict-item]


class Profiler:
    """Stands in for ``torch.cuda.profiler``: notes what it is told, on which thread."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.iteration = 0

    def start(self) -> None:
        self.told.append(("start", self.iteration, threading.get_ident()))

    def stop(self) -> None:
        self.told.append(("stop", self.iteration, threading.get_ident()))


@pytest.mark.parametrize(("run", "stopped"), [(7, 4), (4, 4)])
def test_the_capture_is_the_window_and_is_told_on_the_graphs_thread(
    monkeypatch: pytest.MonkeyPatch, run: int, stopped: int
) -> None:
    """Two iterations of warmup, three that are recorded; where there are fewer it ends with the phase."""
    profiler = Profiler()
    monkeypatch.setattr(capture, "cuda_profiler", lambda: profiler)
    graph, worker, threads = drawing().graph("q"), Worker(), []
    worker.construct(Job(str(ROOT), graph.actors[0], lay_out(graph, transports=False, devices=False).steps[0], "cpu"))
    worker.begin(5, WatchJob("nsight", "a.0", warmup=2, iterations=3, nvtx=True, gpu=True))

    def go() -> None:
        threads.append(threading.get_ident())
        for profiler.iteration in range(run):
            worker.run(0, profiler.iteration)
        worker.run(0, FLUSH)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    assert worker.end().notes == ()
    usercode.uninstall()
    last = min(run - 1, stopped)
    assert profiler.told == [("start", 2, threads[0]), ("stop", last, threads[0])]


def test_an_actor_whose_torch_has_no_cuda_cannot_tell_nsys_and_says_so() -> None:
    watch = make_watch(WatchJob("nsight", "a", warmup=0, iterations=1, gpu=True))
    watch.before(0)
    watch.after(0)
    assert watch.finish() == ({}, [capture.NO_CUDA])
    assert make_watch(WatchJob("nsight", "a", warmup=0, iterations=1)).finish() == ({}, [])


def test_what_cuda_raises_costs_the_report_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Profiler()
    broken.start = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    monkeypatch.setattr(capture, "cuda_profiler", lambda: broken)
    watch = make_watch(WatchJob("nsight", "a", warmup=0, iterations=1, gpu=True))
    watch.before(0)
    watch.after(0)
    assert watch.finish()[1] == ["nsys could not be told when to record: ZeroDivisionError: division by zero"]


def test_options_that_nsys_refuses_are_said(ready_ray: None) -> None:
    profile = ProfileSpec(kind="nsight", options={"refuse": "me"})
    error = error_of(drawing().graph("q"), [1], options(profiles=(profile,)))
    assert isinstance(error, NotAble) and "unrecognised option" in error.failure.message


def test_reports_are_waited_for_as_long_as_an_nsys_writes_one(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "nsight"
    place.mkdir()
    (place / "cgspec-old-actor-3.nsys-rep").write_text("of another run")
    (place / "cgspec-r-actor-3.nsys-rep").write_text("whole")
    names = {f"cgspec-r-actor-{number}.nsys-rep": name for number, name in ((3, "b"), (4, "c"), (5, "d"))}
    late = place / "cgspec-r-actor-4"
    with (
        subprocess.Popen([STAND_INS / "nsys", "profile", "-o", late, "true"]),
        subprocess.Popen([STAND_INS / "nsys", "profile", "-o", place / "cgspec-r-actor-5", "sleep", "60"]) as endless,
    ):
        source = nsight.Source(
            names, "10.0.0.2", lambda: nsight.look(place, list(names)), lambda name: read(place / name)
        )
        found, notes = nsight.collect([source], tmp_path / "out", 4)
        endless.kill()
    assert [path.name for path in found] == ["b.nsys-rep", "c.nsys-rep"] and found[0].read_text() == "whole"
    assert notes == ["there is no Nsight report of actor d on node 10.0.0.2: its nsys did not end within 4 s"]


def read(path: pathlib.Path) -> list[bytes]:
    return [path.read_bytes()]


def test_what_cannot_come_is_named_at_once(tmp_path: pathlib.Path) -> None:
    def broken(name: str) -> Iterator[bytes]:
        yield b"half"
        raise OSError("its node does not answer")

    never_written = "cgspec-never-written.nsys-rep"
    gone = nsight.Source({"cgspec-g.nsys-rep": "g"}, "10.0.0.2", dict, broken)
    never = nsight.Source({never_written: "n"}, "", lambda: nsight.look(tmp_path, [never_written]), broken)
    torn = nsight.Source({"cgspec-t.nsys-rep": "t"}, "", lambda: {"cgspec-t.nsys-rep": nsight.Look(9, False)}, broken)
    began = time.monotonic()
    found, notes = nsight.collect([gone, never, torn], tmp_path / "out", 60)
    assert found == [] and list((tmp_path / "out").iterdir()) == [] and time.monotonic() - began < 30
    assert [note.removeprefix("there is no Nsight report of actor ") for note in notes] == [
        "g on node 10.0.0.2: its node does not answer",
        "n: its nsys ended without one; Ray ends it with the actor unless the node has"
        " RAY_process_group_cleanup_enabled=0",
        "t: it could not be copied: its node does not answer",
    ]
