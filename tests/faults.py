"""What goes wrong in runs, one row per fault; ``python tests/faults.py`` prints the README's table, in some minutes.

A row says how the fault is brought about, and how the run has to end: exit code, status, and what the user is told.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from faulty import Ended, Run

SMALL_DISK = """
mkdir runs && mount -t tmpfs -o size=400k tmpfs runs
"$@"
code=$?
cp -a runs kept && umount runs && rmdir runs && mv kept runs
exit $code
"""
"""The run folder is on a disk that is soon full; what is on it is kept."""
SMALL_STORE = "import ray; ray.init(num_cpus=4, object_store_memory=80_000_000, log_to_driver=False, logging_level=50)"
NAPS = "tasks.first.call=a.nap"


@dataclass(frozen=True)
class Fault:
    """A row.

    Attributes:
        name: for people.
        changes: words of the command line.
        code, status: how the run ends.
        says: what the sentence that tells the cause has to match.
        act: what is done to the run while it goes on.
        measured: whether iterations were measured before.
        leaves: what may be left, as an expression: a Ray that cgspec did not start is not its own to clean up.
        soak: whether another test does the same within its own process, in less time.
        under, python, env: as in ``Run``.
    """

    name: str
    changes: tuple[str, ...]
    code: int
    status: str
    says: str
    act: Callable[[Run], None] = lambda run: None
    measured: bool = False
    leaves: str = "$"
    soak: bool = False
    under: tuple[str, ...] = ()
    python: tuple[str, ...] = ("-m", "cgspec")
    env: tuple[tuple[str, str], ...] = ()

    def run(self, folder: Path) -> Ended:
        """Runs it, and sees that it ends as it should."""
        run = Run(folder, *self.changes, under=self.under, python=self.python, env=dict(self.env))
        try:
            self.act(run)
        except AssertionError:
            run.kill()
            raise
        ended = run.end()
        ended.check(self.code, self.status, self.says, measured=self.measured, leaves=self.leaves)
        return ended


def when(come: Callable[[Run], object], *acts: Callable[[Run], object], after: float = 0.0) -> Callable[[Run], None]:
    """Acts, with a pause before each, once the run has come so far."""

    def act(run: Run) -> None:
        run.until(lambda: come(run))
        for each in acts:
            time.sleep(after)
            each(run)

    return act


def in_phase(name: str) -> Callable[[Run], bool]:
    return lambda run: run.in_phase(name)


def done(step: str) -> Callable[[Run], bool]:
    return lambda run: run.has_done(step)


def kill_actor(run: Run) -> None:
    pid = next(pid for pid, command in run.alive().items() if command.startswith("ray::Host"))
    os.kill(pid, signal.SIGKILL)


def ctrl_c(where: str, act: Callable[[Run], None], *changes: str, measured: bool = False, leaves: str = "$") -> Fault:
    return Fault(f"Ctrl-C {where}", changes, 130, "interrupted", "Ctrl-C arrived", act, measured, leaves)


CTRL_C, STRUCK = Run.interrupt, Run.is_struck
FAULTS = (
    Fault(
        "a task raises",
        ("tasks.first.call=a.fails",),
        4,
        "task-raised",
        r"task first \(a\.fails\) raised in iteration 3: ValueError: no 3",
        measured=True,
        soak=True,
    ),
    Fault(
        "a wrong number of returns",
        ("tasks.first.returns=[y, z, w]", "tasks.first.call=a.arity", "tasks.second.in.x=first.y"),
        4,
        "task-raised",
        "returned 2 values, and its `returns` has 3",
        soak=True,
    ),
    Fault(
        "a result that cannot be sent",
        ("tasks.first.call=a.lock",),
        4,
        "task-raised",
        "the result of task first .* cannot be sent",
        measured=True,
        soak=True,
    ),
    Fault(
        "a constructor raises",
        ("actors.a.args={checkpoint: nowhere.pt}",),
        4,
        "task-raised",
        "constructor raised: FileNotFoundError",
        soak=True,
    ),
    Fault(
        "a constructor hangs",
        ("actors.a.args={seconds: 600}", "engine.timeouts.start=3s"),
        5,
        "timeout",
        "actor a: its constructor did not return within 3 s; it is at .*actors.py",
        soak=True,
    ),
    Fault(
        "an argument that cannot be made",
        ("actors.a.args={checkpoint: {$env: NO_SUCH}}",),
        1,
        "invalid",
        "its argument checkpoint cannot be made: the environment has no NO_SUCH",
        soak=True,
    ),
    Fault(
        "more CPUs than there are",
        ("actors.a.num_cpus=999", "cluster.num_cpus=2"),
        3,
        "not-able",
        "there is no room for the actors: asked for are 1000 CPU, this Ray has 2 CPU",
        soak=True,
    ),
    Fault(
        "no place in time",
        ("cluster.placement=STRICT_SPREAD", "engine.timeouts.place=3s"),
        3,
        "not-able",
        r"no room for the actors: .* \(waited 3 s",
        soak=True,
    ),
    Fault(
        "an actor is killed in a task",
        ("tasks.first.call=a.dies",),
        5,
        "actor-died",
        r"actor a \(pid .* died: its process ended",
        measured=True,
        soak=True,
    ),
    Fault(
        "an actor is killed while it is taken down",
        ("actors.a.args={last_words: 60}",),
        0,
        "passed",
        "",
        when(STRUCK, kill_actor),
        True,
        soak=True,
    ),
    Fault(
        "the machine is out of memory",
        (),
        5,
        "actor-died",
        r"actor . .*died: Ray ended it because its node is low on memory \(.* used / .* limit\)",
        env=(("RAY_memory_usage_threshold", "0.01"), ("RAY_memory_monitor_refresh_ms", "100")),
    ),
    Fault(
        "a task hangs",
        ("tasks.first.call=a.hangs", "engine.timeouts.stall=3s"),
        5,
        "timeout",
        "no task began or ended in 3 s: actor a has been in task first",
        measured=True,
        soak=True,
    ),
    Fault(
        "two tasks wait for each other",
        (
            "tasks.first={call: a.waits, in: {x: inputs.x}, with: {mine: 1.txt, other: 2.txt}}",
            "tasks.second={call: b.waits, in: {x: inputs.x}, with: {mine: 2.txt, other: 1.txt}}",
            "outputs=[first, second]",
            "engine.timeouts.stall=3s",
        ),
        5,
        "timeout",
        "no task began or ended in 3 s: actor . has been in task",
        measured=True,
        soak=True,
    ),
    Fault(
        "the object store and the disk behind it are full",
        ("tasks.first.call=a.big", "tasks.second.call=b.size", "cluster.address=auto"),
        3,
        "not-able",
        "there is no room for the result of task first in iteration 0: Ray's object store is full",
        under=("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=60m tmpfs $RAY_TMPDIR; "$@"', "sh"),
        python=("-c", f"{SMALL_STORE}; import cgspec.cli; cgspec.cli.main()"),
        leaves="sem\\.|ray/",
    ),
    Fault(
        "the disk under the run folder is full",
        ("run.iterations=8000",),
        3,
        "not-able",
        "samples.csv in .* could not be written: No space left on device",
        under=("unshare", "-rm", "sh", "-c", SMALL_DISK, "sh"),
    ),
    ctrl_c("while Ray starts", when(in_phase("startup"), CTRL_C, after=1.0)),
    ctrl_c("while actors are placed", when(done("ray"), CTRL_C, after=0.5), "cluster.placement=STRICT_SPREAD"),
    ctrl_c("in a constructor", when(STRUCK, CTRL_C, after=0.3), "actors.a.args={seconds: 600}"),
    ctrl_c(
        "while the graph is compiled",
        when(done("construct"), CTRL_C, after=0.2),
        "engine.buffer=64MiB",
        "run.inflight=8",
    ),
    ctrl_c("in warmup", when(in_phase("warmup"), CTRL_C, after=0.5), NAPS, "run.warmup=100000"),
    ctrl_c(
        "in the measure phase",
        when(in_phase("measure"), CTRL_C, after=0.5),
        NAPS,
        "run.iterations=100000",
        measured=True,
    ),
    ctrl_c(
        "in a profile phase",
        when(in_phase("profile"), CTRL_C, after=0.5),
        NAPS,
        "profile={kind: torch, iterations: 100000}",
        measured=True,
    ),
    ctrl_c(
        "twice, in a task that hangs",
        when(STRUCK, CTRL_C, CTRL_C, after=0.3),
        "tasks.first.call=a.hangs",
        measured=True,
    ),
    Fault(
        "Ctrl-C while everything is taken down",
        ("actors.a.args={last_words: 1}",),
        130,
        "passed",
        "",
        when(STRUCK, CTRL_C),
        True,
    ),
    Fault(
        "Ctrl-C while the report is written",
        ("profile=timeline",),
        130,
        "passed",
        "",
        when(lambda run: (run.latest / "graph.svg").exists(), CTRL_C),
        True,
    ),
    Fault(
        "`kill -9` of cgspec",
        (NAPS, "run.iterations=100000"),
        -9,
        "killed",
        "",
        when(in_phase("measure"), Run.kill, after=5.0),
        leaves=r"ray::RuntimeEnvAgent|ray/|sem\.|cgspec-where-",
    ),
)
"""In the README's order."""


def rows() -> Iterator[str]:
    """The table, in Markdown."""
    yield "| what happens | what the user is told first | seconds to the end | exit code |"
    yield "| --- | --- | --- | --- |"
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            ended = fault.run(Path(folder) / "run")
        said = _plain(ended.first_line) or f"(`cgspec runs` says {ended.record.state})"
        yield f"| {fault.name} | {said} | {ended.seconds:.1f} | {ended.code} |"


def _plain(text: str) -> str:
    """Without what is another's tomorrow: places, pids, addresses."""
    for found, shown in (
        (r"/\S*/", ""),
        (r"\d+\.\d+\.\d+\.\d+", "NODE"),
        (r"pid \d+", "pid N"),
        (r"\d{4}-\d\d-\d\dT\S+", "RUN"),
    ):
        text = re.sub(found, shown, text)
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for line in rows():
        print(line, flush=True)
