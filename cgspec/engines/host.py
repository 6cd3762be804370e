"""The worker as a Ray actor: adds what needs ray, or the process, to ``worker.Worker``.

Ray packs and unpacks a handle of the actor several times for each task that it compiles, each time with every method of
its class: the class has few, and one of them asks for all that is not done in each iteration.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ray
from ray.exceptions import RayTaskError

from cgspec import raynames
from cgspec.engines.couriers import Log
from cgspec.engines.process_groups import free_port
from cgspec.engines.shipping import unpacked
from cgspec.invocation import Failed
from cgspec.payloads import Sendable
from cgspec.worker import Born, Job, Worker, WorkerPhase

if TYPE_CHECKING:
    from cgspec.engines.channels import Seen
    from cgspec.engines.rdt import Station
    from cgspec.engines.turns import Seat, Turn
    from cgspec.profilers import WatchJob


@dataclass(frozen=True)
class Settings:
    """What an actor's process is set to before the graph is compiled.

    Attributes:
        buffer: bytes of each channel that it writes.
        plain: whether its loop goes the short way: it has no GPU, and no task has a transport or is a collective.
    """

    buffer: int
    plain: bool


@dataclass(frozen=True)
class Home:
    """Where an actor lives: process, Ray's id of the node, the node's address."""

    pid: int
    node_id: str
    address: str


class Host:
    """The class of the actors."""

    def __init__(self, log: Log | None) -> None:
        if log is not None:
            _redirect(log.here())
        self.worker = HostedWorker()

    def run(self, number: int, *values: object) -> object:
        return self.worker.run(number, *values)

    def take_turn(self, place: int, token: None, *values: object) -> object:
        return self.worker.turns.take(place, values)

    def ask(self, method: str, *arguments: object) -> object:
        """Calls a method of the worker."""
        return getattr(self.worker, method)(*arguments)


class HostedWorker(Worker):
    """One actor member's worker, alone in its process.

    Attributes:
        plain: as in ``Settings``.
    """

    remote = True
    plain = False

    def __init__(self) -> None:
        super().__init__()
        self.sendable = sendable()

    def home(self) -> Home:
        context = ray.get_runtime_context()
        address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        return Home(os.getpid(), context.get_node_id(), address)

    def clock(self) -> int:
        return time.monotonic_ns()

    def root_of(self, job: Job) -> pathlib.Path:
        """The shipped copy, which is the process's working folder too: the one that it started in means nothing."""
        copy = unpacked(job.package) if job.package is not None else None
        if copy is None:
            return super().root_of(job)
        if "working_dir" not in ray.get_runtime_context().runtime_env:
            os.chdir(copy)
        return copy

    def free_port(self) -> int:
        return free_port()

    def set_environment(self, variables: dict[str, str]) -> None:
        os.environ.update(variables)

    def born(self, job: Job) -> Born | Failed:
        """``construct``, and everything on its way to the logs before the answer."""
        try:
            return self.construct(job)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    def taken_over(self, job: Job, fresh: bool, log: Log | None) -> Born | Failed:
        """``adopt`` for another run, which has its own log."""
        if log is not None:
            _redirect(log.here())
        return self.adopt(job, fresh=fresh)

    def configure(self, settings: Settings) -> None:
        """Sets Ray's context in this process: ``env_vars`` would double or triple the actor's start."""
        from ray.dag import DAGContext

        if (communicators := sys.modules.get("cgspec.engines.communicators")) is not None:
            communicators.close_groups()  # of the graph before this one
        DAGContext.get_current().buffer_size_bytes = settings.buffer
        self.plain = settings.plain

    def close_loop(self) -> None:
        """Closes the channels of the graph's loop, which ends it: outgrown ones are closed nowhere else."""
        loop = raynames.find_loop(sys._current_frames().values())
        for task in loop.tasks if loop is not None else ():
            task.cancel()

    def begin_timed(self, iterations: int, watch: WatchJob | None, looks: tuple[int, ...]) -> None:
        """``begin``, and reads and writes of the graph's channels are timed."""
        from cgspec.engines.channels import ChannelWatch

        self.begin(iterations, watch, looks)
        self.channels = ChannelWatch(iterations)

    def end_timed(self) -> tuple[WorkerPhase, tuple[Seen, ...]]:
        """``end``, and what was seen of the channels."""
        seen = self.channels.finish(max(self.recorder.counts, default=0))
        return self.end(), seen

    def plan_turns(
        self, turns: tuple[Turn, ...], seats: dict[int, Seat], station: Station | None, patience: float
    ) -> None:
        """What this actor does in the direct engine; ``patience`` is how many seconds it waits for a tensor."""
        from cgspec.engines.turns import Turns

        raynames.wait_for_tensors(patience)
        self.turns = Turns(self, turns, seats, station)


def sendable() -> Sendable:
    """Looks whether a value can go through one of Ray's channels."""
    return Sendable(_pickle, raised=RayTaskError)


def _pickle(value: object) -> None:
    """Pickles as Ray's channels do; what cannot be pickled raises."""
    ray.cloudpickle.dumps(value)  # type: ignore[no-untyped-call]


def _redirect(path: pathlib.Path) -> None:
    """Sends all that the process writes to a file, children and C code included, line by line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.dup2(target, number)
        setattr(sys, name, os.fdopen(number, "w", buffering=1, closefd=False, errors="backslashreplace"))
    os.close(target)
