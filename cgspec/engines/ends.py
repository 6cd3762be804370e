"""The ends of a graph's channels: how the driver, and the short way through an actor's loop, write and read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ray.exceptions import RayChannelTimeoutError, RayTaskError

from cgspec import raynames

WAIT = 0.1
"""Seconds after which a read that waits gives others a turn, as Ray's do: signals are heard meanwhile."""

Read = Callable[[float], object]
"""Reads a channel's next value within so many seconds."""


class Ends:
    """The driver's ends of a compiled graph.

    Ray's ``execute`` makes a reference per output, which may be asked for in any order, or never: a third of what a
    driver does for a small graph goes into the bookkeeping. Here results are read in the order of their submission, all
    of them.
    """

    def __init__(self, compiled: Any) -> None:
        writes, reads = raynames.driver_ends(compiled)
        self._writes = [(channel.write, place or 0) for channel, place in writes]
        self._reads: list[Read] = [channel.read for channel in reads]

    def write(self, arguments: Sequence[object]) -> None:
        """Submits one iteration."""
        for write, place in self._writes:
            write(arguments[place])

    def read(self) -> list[object]:
        """The values of the oldest iteration, by output; blocks for as long as it takes; see ``take``."""
        return take(self._reads)


def take(reads: Sequence[Read]) -> list[Any]:
    """The next value of each channel; waits for them.

    Raises:
        RayChannelError: a channel is closed.
        RayTaskError: a writer could not make its value; the others are not waited for.
    """
    values: list[Any] = []
    late: list[int] = []
    for place, read in enumerate(reads):
        try:
            values.append(_made(read(WAIT)))
        except RayChannelTimeoutError:
            values.append(None)
            late.append(place)
    while late:
        late = [place for place in late if not _came(reads[place], place, values)]
    return values


def _came(read: Read, place: int, values: list[Any]) -> bool:
    try:
        values[place] = _made(read(WAIT))
    except RayChannelTimeoutError:
        return False
    return True


def _made(value: object) -> object:
    if isinstance(value, RayTaskError):
        raise value
    return value
