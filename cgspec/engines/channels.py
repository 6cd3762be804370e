"""Reads and writes of the graph's channels, timed where Ray's loop does them: what ``profile: timeline`` adds.

Ray's own event mode (``RAY_CGRAPH_ENABLE_PROFILING``) is chosen when a graph is compiled and would weigh on every
phase; here the same operations are timed in one phase of the same graph, and nothing is left behind.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from cgspec import raynames
from cgspec.engines import ChannelTimes
from cgspec.recorder import Held, Recorder, capacity_for
from cgspec.steps import Chain, Layout

READ, WRITE = "read", "write"
PATIENCE = 1.0
"""Seconds in which a loop whose results are at hand comes round to its first read again."""

Seen = tuple[int, str, Held]
"""The place of a bind among those of its actor, read or write, and when."""


class ChannelWatch:
    """Times the loop of this process from now on, until ``finish``; where there is none it sees nothing.

    A read begins when the loop comes to it, so it holds the waiting for whoever writes; that of the first iteration
    began before the phase and is not known.
    """

    def __init__(self, iterations: int) -> None:
        self._undo = None
        loop = _waiting_loop()
        if loop is None:
            return
        count = len(loop.tasks)
        kept = capacity_for(iterations, 2 * count)
        self._rings = {kind: Recorder(count, kept) for kind in (READ, WRITE)}
        self._rings[READ].mark(loop.first, 0, 0)
        marks = {"READ": self._rings[READ].mark, "WRITE": self._rings[WRITE].mark, "COMPUTE": _nothing}
        self._undo = raynames.time_operations(loop.tasks, marks)

    def finish(self, iterations: int) -> tuple[Seen, ...]:
        """What was seen in the first so many iterations."""
        if self._undo is None:
            return ()
        self._undo()
        return tuple(
            (place, kind, _cut(ring.read(place), iterations))
            for kind, ring in self._rings.items()
            for place in range(len(ring.counts))
        )


def _nothing(place: int, start: int, end: int) -> None:
    pass


def _waiting_loop() -> raynames.Loop | None:
    """This process's loop, once it waits for the next iteration."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        loop = raynames.find_loop(sys._current_frames().values())
        if loop is not None and loop.waits:
            return loop
        time.sleep(0.001)
    return None


def _cut(held: Held, iterations: int) -> Held:
    first, starts, ends = held
    return first, starts[: max(0, iterations - first)], ends[: max(0, iterations - first)]


def name_channels(layout: Layout, seen: Sequence[Sequence[Seen]]) -> Iterator[ChannelTimes]:
    """What each actor saw, by task; of a chain, reads are its first task's and writes its last one's."""
    for actor, found in enumerate(seen):
        binds = [bind for bind in layout.binds if bind.actor == actor]
        for place, kind, (first, starts, ends) in found:
            task = binds[place].task
            if kind == READ and binds[place].group is None:
                step = layout.steps[actor][binds[place].step]
                task = layout.steps[actor][step.links[0].step].task if isinstance(step, Chain) else task
            if any(ends):
                yield ChannelTimes(task, kind, first, starts, ends)
