"""The small interface that executes a graph: place, compile, submit, fetch, tear down; and the table of engines.

The order of calls is ``place``, ``compile``, then for each phase ``begin``, any number of ``submit`` and as many
``fetch``, ``end``; ``call`` stands between phases. ``teardown`` may be called at any time, from an except clause too.
Everything raises ``errors.RunError`` (NotAble, TaskRaised, Stalled, ActorDied) with a filled-in ``Failure``; ``phase``
and ``iteration`` in it are the engine's own count since ``begin``.
"""

from __future__ import annotations

import importlib
import pathlib
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, cast

from cgspec.errors import RunError
from cgspec.graph import Graph

if TYPE_CHECKING:  # every actor imports this package: it loads neither pydantic nor ray
    from cgspec.alignment import Alignment
    from cgspec.invocation import Failed
    from cgspec.looks import Looked
    from cgspec.spec import ClusterSpec, EngineSpec, ProfileSpec


@dataclass(frozen=True)
class Options:
    """How a graph is executed.

    Attributes:
        inflight: iterations that are under way at once, at most.
        root: the folder that class files are relative to.
        rehearse: on CPUs: no GPUs are asked for, ``$device`` is ``cpu``, tensors travel through host memory.
        log_dir: receives ``<actor>.<index>.log``, the complete stdout and stderr of each worker; None: dropped.
        profiles: every profile phase of the run; ``nsight`` must be known before actors start.
        nsight_actors: actors that Nsight watches, as indices into ``graph.actors``; None: all of them.
    """

    engine: EngineSpec
    cluster: ClusterSpec
    inflight: int
    root: pathlib.Path
    rehearse: bool = False
    log_dir: pathlib.Path | None = None
    profiles: tuple[ProfileSpec, ...] = ()
    nsight_actors: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Phase:
    """One pass over the graph.

    Attributes:
        name: ``warmup``, ``measure`` or ``profile``.
        iterations: how many will be submitted (an upper bound is enough; the recorder is sized by it). For a profile
            phase: its warmup and its recorded iterations together.
        profile: the profiler that watches; None: no profiler.
        actors: the actors that it watches, as indices into ``graph.actors``; None: all of them.
        trace_dir: where its files go; made if it is not there.
        looks: tasks whose results their workers look at, as indices into ``graph.tasks``.
    """

    name: str
    iterations: int
    profile: ProfileSpec | None = None
    actors: tuple[int, ...] | None = None
    trace_dir: pathlib.Path | None = None
    looks: tuple[int, ...] = ()


@dataclass
class Fetched:
    """One iteration's results.

    Attributes:
        values: one per ref of ``graph.output_refs``, copied out of shared memory; empty where there is an error.
        at_ns: ``time.monotonic_ns()`` when the values were at hand, before copying and looking.
        error: a task raised in this iteration; the graph is still usable.
    """

    values: list[object]
    at_ns: int
    error: RunError | None = None


Bounds = tuple[int, int]
"""The least and the most ns that may have to be added to a node's clock to have the driver's."""


@dataclass(frozen=True)
class TaskTimes:
    """When a task ran, in ns of CLOCK_MONOTONIC (``time.monotonic_ns``), by iteration.

    The clock is that of its actor's node, and the driver's once ``clocks.settle`` has seen to it.

    Attributes:
        first: the number of the first iteration that is held (0 unless the ring was full).
        start, end: one entry per iteration; 0 where the task was skipped because what it reads had failed.
        device: the same by its GPU's clock, moved to that one, where it was recorded (``device_times``).
    """

    first: int
    start: array[int]
    end: array[int]
    device: TaskTimes | None = None


@dataclass(frozen=True)
class ChannelTimes:
    """When the graph's loop was in the reads, or the writes, of one call's channels; as ``TaskTimes``.

    Attributes:
        task: index into ``graph.tasks``; a task may have several calls.
        kind: ``read``, with the waiting for whoever writes, or ``write``.
    """

    task: int
    kind: str
    first: int
    start: array[int]
    end: array[int]


@dataclass
class PhaseData:
    """What a phase left behind.

    Attributes:
        times: one per task of the graph.
        files: traces that were fetched into the phase's ``trace_dir``.
        peaks: actor member's name to the peak of its resident memory so far, in bytes.
        notes: sentences about what was not possible, for people.
        looked: what workers saw of the phase's ``looks``, by the task's index.
        channels: reads and writes, where they were timed (compiled engine, profile ``timeline``).
        device_errors: actor member's name to the ns to within which its device times are on its host's clock.
        bounds: of nodes that are other machines, by address: what was measured of their clocks.
        clocks: what was added to them, once ``clocks.settle`` has moved all times to the driver's clock.
    """

    times: tuple[TaskTimes, ...]
    files: list[pathlib.Path] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    looked: dict[int, Looked] = field(default_factory=dict)
    device_errors: dict[str, int] = field(default_factory=dict)
    channels: list[ChannelTimes] = field(default_factory=list)
    bounds: dict[str, Bounds] = field(default_factory=dict)
    clocks: dict[str, Alignment] = field(default_factory=dict)


@dataclass(frozen=True)
class Position:
    """What one actor is doing.

    Attributes:
        actor: index into ``graph.actors``; ``pid`` and ``node`` say where it lives.
        task: index into ``graph.tasks`` of the task that it is in; None while it waits or has nothing to do.
        upcoming: the task that comes next in the actor's order, where it is in none.
        iteration: of ``task`` or ``upcoming``.
        seconds: for how long it has been in ``task``, or since it left its last one.
        ended: how many tasks it has ended since the phase began.
        stack: of the user's code that it runs, outermost first; empty while it waits.
        reachable: whether the actor answered; if not, everything else is unknown.
        failed: what kept it from coming to a collective: its peers wait for it for ever.
        outside: what of the user's it runs outside the graph, e.g. its constructor, or the empty string.
    """

    actor: int
    pid: int = 0
    node: str = ""
    task: int | None = None
    upcoming: int | None = None
    iteration: int = 0
    seconds: float = 0.0
    ended: int = 0
    stack: tuple[str, ...] = ()
    reachable: bool = True
    failed: Failed | None = None
    outside: str = ""


class Engine(Protocol):
    """What executes a graph.

    Attributes:
        kind: its name in ``ENGINES``.
        startup: seconds by step, so far: ``import``, ``ray`` (its own processes and those of the actors), ``place``,
            ``construct``, ``compile``, ``first``.
        nodes: actor member's name to the address of its node, known after ``place``.
        notes: what the user should know, e.g. that an inherited ``RAY_ADDRESS`` was not followed.
        fused: the tasks of each run of them that is executed as one call, as indices into ``graph.tasks``.
    """

    kind: str
    startup: dict[str, float]
    nodes: dict[str, str]
    notes: list[str]
    fused: tuple[tuple[int, ...], ...]

    def place(self) -> None:
        """Starts Ray, gives every actor its place, constructs them all at once, imports the user's code here too."""

    def renew(self, graph: Graph, options: Options, *, fresh: bool = False) -> bool:
        """Takes another graph for the same live actors; ``compile`` is next.

        Args:
            fresh: whether the user's objects are made anew.

        Returns:
            False, with nothing changed, where the graph needs other actors or they are not well.

        Raises:
            TaskRaised: a constructor failed.
        """

    def reset(self) -> None:
        """Makes the user's objects anew, between phases; the graph stays as it is.

        Raises:
            TaskRaised: a constructor failed.
        """

    def compile(self) -> None:
        """Makes the graph ready for ``submit``."""

    def call(self, actor: int, method: str, kwargs: Mapping[str, object]) -> object:
        """Calls a method of the user's object outside the graph (setup)."""

    def device(self, actor: int) -> str:
        """What ``$device`` is for an actor: ``cuda`` or ``cpu``."""

    def begin(self, phase: Phase) -> None:
        """Starts a phase; nothing may be under way."""

    def submit(self, inputs: Sequence[object]) -> None:
        """Starts an iteration, one value per ``graph.inputs``; never blocks: at most ``inflight`` may be under way."""

    def fetch(self) -> Fetched:
        """Waits for the oldest iteration.

        Raises:
            Stalled, ActorDied, TaskRaised: the graph cannot go on.
        """

    def end(self) -> PhaseData:
        """Ends the phase, once everything was fetched, and brings home what it recorded."""

    def rescue(self) -> PhaseData | None:
        """What a phase that broke had recorded, as far as actors could still say it; None: nothing."""

    def where(self) -> tuple[Position, ...]:
        """What every actor is doing, one per actor; callable from another thread while ``fetch`` waits."""

    def teardown(self) -> None:
        """Takes the graph and its actors down within ``timeouts.teardown``; idempotent, never raises.

        Nsight's reports are complete only when the actors have ended. Where the run came to its nsight phase, they are
        waited for afterwards, as long as an ``nsys`` lives that writes one, up to ``compiled.REPORTS`` seconds;
        ``late_files`` has them then, and ``notes`` a sentence for each that did not come. The rest of the logs of other
        nodes comes last, as long as their nodes answer.
        """

    def late_files(self) -> list[pathlib.Path]:
        """Files that came to be when the actors ended (Nsight's reports), in the phase's ``trace_dir``."""


def same_actors(one: Graph, other: Graph) -> bool:
    """Whether two graphs need the same actors, whatever these do in them."""
    return [replace(actor, tasks=()) for actor in one.actors] == [replace(actor, tasks=()) for actor in other.actors]


def _later(module: str, name: str) -> Callable[[Graph, Options], Engine]:
    """An engine's class, imported when the engine is made: ``local`` must not load ray."""

    def make(graph: Graph, options: Options) -> Engine:
        began = time.monotonic()
        factory = getattr(importlib.import_module(f"cgspec.engines.{module}"), name)
        engine = cast(Engine, factory(graph, options))
        engine.startup["import"] = time.monotonic() - began
        return engine

    return make


ENGINES: dict[str, Callable[[Graph, Options], Engine]] = {
    "compiled": _later("compiled", "CompiledEngine"),
    "direct": _later("direct", "DirectEngine"),
    "local": _later("local", "LocalEngine"),
}
"""Engine kinds, as in ``engine.kind``."""
