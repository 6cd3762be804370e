"""Runs of ``cgspec run`` on real Ray to which something happens: how each ended, after how long, and what it left.

Each run has a folder for temporary files of its own, and a mark in the environment of all of its processes, so that
what it leaves can be told from what others do on the machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgspec.errors import CgspecError
from cgspec.record import Record, load
from cgspec.whereabouts import ask

MARK = "CGSPEC_TEST_RUN"
SHM = Path("/dev/shm")
GONE = 10.0
"""Seconds in which the processes of a run that has ended are gone."""
ACTORS = '''
import atexit, os, pathlib, signal, threading, time


def fault():
    """Says when it happened."""
    pathlib.Path(__file__).with_name("fault").touch(exist_ok=True)


class Troubled:
    def __init__(self, seconds=0, last_words=0, checkpoint=None):
        if checkpoint:
            fault()
            open(checkpoint)
        if seconds:
            fault()
            time.sleep(seconds)
        if last_words:
            atexit.register(self.linger, last_words)

    def linger(self, seconds):
        fault()
        time.sleep(seconds)

    def echo(self, x):
        return x

    def nap(self, x):
        time.sleep(0.02)
        return x

    def slow(self, x):
        time.sleep(3)
        return x

    def fails(self, x):
        if x == 3:
            fault()
            raise ValueError(f"no {x} please")
        return x

    def dies(self, x):
        if x == 3:
            fault()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    def arity(self, x):
        return x, x

    def lock(self, x):
        if x == 3:
            fault()
            return threading.Lock()
        return x

    def hangs(self, x):
        if x == 3:
            fault()
            time.sleep(600)
        return x

    def big(self, x):
        return bytes(300_000_000)

    def size(self, x):
        return len(x)

    def waits(self, x, mine, other):
        """Goes on when the other actor, which waits for this one, has written its file."""
        here = pathlib.Path(__file__).parent
        if x == 3:
            fault()
            while not (here / other).exists():
                time.sleep(0.01)
            (here / mine).touch()
        return x
'''
SPEC = """
cgspec: 1
name: faulty
actors: {a: {class: "actors.py:Troubled"}, b: {class: "actors.py:Troubled"}}
inputs: {x: {$count: {from: 0}}}
tasks:
  first: {call: a.echo, in: {x: inputs.x}}
  second: {call: b.echo, in: {x: first}}
outputs: second
run: {iterations: 20, warmup: 2}
"""


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        code: the process's exit code.
        seconds: from the fault to the end of the process.
        out, err: all that it printed.
        record: its record, where there is one.
        left: processes, shared memory and temporary files that were still there some seconds later.
    """

    code: int
    seconds: float
    out: str
    err: str
    record: Record | None
    left: tuple[str, ...]

    @property
    def cause(self) -> str:
        """The sentence that tells why."""
        failure = self.record.failure if self.record is not None else None
        return failure.message if failure is not None else ""

    @property
    def first_line(self) -> str:
        """The summary's first line without the spec's name, and the sentence."""
        how = self.out.partition("\n")[0].partition(": ")[2]
        return f"{how}: {self.cause}" if self.cause else how

    def check(self, code: int, status: str, says: str = "", *, measured: bool = False, leaves: str = "$") -> None:
        """That it ended so, in the user's words, with what was measured, and left what matches ``leaves`` alone."""
        record = self.record
        assert record is not None, (self.code, self.out, self.err)
        assert (self.code, record.state) == (code, status), (self.out, self.err)
        assert not [left for left in self.left if not re.match(leaves, left)], self.left
        assert re.search(says, self.cause) and self.cause in self.out, self.out
        assert "Traceback" not in self.err, self.err
        if self.cause and code != 130:
            assert record.failure is not None and (record.failure.file or record.failure.actor or code == 3)
        done = [phase for phase in record.phases if phase.iterations]
        assert not measured or [phase.name for phase in done][:2] == ["warmup", "measure"]
        rows = (Path(record.run_dir) / "samples.csv").read_text().count("\n") - 1
        told = sum(phase.iterations for phase in record.phases)
        assert rows == told or (status == "killed" and rows > told) or "samples.csv" in self.cause


class Run:
    """A run in the background.

    Args:
        changes: further words of the command line.
        under: what the command is started under, e.g. ``unshare``.
        python: what Python is started with, if not ``-m cgspec``.
        env: further environment.
        out: the folder of all runs, if not ``runs`` in its own folder.
    """

    def __init__(
        self,
        folder: Path,
        *changes: str,
        under: Sequence[str] = (),
        python: Sequence[str] = ("-m", "cgspec"),
        env: Mapping[str, str] | None = None,
        out: Path | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "actors.py").write_text(ACTORS)
        (folder / "spec.yaml").write_text(SPEC)
        self.folder, self.began, self.mark = folder, time.time(), f"{MARK}={uuid.uuid4().hex}"
        self.temp = Path(tempfile.mkdtemp(prefix="f", dir="/tmp"))  # short: sockets are in it
        out = out or folder / "runs"
        self.latest = out / "faulty" / "latest"
        self.out, self.err = folder / "stdout", folder / "stderr"
        own = dict([self.mark.split("=")]) | {"TMPDIR": str(self.temp), "RAY_TMPDIR": str(self.temp)}
        command = [*under, sys.executable, *python, "run", "spec.yaml", "--out", str(out), *changes]
        with self.out.open("w") as stdout, self.err.open("w") as stderr:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **own, **(env or {})},
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.pids: set[int] = set()
        self.shared = {path.name for path in SHM.iterdir()}
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Learns the pids of all its processes: what they leave in shared memory is named after them."""
        while self.process.poll() is None:
            self.pids |= self.alive().keys()
            time.sleep(0.5)

    def until(self, come: Callable[[], Any], within: float = 120) -> None:
        """Waits until it has come so far."""
        deadline = time.monotonic() + within
        while not come():
            assert self.process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.01)

    def said(self) -> str:
        return self.out.read_text() + self.err.read_text()

    def in_phase(self, name: str) -> bool:
        return re.search(rf"^{name}\b", self.err.read_text(), re.MULTILINE) is not None

    def has_done(self, step: str) -> bool:
        """Whether a step of the start is done."""
        try:
            told = ask(load(self.latest))
        except CgspecError:
            return False
        return told["phase"] != "startup" or step in told["startup"]

    def is_struck(self) -> bool:
        """Whether the user's code says that the fault has happened."""
        return (self.folder / "fault").exists()

    def interrupt(self) -> None:
        """Ctrl-C: every process of the terminal's group gets it."""
        (self.folder / "fault").touch()
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        (self.folder / "fault").touch()
        self.process.kill()

    def end(self, within: float = 120) -> Ended:
        """Waits for the end; a run that has not ended within so many seconds is killed, and that is an error."""
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"no end within {within} s: {self.said()}") from None
        ended, mark = time.time(), self.folder / "fault"
        seconds = ended - (mark.stat().st_mtime if mark.exists() else self.began)
        left = self.left()
        for pid in self.alive():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.temp)
        told = re.search("^run folder: (.*)", self.out.read_text(), re.MULTILINE)
        place = Path(told.group(1)) if told is not None else self.latest
        record = load(place) if place.exists() else None
        return Ended(code, seconds, self.out.read_text(), self.err.read_text(), record, left)

    def left(self) -> tuple[str, ...]:
        """What is left some seconds later."""
        deadline = time.monotonic() + GONE
        while (alive := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.1)
        files = [str(path.relative_to(self.temp)) for path in self.temp.rglob("*") if not path.is_dir()]
        shared = {path.name for path in SHM.iterdir()} - self.shared
        shared = {name for name in shared if self.pids & set(map(int, re.findall(r"\d+", name)))}
        return (*alive.values(), *files, *shared)

    def alive(self) -> dict[int, str]:
        """Its processes: pid to command."""
        found: dict[int, str] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (folder / "environ").read_bytes():
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().split(b"\0")[0].decode().strip()
        return found
