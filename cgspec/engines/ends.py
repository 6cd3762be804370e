"""The driver's ends of a compiled graph: what it submits, and what it gets."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ray.exceptions import RayChannelTimeoutError, RayTaskError

from cgspec import raynames

WAIT = 0.1
"""Seconds after which a read that waits gives others a turn, as Ray's do by default: signals are heard meanwhile."""
GROWN = "an input outgrew the buffer of its channel, which was full; engine.buffer says how large inputs may be"

Write = Callable[[object, float], None]
Read = Callable[[float], object]
"""Of a channel, within so many seconds."""


class Ends:
    """Writes and reads a graph's channels; results are read in the order of their submission, all of them.

    Ray's ``execute`` makes a reference per output, which may be asked for in any order, or never: a third of what a
    driver does for a small graph goes into the bookkeeping. It raises, too, where a channel has no room (that of a
    reader on another node has one buffer, whatever is in flight); here what has no room goes with the next read. One
    thread may write while another one reads.
    """

    def __init__(self, compiled: Any) -> None:
        writes, reads = raynames.driver_ends(compiled)
        self._writes: list[tuple[Write, int]] = [(channel.write, place or 0) for channel, place in writes]
        self._reads: list[Read] = [channel.read for channel in reads]
        self._left: deque[tuple[Write, object]] = deque()
        self._sending = threading.Lock()

    def write(self, arguments: Sequence[object]) -> None:
        """Submits one iteration; never waits."""
        self._left.extend([(write, arguments[place]) for write, place in self._writes])
        self._send()

    def read(self) -> list[object]:
        """The values of the oldest iteration, by output; blocks for as long as it takes.

        Raises:
            RayChannelError: the graph has ended.
            RayTaskError: a task could not make its value, and not as a ``Failed`` either; no other is waited for.
        """
        values: list[Any] = [None] * len(self._reads)
        late = list(range(len(values)))
        try:
            while late:
                late = [place for place in late if not self._take(place, values)]
                if self._left:
                    self._send()
        except BaseException:
            values.clear()  # views of shared memory, which the frames of an exception would keep
            raise
        return values

    def _take(self, place: int, values: list[Any]) -> bool:
        """Whether an output came."""
        try:
            value = self._reads[place](WAIT)
        except RayChannelTimeoutError:
            return False
        if isinstance(value, RayTaskError):
            raise value
        values[place] = value
        return True

    def _send(self) -> None:
        """Writes what is left, as far as there is room."""
        with self._sending:
            while self._left:
                write, value = self._left[0]
                try:
                    write(value, 0)
                except RayChannelTimeoutError as error:
                    if raynames.lost_while_growing(error):
                        raise BufferError(GROWN) from None
                    return
                self._left.popleft()
