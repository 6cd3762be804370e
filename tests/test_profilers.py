"""Profilers watch a window of iterations on the live actors, and their files come home named after actors."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import ray
from engines_running import one, options, started
from graphs import Drawing

from cgspec.engines import Phase, PhaseData
from cgspec.graph import Graph
from cgspec.profilers import PROFILERS, WatchJob, make_watch
from cgspec.profilers.torch import TorchWatch
from cgspec.spec import ProfileSpec


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def multiply() -> Graph:
    """Two actors of one family multiply matrices in turn; the second one twice."""
    drawing = Drawing().actor("mat.0", "tensors.py:Matrix").actor("mat.1", "tensors.py:Matrix").input("x")
    drawing.task("left.0", "mat.0.times", {"x": "inputs.x"}).task("right.1", "mat.1.times", {"x": "left.0"})
    drawing.task("again.1", "mat.1.times", {"x": "right.1"})
    return drawing.graph("again.1")


def profiled(kind: str, profile: ProfileSpec, folder: pathlib.Path, **more: Any) -> tuple[PhaseData, list[object]]:
    with started(multiply(), options(kind), Phase("measure", 3)) as engine:
        for i in range(3):
            one(engine, i)
        engine.end()
        iterations = more.pop("run", profile.warmup + profile.iterations)
        engine.begin(Phase("profile", iterations, profile=profile, trace_dir=folder, **more))
        results = [one(engine, i)[0] for i in range(iterations)]
        data = engine.end()
        engine.begin(Phase("after", 2))
        assert one(engine, 5) == [5.0 * 8**3]
        after = engine.end()
        assert after.files == [] and after.channels == []
    return data, results


def events(path: pathlib.Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def test_torch_leaves_one_trace_per_actor_with_the_names_of_its_tasks(tmp_path: pathlib.Path) -> None:
    profile = ProfileSpec(kind="torch", iterations=4, warmup=2)
    data, results = profiled("compiled", profile, tmp_path / "trace")
    assert results == [i * 512.0 for i in range(6)] and data.notes == []
    assert data.files == [tmp_path / "trace" / f"mat.{n}.pt.trace.json.gz" for n in range(2)]
    for path, tasks in zip(data.files, (["left.0"], ["right.1", "again.1"]), strict=True):
        found = events(path)
        names = [event["name"] for event in found if event.get("ph") == "X"]
        # a window: as often as there are recorded iterations, neither warmup nor other phases
        assert {task: names.count(task) for task in tasks} == dict.fromkeys(tasks, 4)
        assert names.count("aten::mm") == 4 * len(tasks)
        assert not set(names) & ({"left.0", "right.1", "again.1"} - set(tasks))


def test_the_local_engine_leaves_one_trace_of_the_process(tmp_path: pathlib.Path) -> None:
    data, results = profiled("local", ProfileSpec(kind="torch", iterations=3, warmup=1), tmp_path)
    assert results == [i * 512.0 for i in range(4)] and [path.name for path in data.files] == ["local.pt.trace.json.gz"]
    names = [event["name"] for event in events(data.files[0]) if event.get("ph") == "X"]
    assert [names.count(task) for task in ("left.0", "right.1", "again.1")] == [3, 3, 3]
    data, _ = profiled("local", ProfileSpec(kind="torch", iterations=9, warmup=0), tmp_path, run=2)
    assert data.notes == ["actor mat.0: the torch profiler recorded 2 of 9 iterations"]


def test_only_the_chosen_actors_are_watched(tmp_path: pathlib.Path) -> None:
    profile = ProfileSpec(kind="torch", iterations=2, warmup=0, shapes=True, stacks=True, memory=True, flops=True)
    data, _ = profiled("compiled", profile, tmp_path, actors=(1,))
    assert [path.name for path in data.files] == ["mat.1.pt.trace.json.gz"]
    products = [event for event in events(data.files[0]) if event["name"] == "aten::mm"]
    assert len(products) == 4 and products[0]["args"]["Input Dims"][:2] == [[8, 8], [8, 8]]


def test_a_phase_that_ends_early_keeps_what_was_recorded_and_says_so(tmp_path: pathlib.Path) -> None:
    profile = ProfileSpec(kind="torch", iterations=10, warmup=1)
    data, _ = profiled("compiled", profile, tmp_path, run=3)
    assert data.notes == [f"actor mat.{n}: the torch profiler recorded 2 of 10 iterations" for n in range(2)]
    assert [event["name"] for event in events(data.files[0])].count("left.0") == 2
    data, _ = profiled("compiled", profile, tmp_path, run=1)
    assert data.files == [] and "ended before" in data.notes[0]


def test_nvtx_ranges_are_named_after_tasks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nvtx import nvtx

    said: list[object] = []
    monkeypatch.setattr(nvtx, "push_range", lambda message, domain: said.append((domain, message)))
    monkeypatch.setattr(nvtx, "pop_range", lambda domain: said.append(domain))
    data, _ = profiled("local", ProfileSpec(kind="nvtx", iterations=1, warmup=0), tmp_path)
    opened = [entry[1] for entry in said if isinstance(entry, tuple)]
    assert opened == ["iteration 0", "left.0", "right.1", "again.1"]
    assert said.count("cgspec") == 4 and data.files == []


def test_nvtx_runs_on_actors_too(tmp_path: pathlib.Path) -> None:
    data, results = profiled("compiled", ProfileSpec(kind="nvtx", iterations=2, warmup=0), tmp_path)
    assert results == [0.0, 512.0] and data.files == [] and data.notes == []


def test_timeline_times_the_reads_and_writes_of_channels_and_leaves_nothing_behind(tmp_path: pathlib.Path) -> None:
    """``right.1`` and ``again.1`` are one call, which reads for the one and writes for the other."""
    data, _ = profiled("compiled", ProfileSpec(kind="timeline", iterations=3, warmup=0), tmp_path)
    assert [len(task.start) for task in data.times] == [3, 3, 3] and data.files == []
    found = {(each.task, each.kind): each for each in data.channels}
    assert set(found) == {(0, "read"), (0, "write"), (1, "read"), (2, "write")} and len(data.channels) == 4
    assert all((each.first, len(each.start), len(each.end)) == (0, 3, 3) for each in data.channels)
    left, right, again = data.times
    for i in range(3):
        assert found[0, "read"].end[i] <= left.start[i] < left.end[i] <= found[0, "write"].start[i]
        assert i == 0 or found[0, "write"].start[i] < found[1, "read"].end[i] <= right.start[i]
        assert again.end[i] <= found[2, "write"].start[i] < found[2, "write"].end[i]
    # the first read of a phase began before it
    assert [each.start[0] > 0 for each in data.channels] == [key not in ((0, "read"), (1, "read")) for key in found]
    assert all(each.start[i] > 0 for each in data.channels for i in (1, 2))


def test_engines_without_channels_have_none_to_time(tmp_path: pathlib.Path) -> None:
    for kind in ("local", "direct"):
        data, _ = profiled(kind, ProfileSpec(kind="timeline", iterations=3, warmup=0), tmp_path)
        assert [len(task.start) for task in data.times] == [3, 3, 3] and data.channels == []


def test_every_kind_of_profile_has_a_row() -> None:
    assert set(PROFILERS) == set(ProfileSpec.model_fields["kind"].annotation.__args__)  # type: ignore[union-attr]
    watched = {kind: row.watches(ProfileSpec(kind=kind)) for kind, row in PROFILERS.items()}  # type: ignore[arg-type]
    assert watched == {"none": False, "timeline": False, "torch": True, "nvtx": True, "nsight": True}


def test_a_watch_that_never_saw_an_iteration_has_nothing() -> None:
    watch = make_watch(WatchJob("torch", "a", warmup=0, iterations=1))
    assert isinstance(watch, TorchWatch) and watch.finish()[0] == {}


def test_the_table_loads_nothing_heavy() -> None:
    import subprocess

    code = "import sys, cgspec.profilers, cgspec.engines, cgspec.worker; print([m for m in HEAVY if m in sys.modules])"
    code = "HEAVY = ('ray', 'torch', 'nvtx', 'pydantic', 'yaml'); " + code
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
