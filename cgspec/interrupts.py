"""Ctrl-C and SIGTERM: at once while nothing is measured, between iterations while something is, never while closing.

What must not be broken off half-way, as the start of Ray, holds them until it is done.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Literal

GRACE = 1.0
"""Seconds that a measurement gets to come to the end of what is under way."""
WATCHED = (signal.SIGINT, signal.SIGTERM)

Mode = Literal["at-once", "between", "never"]


class Signals:
    """While entered, decides what the two signals do; elsewhere than on the main thread it does nothing.

    A signal that was ignored before (``nohup``, a job in the background) stays ignored.

    Attributes:
        mode: ``at-once`` raises KeyboardInterrupt; ``between`` sets ``stop``, and raises when nobody looked at it for
            ``GRACE`` seconds or the signal comes again; ``never`` sets ``stop`` alone.
        stop: the name of the signal that came, or None.
    """

    def __init__(self) -> None:
        self.mode: Mode = "at-once"
        self.stop: str | None = None
        self._before: dict[int, Any] = {}
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.getsignal(number) for number in WATCHED}
            self._before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
        self.arm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heard()
        for number, handler in self._before.items():
            if handler is not None:
                signal.signal(number, handler)

    def arm(self) -> None:
        """Takes the handlers (again: importing Ray sets one for SIGTERM)."""
        for number in self._before:
            signal.signal(number, self._handle)

    def heard(self) -> None:
        """Says that ``stop`` was seen and what was under way is done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first, self.stop = self.stop is None, signal.Signals(number).name
        if self.mode == "never":
            return
        if self.mode == "at-once" or not first:
            self.heard()
            raise KeyboardInterrupt
        self._timer = threading.Timer(GRACE, os.kill, (os.getpid(), number))
        self._timer.daemon = True
        self._timer.start()


class _Holder:
    """Notes the first signal; a second one is given to who had it before."""

    def __init__(self, most: float) -> None:
        handlers = {number: signal.getsignal(number) for number in WATCHED}
        self.before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
        self.most = most
        self.came: int | None = None
        self._timer: threading.Timer | None = None
        for number in self.before:
            signal.signal(number, self.note)

    def note(self, number: int, frame: FrameType | None) -> None:
        if self.came is not None:
            self.deliver()
            return
        self.came = number
        self._timer = threading.Timer(self.most, os.kill, (os.getpid(), number))
        self._timer.daemon = True
        self._timer.start()

    def deliver(self) -> None:
        """Puts everything back, and sends what came."""
        if self._timer is not None:
            self._timer.cancel()
        for number, handler in self.before.items():
            if signal.getsignal(number) == self.note:  # Ray sets one of its own for SIGTERM
                signal.signal(number, handler)
        came, self.came = self.came, None
        if came is not None:
            signal.raise_signal(came)


@contextmanager
def held(most: float) -> Iterator[None]:
    """Holds the two signals until the block is over, for ``most`` seconds at the most; a second one is not held.

    Elsewhere than on the main thread it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    holder = _Holder(most)
    try:
        yield
    finally:
        holder.deliver()
