"""Stands in for a GPU's stream and its events: work on the stream ends later than the call that launches it returns."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable


class Host:
    """A host's clock in ns, moved by hand; a CUDA call takes ``cost``."""

    def __init__(self, cost: int = 0) -> None:
        self.ns, self.cost = 1_000_000, cost

    def now(self) -> int:
        return self.ns

    def wait(self, until: int) -> None:
        self.ns = max(self.ns, until)

    def call(self) -> None:
        self.ns += self.cost


class RealHost:
    """This machine's clock."""

    now = staticmethod(time.monotonic_ns)

    def wait(self, until: int) -> None:
        while time.monotonic_ns() < until:
            time.sleep(0)

    def call(self) -> None:
        pass


class Stream:
    """Work comes one after the other; ``rate``: ns of the device's clock in one of the host's."""

    def __init__(self, host: Host | RealHost, *, rate: float = 1.0) -> None:
        self.host, self.rate, self.free, self.broken = host, rate, 0, False

    def launch(self, ns: int) -> None:
        """A kernel; the host goes on at once."""
        self.host.call()
        self.free = max(self.host.now(), self.free) + ns

    def synchronize(self) -> None:
        self.host.wait(self.free)

    @property
    def make(self) -> Callable[[], Event]:
        return lambda: Event(self)


class Event:
    """What is used of ``torch.cuda.Event``; an hour lies between the two clocks."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.at = stream, -1

    def record(self) -> None:
        if self.stream.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with more")
        self.stream.host.call()
        self.at = max(self.stream.host.now(), self.stream.free)

    def synchronize(self) -> None:
        self.stream.host.wait(self.at)
        self.stream.host.call()

    def elapsed_time(self, end_event: Event) -> float:
        """As CUDA gives it: a float32 of ms, and only for events that are over."""
        both = (self.at, end_event.at)
        if min(both) < 0 or max(both) > self.stream.host.now():
            raise RuntimeError("CUDA error: device not ready")
        found: float = struct.unpack("f", struct.pack("f", (both[1] - both[0]) * self.stream.rate / 1e6))[0]
        return found
