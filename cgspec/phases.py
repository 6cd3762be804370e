"""One pass over the graph: a window of iterations under way, timed, with inputs made and results looked at outside.

Iterations are run in blocks. Before a block its inputs are made, after it its results are looked at; the clock of the
throughput stands still meanwhile. Where there is nothing to make or to look at, blocks only bound what a kill can lose.
The latency of an iteration is from just before ``submit`` to the moment at which its values were at hand.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from cgspec.clocks import settle
from cgspec.engines import Engine, Fetched, Phase, PhaseData
from cgspec.errors import RunError
from cgspec.feed import Feed
from cgspec.graph import Graph
from cgspec.interrupts import Signals
from cgspec.outputs import assemble

HELD_BYTES = 256 * 2**20
"""Bytes of inputs, or of results, that are held at the most; at least one iteration always is."""
MOST_COUNTED = 10_000
"""Containers that are looked into to tell how large a result is."""
TICK_NS = 100_000_000
"""Between two words of progress."""
SAVE_NS = 2_000_000_000
"""Between two times that latencies are handed on to be saved."""


class Observer(Protocol):
    """Whoever watches a run; called between iterations, outside the timed intervals."""

    def phase(self, name: str, total: int) -> None:
        """A phase begins."""

    def progress(self, done: int) -> None:
        """So many of the phase's iterations are done."""

    def note(self, text: str) -> None:
        """Something that people want to know."""


class Looker(Protocol):
    """Whoever looks at results.

    Attributes:
        every: whether it looks at every iteration, not only at the first and the last.
    """

    every: bool

    def look(self, i: int, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        """Looks at one iteration."""


class _Nobody:
    """Looks at nothing."""

    every = False

    def look(self, i: int, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        pass


NOBODY = _Nobody()


@dataclass(frozen=True)
class Plan:
    """One pass.

    Attributes:
        phase: what the engine is told.
        inflight: iterations that are under way at once, at most.
        first: the number ``i`` of the first iteration.
        duration: seconds after which nothing more is submitted; one iteration always is.
        keep_going: whether the pass goes on when a task raised.
    """

    phase: Phase
    inflight: int = 1
    first: int = 0
    duration: float | None = None
    keep_going: bool = False


@dataclass
class Kept:
    """One iteration's number, inputs and outputs."""

    i: int
    inputs: Sequence[object]
    outputs: list[object]


@dataclass
class Passed:
    """What a pass left.

    Attributes:
        submitted, done: ns of ``time.monotonic_ns`` by iteration, in the order of submission.
        raised: places in these of iterations that raised.
        seconds: under way, by the driver's clock, copying included.
        first, last: the first and the last iteration that gave outputs.
        data: what the engine recorded, where it could still say it.
        failed: the iteration that raised first, with its inputs.
        error: why the pass ended early; with ``keep_going`` the first error of those that it went on after.
        ended: whether ``error`` ended it.
        interrupted: whether a signal ended it.
    """

    plan: Plan
    submitted: array[int] = field(default_factory=lambda: array("q"))
    done: array[int] = field(default_factory=lambda: array("q"))
    raised: set[int] = field(default_factory=set)
    seconds: float = 0.0
    first: Kept | None = None
    last: Kept | None = None
    failed: Kept | None = None
    data: PhaseData | None = None
    error: RunError | None = None
    ended: bool = False
    interrupted: bool = False

    def latencies(self) -> list[int]:
        """ns of every iteration that gave outputs, in order."""
        pairs = enumerate(zip(self.submitted, self.done, strict=False))
        return [end - start for place, (start, end) in pairs if place not in self.raised]


@dataclass
class Pass:
    """Runs one plan on a live engine; see ``run``."""

    engine: Engine
    graph: Graph
    plan: Plan
    feed: Feed
    observer: Observer
    signals: Signals
    looker: Looker = NOBODY
    saved: Callable[[Passed], None] = lambda passed: None

    def __post_init__(self) -> None:
        self.passed = Passed(self.plan)
        self._ready: deque[list[object]] = deque()
        self._pending: deque[list[object]] = deque()
        self._held: deque[Kept] = deque()
        self._held_bytes = 0
        self._sent = 0
        self._tick = self._saved_at = 0
        self._over = False
        self._unmade: RunError | None = None
        apart = self.looker.every or self.feed.ahead
        self._block = 1 if self.plan.inflight == 1 and apart else (256 if apart else 4096)
        self._block = max(self._block, 32 * self.plan.inflight) if self._block > 1 else 1

    def run(self) -> Passed:
        """Runs the plan; an error that a run ends with is in what it returns, as is a KeyboardInterrupt."""
        self.observer.phase(self.plan.phase.name, self.plan.phase.iterations)
        self.feed.forget()
        begun = False
        try:
            self.engine.begin(self.plan.phase)
            begun = True
            self.signals.mode = "between"
            with calm(self.engine.kind):
                self._blocks()
            self.signals.heard()
            self.passed.data = self._settled(self.engine.end())
        except RunError as error:
            self._broke(self._in_our_words(error))
            data = self.engine.rescue() if begun else None
            self.passed.data = self._settled(data) if data is not None else None
        except KeyboardInterrupt:
            self.passed.interrupted = True
        finally:
            self.signals.mode = "at-once"
        self._look()
        self._save()
        return self.passed

    def _settled(self, data: PhaseData) -> PhaseData:
        """With all times by the driver's clock."""
        driver = list(zip(self.passed.submitted, self.passed.done, strict=False))
        settle(self.graph, data, self.engine.nodes, driver, without=self.passed.raised)
        return data

    def _blocks(self) -> None:
        limit = self.plan.duration
        self._deadline = None if limit is None else time.monotonic_ns() + int(limit * 1e9)
        while not self._over and self._sent < self.plan.phase.iterations:
            self._prepare()
            self._clocked()
            self._look()
            self._tell(time.monotonic_ns())
            if self._unmade is not None:
                raise self._unmade
        if self.signals.stop:
            self.passed.interrupted = True

    def _clocked(self) -> None:
        """Runs what is ready, by the clock."""
        began = time.monotonic_ns()
        try:
            self._fill()
            while self._pending:
                self._take()
                self._fill()
        finally:
            self.passed.seconds += (time.monotonic_ns() - began) / 1e9

    def _prepare(self) -> None:
        """Makes the inputs of a block; those before one that cannot be made still run."""
        most = min(self._block, self.plan.phase.iterations - self._sent)
        size = 0
        while len(self._ready) < most and (not self._ready or size < HELD_BYTES):
            try:
                inputs = self.feed.make(self.plan.first + self._sent + len(self._ready))
            except RunError as error:
                self._unmade = error
                return
            size += _bytes(inputs) if self.feed.ahead else 0
            self._ready.append(inputs)

    def _fill(self) -> None:
        """Submits until the window is full."""
        while self._ready and len(self._pending) < self.plan.inflight and not self._ends():
            inputs = self._ready.popleft()
            if self.feed.remembers:
                self.feed.complete(self.plan.first + self._sent, inputs)
            self.passed.submitted.append(time.monotonic_ns())
            self.engine.submit(inputs)
            self._pending.append(inputs)
            self._sent += 1

    def _ends(self) -> bool:
        """Whether nothing more is submitted, in this pass or in this block."""
        late = self._deadline is not None and self._sent > 0 and time.monotonic_ns() >= self._deadline
        self._over = self._over or late or self.signals.stop is not None
        return self._over or self._held_bytes > HELD_BYTES

    def _take(self) -> None:
        """Fetches the oldest iteration."""
        number = len(self.passed.done)
        fetched = self.engine.fetch()
        inputs = self._pending.popleft()
        self.passed.done.append(fetched.at_ns)
        if fetched.error is not None:
            self._raised(number, inputs, self._in_our_words(fetched.error))
            return
        outputs = assemble(self.graph, fetched.values)
        if self.feed.remembers:
            self.feed.remember(self.plan.first + number, outputs)
        self._keep(Kept(self.plan.first + number, inputs, outputs), fetched)
        self._tell(fetched.at_ns)

    def _keep(self, kept: Kept, fetched: Fetched) -> None:
        self.passed.first = self.passed.first or kept
        self.passed.last = kept
        if self.looker.every:
            self._held.append(kept)
            self._held_bytes += _bytes(fetched.values)

    def _raised(self, number: int, inputs: Sequence[object], error: RunError) -> None:
        self.passed.raised.add(number)
        self.passed.error = self.passed.error or error
        self.passed.failed = self.passed.failed or Kept(self.plan.first + number, inputs, [])
        if not self.plan.keep_going:
            self._over = self.passed.ended = True
        if self.feed.remembers:
            self.feed.remember(self.plan.first + number, None)

    def _broke(self, error: RunError) -> None:
        """The graph cannot go on: the oldest iteration under way is to blame, unless the error knows better."""
        self.passed.error, self.passed.ended = self.passed.error or error, True
        oldest, told = len(self.passed.done), error.failure.iteration
        place = 0 if told is None else told - self.plan.first - oldest
        if 0 <= place < len(self._pending):
            number = self.plan.first + oldest + place
            self.passed.failed = self.passed.failed or Kept(number, self._pending[place], [])

    def _in_our_words(self, error: RunError) -> RunError:
        """The error with this phase's name, and the number that the iteration has in it."""
        number, first = error.failure.iteration, self.plan.first
        told = replace(error.failure, phase=self.plan.phase.name)
        if first and number is not None and error.failure.task is not None:
            message = told.message.replace(f"in iteration {number}", f"in iteration {number + first}")
            told = replace(told, iteration=number + first, message=message)
        return type(error)(told)

    def _look(self) -> None:
        while self._held:
            kept = self._held.popleft()
            self.looker.look(kept.i, kept.inputs, kept.outputs)
        self._held_bytes = 0

    def _tell(self, at_ns: int) -> None:
        """Progress, and now and then what a kill must not lose."""
        if at_ns >= self._tick:
            self._tick = at_ns + TICK_NS
            self.observer.progress(len(self.passed.done))
        if at_ns >= self._saved_at + SAVE_NS:
            self._save()

    def _save(self) -> None:
        self._saved_at = time.monotonic_ns()
        self.observer.progress(len(self.passed.done))
        self.saved(self.passed)


@contextmanager
def calm(engine: str) -> Iterator[None]:
    """torch in this process computes on one thread meanwhile, unless actors live here too.

    The threads of its pool spin for a while after each look at a result, on processors that the actors are waiting
    for: the quickstart's p50 was 6 ms with them, 2 ms without, on two cores.
    """
    torch: Any = sys.modules.get("torch") if engine != "local" else None
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _bytes(values: Sequence[object]) -> int:
    """About as many bytes as the values hold; what holds itself is counted once."""
    total, left, seen = 0, [*values], set[int]()
    while left and len(seen) < MOST_COUNTED:
        value = left.pop()
        if isinstance(value, (list, tuple, dict)):
            if id(value) not in seen:
                seen.add(id(value))
                left.extend(value.values() if isinstance(value, dict) else value)
        else:
            total += int(getattr(value, "nbytes", 0)) or sys.getsizeof(value, 64)
    return total
