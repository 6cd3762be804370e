"""Ctrl-C and SIGTERM: at once while nothing is measured, between iterations while something is, never while closing."""

from __future__ import annotations

import os
import signal
import threading
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
