"""Nsight: the chosen actors run under ``nsys``, and its reports, which come late, come home named after actors."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterator

import pytest
import ray
from engines_running import error_of, one, options, started
from graphs import Drawing

from cgspec import raynames
from cgspec.engines import ENGINES, Phase
from cgspec.errors import NotAble
from cgspec.profilers import nsight
from cgspec.spec import ProfileSpec

STAND_INS = pathlib.Path(__file__).parent / "stand_ins"


def drawing() -> Drawing:
    drawing = Drawing().actor("a.0", "plain.py:Counter").actor("a.1", "plain.py:Counter").input("x")
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


def test_reports_of_the_chosen_actors_come_home_after_the_run(nsys: None, tmp_path: pathlib.Path) -> None:
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


@pytest.fixture
def ready_ray(nsys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Ray that was started as an engine would start it, for several tests."""
    monkeypatch.setenv("PATH", nsight.python_on_path())
    monkeypatch.setenv(raynames.CLEANUP, "0")
    if not ray.is_initialized():
        ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield


@pytest.fixture(scope="module", autouse=True)
def _end() -> Iterator[None]:
    yield
    ray.shutdown()


def test_default_options_reports_of_all_actors_and_of_actors_that_were_killed(
    ready_ray: None, tmp_path: pathlib.Path
) -> None:
    profile = ProfileSpec(kind="nsight", iterations=1, warmup=0)
    engine = ENGINES["compiled"](drawing().graph("q"), options(profiles=(profile,)))
    try:
        engine.place()
        engine.compile()
        engine.begin(Phase("profile", 1, profile=profile, trace_dir=tmp_path))
        engine.submit([1])  # under way at the teardown: the actors are killed
    finally:
        engine.teardown()
    assert sorted(file.name for file in engine.late_files()) == ["a.0.nsys-rep", "a.1.nsys-rep"]
    assert "('t', 'cuda,cudnn,cublas,nvtx')" in engine.late_files()[0].read_text()


def test_options_that_nsys_refuses_are_said(ready_ray: None) -> None:
    profile = ProfileSpec(kind="nsight", options={"refuse": "me"})
    error = error_of(drawing().graph("q"), [1], options(profiles=(profile,)))
    assert isinstance(error, NotAble) and "unrecognised option" in error.failure.message


def test_reports_are_waited_for_until_they_are_whole(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "logs" / "nsight"
    folder.mkdir(parents=True)
    (folder / "cgspec-actor-3.nsys-rep").write_text("whole")
    began = time.monotonic()
    found = nsight.collect(tmp_path, {3: "b", 4: "c"}, tmp_path / "out", began + 1.5)
    assert [path.name for path in found] == ["b.nsys-rep"] and time.monotonic() - began < 3
