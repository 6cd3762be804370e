"""``cgspec where``: another process learns where a live run is, and that one is over; nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import actor, fan, graph, task
from test_cli import cgspec

from cgspec.engines import Position
from cgspec.errors import NotAble
from cgspec.graph import Collective, Group, InputRef, TaskRef
from cgspec.record import Record, load
from cgspec.views import where
from cgspec.whereabouts import Beacon, actors_told, ask

ACTORS = """
import time


class Sleeper:
    def sleep(self, x):
        deeper(x)
        return x

    def echo(self, x):
        return x


def deeper(x):
    time.sleep(120 if x == 2 else 0)
"""
SPEC = """
cgspec: 1
name: hangs
actors: {a: {class: "actors.py:Sleeper"}, b: {class: "actors.py:Sleeper"}}
inputs: {x: {$count: {from: 0}}}
tasks:
  first: {call: a.sleep, in: {x: inputs.x}}
  second: {call: b.echo, in: {x: first}}
outputs: second
run: {iterations: 5, warmup: 1}
"""


class Hanging:
    """A run whose task ``first`` hangs in iteration 2 of the measure phase."""

    def __init__(self, folder: Path, engine: str) -> None:
        (folder / "actors.py").write_text(ACTORS)
        (folder / "spec.yaml").write_text(SPEC)
        self.folder, self.sockets = folder, Path(tempfile.mkdtemp(prefix="w-", dir="/tmp"))
        self.latest = folder / "runs" / "hangs" / "latest"
        env = os.environ | {"TMPDIR": str(self.sockets)} if engine == "local" else None
        command = [sys.executable, "-m", "cgspec", "run", "spec.yaml", "--engine", engine]
        self.process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def when(self, good: Callable[[dict[str, Any]], bool], within: float) -> dict[str, Any]:
        """What the run tells when it is where it should be."""
        until = time.monotonic() + within
        while time.monotonic() < until and self.process.poll() is None:
            if (self.latest / "run.json").exists() and load(self.latest).where:
                told = ask(load(self.latest))
                if good(told):
                    return told
            time.sleep(0.3)
        output = self.process.communicate(timeout=30)[0] if self.process.poll() is not None else b""
        raise AssertionError(f"the run never came there: {output.decode()}")

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=90)


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Callable[[str], Hanging]]:
    made: list[Hanging] = []

    def start(engine: str) -> Hanging:
        made.append(Hanging(tmp_path, engine))
        return made[-1]

    yield start
    for run in made:
        if run.process.poll() is None:
            run.process.kill()
            run.process.communicate()
        shutil.rmtree(run.sockets)


def sits(told: dict[str, Any]) -> bool:
    return told["phase"] == "measure" and any(a["task"] == "first" and a["seconds"] > 0.5 for a in told["actors"])


def test_a_hanging_task_is_shown_with_its_stack_and_the_run_leaves_nothing(hanging: Any) -> None:
    run = hanging("local")
    told = run.when(sits, 60)
    assert (told["done"], told["asked"]) == (2, 5)
    sleeper, waiting = told["actors"]
    assert (sleeper["actor"], sleeper["task"], sleeper["iteration"]) == ("a", "first", 2)
    assert "actors.py:7 in sleep: deeper(x)" in sleeper["stack"][0]
    assert "in deeper: time.sleep(120 if x == 2 else 0)" in sleeper["stack"][1]
    assert (waiting["actor"], waiting["task"], waiting["upcoming"]) == ("b", None, "second")
    assert told["chain"][1].endswith("waits to run second, iteration 2, for first on a")
    socket = Path(load(run.latest).where or "")
    assert socket.stat().st_mode & 0o777 == 0o600 and socket.parent.stat().st_mode & 0o777 == 0o700

    shown = cgspec("where", run.latest)
    assert shown.returncode == 0
    assert shown.stdout.startswith("hangs: measure, 2 of 5 iterations done, the last one ")
    assert "is in first, iteration 2, for " in shown.stdout and "in deeper: time.sleep" in shown.stdout

    run.end(signal.SIGINT)
    assert socket.parent.parent == run.sockets
    assert list(run.sockets.iterdir()) == []
    over = cgspec("where", run.latest, "--json")
    assert (over.returncode, json.loads(over.stdout)["status"]) == (0, "interrupted")
    assert "hangs is over: interrupted" in cgspec("where", run.latest).stdout


def test_a_killed_run_says_so_and_the_next_one_cleans_up(hanging: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hanging("local")
    run.when(sits, 60)
    run.end(signal.SIGKILL)
    shown = cgspec("where", run.latest)
    assert (shown.returncode, shown.stdout) == (0, "hangs is over: killed, after 1 of 1 iterations of warmup\n")
    assert cgspec("where", run.folder).returncode == 2
    (left,) = run.sockets.glob("cgspec-where-*")
    monkeypatch.setattr("tempfile.tempdir", str(run.sockets))
    with Beacon(dict) as one:
        assert left.exists() and one.path is not None, "it is too young to be sure"
        os.utime(left / "where.sock", (0, 0))
        os.utime(one.path, (0, 0))
        with Beacon(dict):
            assert not left.exists() and one.path.exists()


def test_on_ray_the_wait_for_chain_goes_across_processes(hanging: Any) -> None:
    run = hanging("compiled")
    told = run.when(sits, 150)
    sleeper, waiting = told["actors"]
    assert sleeper["pid"] != waiting["pid"] and run.process.pid not in (sleeper["pid"], waiting["pid"])
    assert "in deeper: time.sleep" in sleeper["stack"][-1]
    assert told["chain"][1].endswith("waits to run second, iteration 2, for first on a")
    run.end(signal.SIGINT)
    assert load(run.latest).status == "interrupted"


def test_iterations_are_those_of_the_phase_and_unreachable_actors_are_said() -> None:
    seen = (Position(0, task=0, iteration=0, seconds=2.0), Position(1, pid=5, reachable=False), Position(2, upcoming=2))
    told = actors_told(fan(), seen, first=7)
    assert told["actors"][0]["iteration"] == 7
    assert "is in double, iteration 7" in told["chain"][0]
    assert told["chain"][1].endswith("does not answer")
    json.dumps(told)


def test_a_member_of_a_collective_waits_for_what_its_peers_wait_for() -> None:
    tasks = [
        task("fwd.0", 0, "echo", {"x": InputRef(0)}),
        task("fwd.1", 1, "echo", {"x": InputRef(0)}),
        task("sum.0", 0, "", {0: TaskRef(0)}, collective=Collective("allreduce", "sum", 0, 0)),  # type: ignore[dict-item]
        task("sum.1", 1, "", {0: TaskRef(1)}, collective=Collective("allreduce", "sum", 0, 1)),  # type: ignore[dict-item]
    ]
    actors = [actor("a.0", (0, 2)), actor("a.1", (1, 3))]
    made = graph({"x": 1}, actors, tasks, [("s", TaskRef(2))], groups=(Group("sum", (2, 3)),))
    told = actors_told(made, (Position(0, upcoming=2), Position(1, task=1)))
    assert told["chain"][0].endswith("waits to run sum.0, iteration 0, for fwd.1 on a.1")


def test_a_beacon_that_fails_says_why_and_goes_on(tmp_path: Path) -> None:
    answers = iter([RuntimeError("gone"), {"phase": "measure"}])

    def tell() -> dict[str, Any]:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    with Beacon(tell) as beacon:
        live = record(where=str(beacon.path))
        with pytest.raises(NotAble, match="could not ask its actors: RuntimeError: gone"):
            ask(live)
        assert ask(live) == {"phase": "measure"}
    with pytest.raises(NotAble, match="only just begun, or is ending"):
        ask(live)


def test_without_a_folder_for_sockets_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **more: Any) -> str:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with Beacon(dict) as beacon:
        assert beacon.path is None


def record(**more: Any) -> Record:
    return Record.model_validate({"id": "", "name": "x", "status": "running", "started": "", "pid": os.getpid()} | more)


def test_a_run_that_starts_says_which_steps_are_done() -> None:
    told = {"phase": "startup", "startup": {"ray": 2.5, "place": 0.1}, "seconds": 7.0, "actors": [], "chain": []}
    assert where.text(record(), told) == f"x: starting for 7 s; done: ray 2.5 s, place 100 ms (pid {os.getpid()})"


def test_a_run_without_an_iteration_yet_says_for_how_long() -> None:
    told = {"phase": "measure", "done": 0, "asked": 5000, "seconds": 3.0, "actors": [], "chain": []}
    assert where.text(record(), told).startswith("x: measure, 0 of 5,000 iterations done, since 3 s")


def test_a_run_that_ended_says_how_and_why() -> None:
    phases = [{"name": "measure", "iterations": 3, "asked": 5}]
    failure = {"kind": "stall", "message": "no task ended in 5 s", "waiting": ["a is in t"]}
    over = record(status="timeout", ended="2026-01-01T00:00:00Z", phases=phases, failure=failure)
    assert where.text(over, None).splitlines() == [
        "x is over: a deadline passed at 2026-01-01T00:00:00Z, after 3 of 5 iterations of measure",
        "no task ended in 5 s",
        "a is in t",
    ]
    assert where.as_data(over, None) == {"name": "x", "status": "timeout", "pid": os.getpid()}


def test_a_run_elsewhere_cannot_be_asked_from_here() -> None:
    with pytest.raises(NotAble, match="it runs on another-machine; ask there"):
        ask(record(machine={"host": "another-machine"}))
    with pytest.raises(NotAble, match="x is not running: it is passed"):
        ask(record(status="passed"))
