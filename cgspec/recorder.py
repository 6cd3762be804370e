"""The flight recorder: start and end of every task in every iteration, in preallocated rings, always on."""

from __future__ import annotations

from array import array

Held = tuple[int, "array[int]", "array[int]"]
"""The number of the first iteration that is held, and starts and ends in ns from it on, 0 where there was none."""
BUDGET = 32 * 2**20
"""Bytes that the rings of one actor take at the most."""


def capacity_for(iterations: int, slots: int) -> int:
    """How many iterations are kept: all of them, unless that takes more than the budget."""
    return max(1, min(iterations, BUDGET // (16 * max(1, slots))))


class Recorder:
    """Rings of nanoseconds, one pair per slot; a slot is a task in its actor's order.

    Attributes:
        counts: how often each slot was marked since the recorder was made.
    """

    __slots__ = ("capacity", "counts", "ends", "starts")

    def __init__(self, slots: int, capacity: int) -> None:
        self.capacity = capacity
        self.counts = [0] * slots
        self.starts = [_zeros(capacity) for _ in range(slots)]
        self.ends = [_zeros(capacity) for _ in range(slots)]

    def mark(self, slot: int, start: int, end: int) -> None:
        """Notes one execution; both are 0 for one that was skipped."""
        count = self.counts[slot]
        place = count % self.capacity
        self.starts[slot][place] = start
        self.ends[slot][place] = end
        self.counts[slot] = count + 1

    def read(self, slot: int) -> Held:
        """What the rings of a slot hold."""
        count = self.counts[slot]
        if count <= self.capacity:
            return 0, self.starts[slot][:count], self.ends[slot][:count]
        cut = count % self.capacity
        starts, ends = self.starts[slot], self.ends[slot]
        return count - self.capacity, starts[cut:] + starts[:cut], ends[cut:] + ends[:cut]


def _zeros(count: int) -> array[int]:
    return array("q", bytes(8 * count))
