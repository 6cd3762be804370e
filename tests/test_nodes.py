"""Runs on a cluster of two nodes that was up before: code, logs, traces and reports travel, clocks agree, nodes die."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray
from ray._private.node import Node
from ray.cluster_utils import Cluster

import cgspec
from cgspec import raynames
from cgspec.engines.compiled import REPORTS
from cgspec.errors import NotAble
from cgspec.profilers import nsight
from cgspec.quantities import show_duration
from cgspec.running import Result
from cgspec.timeline import label_of, read_segments

STAND_INS = pathlib.Path(__file__).parent / "stand_ins"
FAR, FRAIL = "127.0.0.2", "127.0.0.3"
"""The addresses of the second and the third node; the first one, where the driver is, has the machine's own."""

SPEC = """
cgspec: 1
name: across
cluster: {address: ADDRESS}
engine: {timeouts: {place: 60s, start: 60s, first: 90s, stall: 60s}}
actors:
  near: {class: code/traveller.py:Traveller, num_cpus: 1, resources: {near: 1}}
  far: {class: code/traveller.py:Traveller, num_cpus: 1, resources: {far: 1}}
inputs: {x: {$count: {from: 0}}}
tasks:
  hop: {call: near.hop, in: {x: inputs.x}}
  land: {call: far.land, in: {x: hop}}
outputs: land
run: {iterations: 3, warmup: 1}
"""

CODE = """
import os
import time

import cgspec
from cgspec_user.code import types


class Traveller:
    def hop(self, x):
        print("hop", x, flush=True)
        return x

    def land(self, x):
        print("land", x, "é", flush=True)
        return x, types.SECRET, __file__, os.getcwd(), cgspec.__file__, os.getpid()

    def lend(self, x):
        import lent

        excluded, shipped = os.path.exists("weights.bin"), os.path.exists("notes.txt")
        return lent.VALUE, os.environ["MINE"], excluded, shipped, os.getcwd()

    def fail(self, x):
        if x >= 2:
            raise ValueError(f"no {x} please")
        return x

    def tensor(self, x):
        import torch

        return torch.full((64, 64), float(x))

    def total(self, x):
        return float(x.sum()), os.getpid()

    def nap(self, x):
        print("nap", x, flush=True)
        time.sleep(0.05)
        return x
"""


@contextlib.contextmanager
def environment(**more: str) -> Iterator[None]:
    """Of the nodes that are started meanwhile: their workers may run under ``nsys``."""
    before = dict(os.environ)
    os.environ |= {"PATH": f"{STAND_INS}{os.pathsep}{nsight.python_on_path()}", **more}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Ray with two nodes, where ``nsys`` may outlive a worker; nobody has joined it."""
    with environment(**{raynames.CLEANUP: "0"}):
        head = {"num_cpus": 4, "include_dashboard": False, "resources": {"near": 2}}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=4, node_ip_address=FAR, resources={"far": 2})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def frail(cluster: Cluster) -> Node:
    """One more node, as Ray starts it by default; with it, actors are told to go there."""
    with environment():
        return cluster.add_node(num_cpus=2, node_ip_address=FRAIL, resources={"far": 1, "frail": 1})


@pytest.fixture
def folder(tmp_path: pathlib.Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A spec's folder; its ``types`` would hide Python's if the folder came first on ``sys.path``.

    Ray lets actors import from the driver's working folder, which all nodes of one machine have.
    """
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "specs"
    (spec / "code").mkdir(parents=True)
    (spec / "across.yaml").write_text(SPEC.replace("ADDRESS", cluster.address))
    (spec / "code" / "traveller.py").write_text(CODE)
    (spec / "code" / "types.py").write_text("SECRET = 41\n")
    (spec / "types.py").write_text("raise ImportError('the spec hides Python')\n")
    for left_out in (".git", "runs", ".venv"):
        (spec / left_out).mkdir()
        (spec / left_out / "large").write_bytes(bytes(10))
    return spec


def run(folder: pathlib.Path, **overrides: Any) -> Result:
    return cgspec.run(folder / "across.yaml", out=folder.parent / "runs", **overrides)


def left_over() -> list[str]:
    """What runs have left among Ray's logs: it keeps its own."""
    return [str(path) for path in pathlib.Path("/tmp/ray/session_latest/logs").glob("cgspec-*")]


def test_the_users_code_is_shipped_and_logs_come_home(folder: pathlib.Path) -> None:
    result = run(folder)
    assert result.status == "passed" and result.record.notes == []
    assert {actor.name: actor.node for actor in result.record.actors}["far"] == FAR
    x, secret, file, working, package, pid = result.last  # type: ignore[misc]
    assert (x, secret) == (2, 41) and pid != os.getpid()
    copy = pathlib.Path(file).parent.parent
    assert copy.name == "specs" and copy != folder and str(copy) == working
    assert {path.name for path in copy.iterdir()} == {"across.yaml", "code", "types.py"}
    assert "_ray_pkg_" in package and (pathlib.Path(package).parent / "worker.py").exists()
    logs = result.run_dir / "logs"
    assert (logs / "far.log").read_text(encoding="utf-8") == "".join(f"land {i} é\n" for i in (0, 0, 1, 2))
    assert (logs / "near.log").read_text() == "hop 0\nhop 0\nhop 1\nhop 2\n"
    assert left_over() == [] and not ray.is_initialized()


@pytest.mark.slow
def test_tensors_of_the_direct_engine_go_from_node_to_node(folder: pathlib.Path) -> None:
    calls = {"tasks.hop.call": "near.tensor", "tasks.land.call": "far.total"}
    result = run(folder, **calls, **{"engine.kind": "direct", "tasks.hop.transport": "accelerator"})
    assert result.status == "passed" and result.last[0] == 2.0 * 64 * 64  # type: ignore[index]
    assert {actor.node for actor in result.record.actors} > {FAR}
    ways = [edge["transport"] for edge in json.loads((result.run_dir / "plan.json").read_text())["edges"]]
    assert ways == ["host", "gloo"]


@pytest.mark.slow
@pytest.mark.parametrize("calls", ["far far", "near far", "far near"])
def test_more_iterations_are_under_way_than_a_channel_between_nodes_has_room_for(
    folder: pathlib.Path, calls: str
) -> None:
    """It has one buffer, whatever is in flight: the driver writes when it can, and reads meanwhile."""
    first, last = calls.split()
    result = run(
        folder,
        **{"tasks.hop.call": f"{first}.hop", "tasks.land.call": f"{last}.hop"},
        **{"run.inflight": 8, "run.iterations": 200, "engine.timeouts.stall": "10s"},
    )
    assert (result.status, result.first, result.last) == ("passed", 0, 199)


@pytest.mark.slow
def test_the_users_own_runtime_env_is_kept(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A ``working_dir`` with the same content, too, which is what a Ray job has: Ray packs it otherwise."""
    shutil.rmtree(folder / "runs")
    (folder / "types.py").unlink()  # from a working_dir it does hide Python's
    (tmp_path / "lent").mkdir()
    (tmp_path / "lent" / "__init__.py").write_text("VALUE = 43\n")
    (folder / "weights.bin").write_bytes(bytes(100))
    (folder / "notes.txt").write_text("read me")
    env = {"py_modules": [str(tmp_path / "lent")], "working_dir": str(folder), "excludes": ["*.bin"]}
    own = {"actors.far.env": {"MINE": "yes"}, "tasks.land.call": "far.lend"}
    result = run(folder, **own, **{"cluster.runtime_env": env})
    assert result.status == "passed", result.error
    value, mine, excluded, shipped, working = result.last  # type: ignore[misc]
    assert (value, mine, excluded, shipped) == (43, "yes", False, True) and "working_dir_files" in working


@pytest.mark.slow
def test_each_run_of_a_sweep_has_its_own_logs_without_secrets(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The actors live on from one run to the next."""
    spec = folder / "across.yaml"
    text = spec.read_text().replace("x: {$count: {from: 0}}", "x: {$env: TOKEN}")
    spec.write_text(text + "vars: {n: 1}\nsweep: {matrix: {vars.n: [1, 2]}}\n")
    command = [sys.executable, "-m", "cgspec", "run", spec, "--out", tmp_path / "runs"]
    done = subprocess.run(command, env={**os.environ, "TOKEN": "hunter2"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    logs = [path.read_text() for path in {each.resolve() for each in tmp_path.glob("runs/*/*/points/*/*/logs/far.log")}]
    assert len(logs) == 2 and all("hunter2" not in log and log.count("land ") == 4 for log in logs)
    assert left_over() == []


@pytest.mark.slow
def test_a_module_that_is_not_on_the_node_is_named_with_what_to_do(
    folder: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "only_here.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "here")
    with (folder / "code" / "traveller.py").open("a") as file:
        file.write("\nimport only_here\n")
    result = run(folder)
    failure = result.record.failure
    assert result.exit_code == 4 and failure is not None
    assert (
        failure.kind == "import" and "No module named 'only_here'; only the spec's folder is shipped" in failure.message
    )
    assert failure.node and f'File "{folder}/code/traveller.py"' in failure.traceback


@pytest.mark.slow
def test_a_folder_that_is_too_large_is_refused_with_its_largest_files(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray._private.runtime_env.packaging.GCS_STORAGE_MAX_SIZE", 2**20)
    (folder / "weights.bin").write_bytes(os.urandom(2**21))
    result = run(folder)
    assert isinstance(result.error, NotAble) and result.exit_code == 3
    message = result.error.failure.message
    assert f"the spec's folder {folder} cannot be shipped" in message
    assert "exceeds the maximum size of 1.00MiB" in message
    assert "its largest files are weights.bin (2 MiB)" in message and "cluster.runtime_env.excludes" in message
    assert result.error.failure.path == ("cluster",) and not ray.is_initialized()


@pytest.mark.slow
def test_a_ray_of_another_version_is_said(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = ray.__version__
    monkeypatch.setattr(ray, "__version__", "2.1.0")
    result = run(folder)
    assert isinstance(result.error, NotAble) and not ray.is_initialized()
    python = ".".join(str(part) for part in sys.version_info[:3])
    assert f"runs Ray {here} and Python {python}, and here is Ray 2.1.0" in result.error.failure.message


@pytest.mark.slow
def test_what_an_actor_on_another_node_raises_names_the_node_and_the_users_own_file(folder: pathlib.Path) -> None:
    result = run(folder, **{"tasks.land.call": "far.fail"})
    failure = result.record.failure
    assert result.exit_code == 4 and failure is not None
    assert (failure.kind, failure.actor, failure.node) == ("raised", "far", FAR)
    assert (failure.task, failure.iteration) == ("land", 2)
    assert f'File "{folder}/code/traveller.py", line' in failure.traceback


@pytest.mark.slow
def test_nsights_reports_come_home_from_every_node(folder: pathlib.Path) -> None:
    result = run(folder, profile=[{"kind": "nsight", "iterations": 2, "warmup": 0}])
    assert result.status == "passed" and result.record.notes == []
    assert sorted(result.record.phases[-1].files) == ["nsight/far.nsys-rep", "nsight/near.nsys-rep"]
    pid = result.last[-1]  # type: ignore[index]
    assert f"pid {pid}\n" in (result.run_dir / "nsight" / "far.nsys-rep").read_text()


@pytest.mark.slow
def test_traces_come_home_on_the_drivers_clock(folder: pathlib.Path) -> None:
    """Both nodes are one machine here, with one clock: what is measured has to be 0, to within the error it states."""
    profile = [{"kind": "torch", "iterations": 2, "warmup": 1}]
    result = run(folder, profile=profile, **{"tasks.land.call": "far.nap"})
    assert result.status == "passed"
    phases = {label_of(phase): phase for phase in result.record.phases}
    assert {"trace/near.pt.trace.json.gz", "trace/far.pt.trace.json.gz"} < set(phases["profile-torch"].files)
    for phase in phases.values():
        ((node, clock),) = phase.clocks.items()
        assert node == FAR and phase.latency_us is not None and abs(clock.offset_ns) <= clock.error_ns
        assert 2 * clock.error_ns <= 1e3 * phase.latency_us.min - 50e6 + 2  # a nap was within every iteration
    for segment in read_segments(result.run_dir):
        driver, land = segment.driver.by_iteration(), segment.tasks["land"].by_iteration()
        assert all(driver[i][0] <= start and end <= driver[i][1] for i, (start, end) in land.items())
    error = show_duration(phases["profile-torch"].clocks[FAR].error_ns / 1e9)
    assert result.record.notes == [f"the clock of {FAR} was aligned with the driver's in profile-torch, to ±{error}"]


@pytest.mark.slow
def test_a_report_that_cannot_come_any_more_is_named_and_not_waited_for(folder: pathlib.Path, frail: Node) -> None:
    began = time.monotonic()
    profile = [{"kind": "nsight", "iterations": 1, "warmup": 0, "actors": ["far"]}]
    result = run(folder, profile=profile, **{"actors.far.resources": {"frail": 1}})
    assert result.status == "passed" and time.monotonic() - began < REPORTS
    (note,) = result.record.notes
    assert note.startswith(f"there is no Nsight report of actor far on node {FRAIL}: its nsys ended without one")


@pytest.mark.slow
def test_a_node_that_dies_is_named_and_what_was_measured_is_kept(
    folder: pathlib.Path, cluster: Cluster, frail: Node
) -> None:
    def kill() -> None:
        wait_for_iterations(folder.parent / "runs" / "across" / "latest" / "logs" / "far.log")
        cluster.remove_node(frail, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    naps = {"actors.far.resources": {"frail": 1}, "tasks.land.call": "far.nap", "run.iterations": 100_000}
    result = run(folder, **naps)
    killer.join()
    failure = result.record.failure
    assert result.exit_code == 5 and failure is not None
    assert (failure.kind, failure.actor, failure.node) == ("actor-died", "far", FRAIL)
    assert f"on {FRAIL}) died: its node died" in failure.message
    assert [phase.name for phase in result.record.phases] == ["warmup", "measure"]
    assert len((result.run_dir / "samples.csv").read_text().splitlines()) > 10
    assert "nap 3\n" in (result.run_dir / "logs" / "far.log").read_text()
    assert result.record.notes == [f"the log of actor far on node {FRAIL} is here only in part"]
    assert not ray.is_initialized()


def wait_for_iterations(log: pathlib.Path) -> None:
    """Until the log, which is on its way while the run goes on, tells of some of them."""
    deadline = time.monotonic() + 90
    while not (log.exists() and "nap 20\n" in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.2)
