"""Takes a compiled graph and its actors down, each step as long as there is time, never raising."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import ray

from cgspec.engines.actors import Actors

GENTLE = 2.0
"""Seconds that loops and processes get to end by themselves."""
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

    def let_go(self, compiled: Any, actors: Actors) -> bool:
        """Ends the graph's loops and leaves the actors alive; False where they do not end."""
        quietly(lambda: self._ask(actors, lambda handle: handle.ask.remote("close_loop")))
        return self._within(compiled.teardown, min(self.left, GENTLE))

    def end_graph(self, compiled: Any, actors: Actors, *, gently: bool) -> None:
        """Ends the graph's loops; actors whose loops must not, or do not, end gently are killed."""
        if compiled is None or (gently and self.let_go(compiled, actors)):
            return
        if gently:
            quietly(lambda: self._ask(actors, lambda handle: handle.__ray_terminate__.remote()))
        quietly(actors.kill)
        self._within(lambda: compiled.teardown(kill_actors=True), LAST)

    def end_actors(self, actors: Actors, *, gently: bool) -> None:
        """Ends the actors' processes, by their own exit if there is time: exit handlers run, nsys sees the end."""
        if gently:
            quietly(lambda: self._ask(actors, lambda handle: handle.__ray_terminate__.remote()))
        quietly(actors.kill)

    def _ask(self, actors: Actors, call: Callable[[Any], Any]) -> None:
        if actors.handles:
            asked = [call(handle) for handle in actors.handles]
            ray.wait(asked, num_returns=len(asked), timeout=min(self.left, GENTLE))

    def _within(self, step: Callable[[], object], seconds: float) -> bool:
        """Whether the step ended in time; it goes on in the background otherwise."""
        thread = threading.Thread(target=lambda: quietly(step), name="cgspec-teardown", daemon=True)
        thread.start()
        quietly(lambda: thread.join(seconds))
        return not thread.is_alive()


def quietly(step: Callable[[], object]) -> None:
    """Runs a step of the teardown; whatever it raises, a second Ctrl-C included, the next step is due."""
    with contextlib.suppress(BaseException):
        step()
