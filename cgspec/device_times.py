"""When tasks ran on the GPU: CUDA events around each task on its stream, from a pool, read when the phase is over.

A kernel runs after the call that launched it has returned, so host clocks charge it to whoever waits for it. Two events
on the stream on which a task launches say when the device came to its work, and when it was done with it; nothing
waits for them within the phase. Kernels on other streams than the task's current one are not seen.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from cgspec.recorder import Held

POOL = 20_000
"""Events of one actor at the most: two for each task and iteration that is held."""
TRIES = 5
RESOLUTION = 500
"""ns: that of the time between two events (cudaEventElapsedTime: "around 0.5 microseconds")."""
FLOAT = 2.0**-24
"""The relative error of that time, which CUDA gives as a float32 of ms."""


class Event(Protocol):
    """What is used of ``torch.cuda.Event``, with timing."""

    def record(self) -> None:
        """Notes the moment at which the current stream comes here."""

    def synchronize(self) -> None:
        """Waits for that moment."""

    def elapsed_time(self, end_event: Event) -> float:
        """The ms until another one, both being over."""


Make = Callable[[], Event]


def cuda_events() -> Make | None:
    """What makes events; None where this process does not use CUDA through torch (yet): torch is not imported for it.

    CUDA makes an event when it is recorded for the first time, so each is recorded once.
    """
    torch = sys.modules.get("torch")
    if torch is None or not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None

    def make() -> Event:
        event: Event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return make


class Pool:
    """Events that were made before they are needed; phases of one worker share them. ``now`` is the host's clock."""

    def __init__(self, make: Make, now: Callable[[], int] = time.monotonic_ns) -> None:
        self.make, self.now = make, now
        self.events: list[Event] = []

    def take(self, count: int) -> list[Event]:
        """The first ones."""
        self.events += [self.make() for _ in range(count - len(self.events))]
        return self.events[:count]


@dataclass(frozen=True)
class Anchor:
    """An event whose moment the host knows: ``at``, in ns of ``time.monotonic_ns``, to within ``error`` ns."""

    event: Event
    at: int
    error: int


def anchor(pool: Pool) -> Anchor:
    """Records an event and waits for it: its moment lies between just before and just after.

    Of several tries the narrowest: at = (before + after) / 2, error = (after - before) / 2. The device has to be idle.
    """
    found = []
    for _ in range(TRIES):
        event, before = pool.make(), pool.now()
        event.record()
        event.synchronize()
        after = pool.now()
        found.append(Anchor(event, (before + after) // 2, (after - before + 1) // 2))
    return min(found, key=lambda each: each.error)


@dataclass(frozen=True)
class HostClock:
    """Moves the device's times to the host's clock, by an anchor before all of them and one after.

    With t(a, b) the device's time between two events, rate = (last.at - first.at) / t(first, last), and an event e is
    at first.at + rate * t(first, e), or at last.at - rate * t(e, last), whichever anchor is nearer. ``error`` is that
    of the less exact anchor, the resolution of t, and what float32 loses of t in half of the phase (4 µs in a minute).
    """

    first: Anchor
    last: Anchor

    @cached_property
    def length(self) -> float:
        """The ns between the anchors, by the device."""
        return self.first.event.elapsed_time(self.last.event) * 1e6

    @property
    def error(self) -> int:
        """ns."""
        return max(self.first.error, self.last.error) + RESOLUTION + round(self.length * FLOAT)

    def move(self, event: Event) -> int:
        """The ns at which an event was."""
        rate = (self.last.at - self.first.at) / self.length if self.length > 0 else 1.0
        since, left = self.first.event.elapsed_time(event) * 1e6, event.elapsed_time(self.last.event) * 1e6
        return round(self.first.at + rate * since if since <= left else self.last.at - rate * left)


@dataclass(frozen=True)
class DeviceTimes:
    """What was seen of one actor's tasks: by slot, on the host's clock to within ``error`` ns; and sentences."""

    times: Mapping[int, Held] = field(default_factory=dict)
    error: int | None = None
    notes: Sequence[str] = ()


class DeviceRecorder:
    """Rings of event pairs, one per slot, as ``recorder.Recorder`` has rings of host times; ``counts`` are that one's.

    An iteration in which a task was skipped has no pair; one in which it raised has.
    """

    def __init__(self, counts: Sequence[int], iterations: int, pool: Pool) -> None:
        slots = len(counts)
        self.counts = counts
        self.capacity = max(1, min(iterations, POOL // (2 * max(1, slots))))
        self.trouble: str | None = None
        self._pool = pool
        self._held = [array("q", [-1]) * self.capacity for _ in counts]
        try:
            events = iter(pool.take(2 * slots * self.capacity))
            self._starts = [[next(events) for _ in range(self.capacity)] for _ in counts]
            self._ends = [[next(events) for _ in range(self.capacity)] for _ in counts]
            self._first = anchor(pool)
        except Exception as error:
            self._give_up(error)

    def enter(self, slot: int) -> None:
        """A task begins; on the thread whose current stream it launches on."""
        if self.trouble is None:
            try:
                self._starts[slot][self.counts[slot] % self.capacity].record()
            except Exception as error:
                self._give_up(error)

    def leave(self, slot: int) -> None:
        """It has launched all it launches; before its iteration is counted."""
        if self.trouble is None:
            count = self.counts[slot]
            try:
                self._ends[slot][count % self.capacity].record()
            except Exception as error:
                self._give_up(error)
            else:
                self._held[slot][count % self.capacity] = count

    def around(self, slot: int, call: Callable[..., object]) -> Callable[..., object]:
        """The call between its two events."""

        def bracketed(*values: object) -> object:
            self.enter(slot)
            try:
                return call(*values)
            finally:
                self.leave(slot)

        return bracketed

    def _give_up(self, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        self.trouble = f"its device times were lost ({said}): its times are by the host's clock"

    def finish(self) -> DeviceTimes:
        """The times of what is held, once the graph is idle; waits for the device."""
        if self.trouble is None:
            try:
                return self._read()
            except Exception as error:
                self._give_up(error)
        return DeviceTimes(notes=(str(self.trouble),))

    def _read(self) -> DeviceTimes:
        clock = HostClock(self._first, anchor(self._pool))
        times = {slot: self._read_slot(slot, clock) for slot in range(len(self.counts))}
        most = max(self.counts, default=0)
        short = f"device times are held of its last {self.capacity:,} of {most:,} iterations"
        return DeviceTimes(times, clock.error, (short,) if most > self.capacity else ())

    def _read_slot(self, slot: int, clock: HostClock) -> Held:
        count = self.counts[slot]
        first = max(0, count - self.capacity)
        starts, ends = array("q"), array("q")
        for iteration in range(first, count):
            start, end = self._pair(slot, iteration, clock)
            starts.append(start)
            ends.append(end)
        return first, starts, ends

    def _pair(self, slot: int, iteration: int, clock: HostClock) -> tuple[int, int]:
        place = iteration % self.capacity
        if self._held[slot][place] != iteration:
            return 0, 0
        start, end = self._starts[slot][place], self._ends[slot][place]
        start.synchronize()  # a task may leave another stream behind than it found
        end.synchronize()
        at = clock.move(start)
        return at, at + round(start.elapsed_time(end) * 1e6)
