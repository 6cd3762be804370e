"""The local engine: what user code prints is on the terminal and in its actor's log, and a debugger works as ever."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from engines_running import one, options
from finished import finish
from graphs import Drawing

from cgspec.engines import ENGINES, Phase
from cgspec.engines.prints import Prints
from cgspec.raynames import BREAKPOINT

TALKER = """
import sys


class Talker:
    def __init__(self, name):
        self.name = name
        print(name, "is born")

    def say(self, x):
        print(self.name, "says", x)
        print(self.name, "warns", file=sys.stderr)
        return x

    def hello(self):
        sys.stdout.writelines(["hello ", "there\\n"])

    def stop(self, x):
        print("before the stop")
        breakpoint()
        return x


def batch(n):
    print("made by nobody")
    return n
"""

SPEC = """
cgspec: 1
engine: local
actors:
  a: {class: talker.py:Talker, args: [one]}
  b: {class: talker.py:Talker, args: [two]}
inputs:
  x: {$call: "talker.py:batch", args: {n: {$expr: i}}}
setup: [{call: b.hello, at: run}]
tasks:
  p: {call: a.say, in: {x: inputs.x}}
  q: {call: b.say, in: {x: p}}
outputs: q
run: {iterations: 2, warmup: 0}
"""


def test_the_terminal_shows_it_and_the_log_of_whoever_prints_it_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talker.py").write_text(TALKER)
    before = (sys.stdout, sys.stderr)
    logs = finish(tmp_path, SPEC).run_dir / "logs"
    assert (sys.stdout, sys.stderr) == before
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        *("one is born", "two is born", "hello there"),
        *("made by nobody", "one says 0", "two says 0", "made by nobody", "one says 1", "two says 1"),
    ]
    assert shown.err.splitlines() == ["one warns", "two warns"] * 2
    assert (logs / "a.log").read_text() == "one is born\n" + "".join(f"one says {i}\none warns\n" for i in (0, 1))
    told = "".join(f"two says {i}\ntwo warns\n" for i in (0, 1))
    assert (logs / "b.log").read_text() == "two is born\nhello there\n" + told
    assert sorted(path.name for path in logs.iterdir()) == ["a.log", "b.log"]


def test_another_run_of_the_same_objects_has_its_own_logs_and_without_a_folder_there_are_none(tmp_path: Path) -> None:
    drawing = Drawing().actor("a", "plain.py:Counter").input("x").task("t", "a.say", {"x": "inputs.x"})
    engine = ENGINES["local"](drawing.graph("t"), options("local", log_dir=tmp_path / "1"))
    engine.place()
    for number in (1, 2):
        engine.begin(Phase("measure", 1))
        one(engine, number)
        engine.end()
        assert number == 2 or engine.renew(drawing.graph("t"), options("local", log_dir=tmp_path / "2"))
    engine.teardown()
    assert [(tmp_path / name / "a.log").read_text() for name in ("1", "2")] == [
        f"said {number}\ncomplained {number}\n" for number in (1, 2)
    ]
    before = sys.stdout
    other = ENGINES["local"](drawing.graph("t"), options("local"))
    other.place()
    assert sys.stdout is before
    other.teardown()


def test_a_log_that_cannot_be_written_is_said_once_and_fails_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    prints = Prints()
    prints.folder, prints.actor = tmp_path / "file" / "logs", "a"
    prints.start()
    try:
        print("still on the terminal")
    finally:
        prints.stop()
    assert prints.trouble == f"what is printed is not in the logs any more: {prints.folder}/a.log: Not a directory"


def test_a_stream_that_somebody_else_has_put_there_since_stays() -> None:
    prints, before = Prints(), sys.stdout
    prints.start()
    try:
        sys.stdout = other = open(os.devnull, "w")  # noqa: SIM115
        prints.stop()
        assert sys.stdout is other
    finally:
        sys.stdout = before
        other.close()


def test_a_breakpoint_in_a_task_talks_to_the_terminal(tmp_path: Path) -> None:
    """On a real terminal: what is asked is answered, the prompt waits, and the run goes on to its end."""
    (tmp_path / "talker.py").write_text(TALKER)
    (tmp_path / "spec.yaml").write_text(SPEC.replace("b.say", "b.stop").replace("iterations: 2", "iterations: 1"))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cgspec", "run", "spec.yaml"]
    own = {name: text for name, text in os.environ.items() if name != BREAKPOINT}  # other tests' Ray has set it
    child = subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, env=own, start_new_session=True
    )
    os.close(theirs)
    try:
        assert "before the stop" in _until(ours, "(Pdb) ")
        os.write(ours, b"p x + 41\n")
        assert "\r\n41\r\n" in _until(ours, "(Pdb) ")
        os.write(ours, b"c\n")
        assert "passed" in _until(ours, "run folder")
        assert child.wait(60) == 0
    finally:
        child.kill()
        os.close(ours)
    log = next(tmp_path.glob("runs/spec/latest/logs/b.log"))
    assert log.read_text().startswith("two is born\nhello there\nbefore the stop\n")


def _until(terminal: int, said: str) -> str:
    """What comes, up to what is waited for."""
    found, deadline = "", time.monotonic() + 60
    while said not in found and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                found += os.read(terminal, 4096).decode(errors="replace")
            except OSError:  # the other side has closed it
                break
    assert said in found, found
    return found
