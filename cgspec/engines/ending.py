"""Takes a compiled graph and its actors down, each step as long as there is time, never raising."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import ray

from cgspec.engines.actors import Actors

LAST = 3.0
"""Seconds that a step gets after its actors were killed."""


class Ending:
    """One teardown.

    Args:
        within: seconds for all of it.
    """

    def __init__(self, within: float) -> None:
        self.deadline = time.monotonic() + within

    @property
    def left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def end_graph(self, compiled: Any, actors: Actors, *, gently: bool) -> None:
        """Ends the graph's loops; actors that are not gentle, or do not end in time, are killed."""
        if not gently:
            quietly(actors.kill)
        if compiled is not None and not self._within(lambda: compiled.teardown(kill_actors=False)):
            quietly(actors.kill)
            self._within(lambda: compiled.teardown(kill_actors=True), LAST)

    def end_actors(self, actors: Actors, *, gently: bool) -> None:
        """Ends the actors' processes: by their own exit where something, like nsys, waits for it."""
        if gently:
            quietly(lambda: self._ask_to_exit(actors))
        quietly(actors.kill)

    def _ask_to_exit(self, actors: Actors) -> None:
        ended = [handle.__ray_terminate__.remote() for handle in actors.handles]
        ray.wait(ended, num_returns=len(ended), timeout=self.left)

    def _within(self, step: Callable[[], object], seconds: float | None = None) -> bool:
        """Whether the step ended in time; it goes on in the background otherwise."""
        thread = threading.Thread(target=lambda: quietly(step), name="cgspec-teardown", daemon=True)
        thread.start()
        quietly(lambda: thread.join(self.left if seconds is None else seconds))
        return not thread.is_alive()


def quietly(step: Callable[[], object]) -> None:
    """Runs a step of the teardown; whatever it raises, a second Ctrl-C included, the next step is due."""
    with contextlib.suppress(BaseException):
        step()
