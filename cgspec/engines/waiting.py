"""Stalls: a thread that notices that nothing happens any more, and the chain that says who waits for whom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cgspec.engines import Position
from cgspec.errors import Failure, Stalled
from cgspec.graph import Graph
from cgspec.quantities import show_duration

TICKS = 10
"""Looks per deadline, at the most one every two seconds."""
PEERS = 1.0
"""Seconds of silence after which it is asked whether a member of a collective will never come."""


class Watchdog(threading.Thread):
    """Watches one wait of the driver; fires once.

    Args:
        stall: seconds during which no task began or ended.
        positions: asks every actor where it is.
        allowance: seconds that an actor may sit in the task that it is in.
        fire: called with what was seen and the deadline that passed.
        peers: whether actors wait for each other in collectives, for ever where one of them failed.
    """

    def __init__(
        self,
        *,
        stall: float,
        positions: Callable[[], tuple[Position, ...]],
        allowance: Callable[[Position], float],
        fire: Callable[[tuple[Position, ...], float], None],
        peers: bool = False,
    ) -> None:
        super().__init__(name="cgspec-watchdog", daemon=True)
        self.stall, self.positions, self.allowance, self.fire = stall, positions, allowance, fire
        self.peers = peers
        self.until: float | None = None
        self.under_way = 0
        self.latest = time.monotonic()
        self.fired = False
        self._over = threading.Event()

    def expect(self, within: float) -> None:
        """One single deadline for what begins now, e.g. the first iteration; ``progress`` ends it."""
        self.until = time.monotonic() + within

    def progress(self, under_way: int) -> None:
        """The driver saw something happen; so many iterations are under way now."""
        self.latest = time.monotonic()
        self.under_way = under_way

    def met(self) -> None:
        """What was expected has come."""
        self.until = None
        self.latest = time.monotonic()

    def end(self) -> None:
        self._over.set()

    def run(self) -> None:
        while not self._over.wait(min(PEERS if self.peers else 2.0, self._limit() / TICKS)):
            seen = self._bereft() or self._look()
            if seen is not None and not self._over.is_set():
                self.fired = True
                self.fire(seen, self._limit())
                return

    def _limit(self) -> float:
        until = self.until
        return max(0.05, until - time.monotonic()) if until is not None else self.stall

    def _bereft(self) -> tuple[Position, ...] | None:
        """What was seen, if somebody waits for a member that will never come."""
        if not self.peers or not self.under_way or time.monotonic() - self.latest < PEERS:
            return None
        seen = self.positions()
        return seen if any(position.failed is not None for position in seen) else None

    def _look(self) -> tuple[Position, ...] | None:
        """What was seen, if a deadline has passed."""
        until = self.until
        if until is not None:
            return self.positions() if time.monotonic() > until else None
        if not self.under_way or time.monotonic() - self.latest < self.stall:
            return None
        seen = self.positions()
        silence = min((position.seconds for position in seen if position.reachable), default=float("inf"))
        excused = any(p.reachable and p.task is not None and p.seconds < self.allowance(p) for p in seen)
        if silence >= self.stall and not excused:
            return seen
        self.latest = time.monotonic() - min(silence, self.stall * 0.5)
        return None


def stalled(
    graph: Graph, sources: dict[int, tuple[int, ...]], seen: tuple[Position, ...], what: str, phase: str
) -> Stalled:
    """The error of a stall: the task that does not come back, or what everybody waits for.

    Who is in a collective waits for its other members: it is named only where nobody is in a task of another kind.
    """
    inside = [(graph.tasks[p.task].collective is None, p.seconds, p) for p in seen if p.task is not None]
    busy = max(inside, key=lambda each: each[:2])[2] if inside else None
    lines = chain(graph, sources, seen)
    silent = next((p for p in seen if not p.reachable), None)
    if busy is None and silent is not None:
        return _silent(graph, silent, lines, what, phase)
    if busy is None or busy.task is None:
        message = f"{what}; no task is running: " + "; ".join(lines[:3])
        return Stalled(Failure("stall", message, phase=phase, waiting=lines))
    task, actor = graph.tasks[busy.task], graph.actors[busy.actor]
    message = (
        f"{what}: actor {actor.name} has been in task {task.name} ({actor.name}.{task.label}), "
        f"iteration {busy.iteration}, for {show_duration(busy.seconds)}"
    )
    return Stalled(
        Failure(
            kind="stall",
            message=message,
            task=task.name,
            phase=phase,
            iteration=busy.iteration,
            actor=actor.name,
            node=busy.node or None,
            path=task.path,
            traceback="\n".join(busy.stack),
            waiting=lines,
        )
    )


def _silent(graph: Graph, silent: Position, lines: tuple[str, ...], what: str, phase: str) -> Stalled:
    """The error where an actor does not even answer: no Python runs in its process."""
    actor = graph.actors[silent.actor]
    message = (
        f"{what}: actor {actor.name} (pid {silent.pid}) does not answer; its process is stopped, "
        "or code in it holds Python's interpreter lock"
    )
    node = silent.node or None
    return Stalled(Failure("stall", message, phase=phase, actor=actor.name, node=node, path=actor.path, waiting=lines))


def chain(graph: Graph, sources: dict[int, tuple[int, ...]], seen: tuple[Position, ...]) -> tuple[str, ...]:
    """One line per actor: the task that it is in, with its stack, or what it waits for."""
    return tuple(_line(graph, sources, seen, position) for position in seen)


def _line(graph: Graph, sources: dict[int, tuple[int, ...]], seen: tuple[Position, ...], position: Position) -> str:
    who = f"{graph.actors[position.actor].name} (pid {position.pid})"
    if not position.reachable:
        return f"{who} does not answer" if position.pid else f"{graph.actors[position.actor].name} has not come up"
    where = f": {position.stack[-1]}" if position.stack else ""
    if position.outside:
        return f"{who} is in {position.outside}, for {show_duration(position.seconds)}{where}"
    if position.task is not None:
        name, iteration = graph.tasks[position.task].name, position.iteration
        return f"{who} is in {name}, iteration {iteration}, for {show_duration(position.seconds)}{where}"
    if position.upcoming is None:
        return f"{who} has no task"
    waits = [
        f"{graph.tasks[source].name} on {graph.actors[graph.tasks[source].actor].name}"
        for source in sources.get(position.upcoming, ())
        if not _has_ended(graph, seen[graph.tasks[source].actor], source, position.iteration)
    ]
    upcoming = f"{graph.tasks[position.upcoming].name}, iteration {position.iteration}"
    return f"{who} waits to run {upcoming}" + (f", for {' and '.join(waits)}" if waits else ", for its input")


def _has_ended(graph: Graph, position: Position, task: int, iteration: int) -> bool:
    """Whether the actor at ``position`` has ended ``task`` of ``iteration``."""
    at = position.task if position.task is not None else position.upcoming
    if at is None or not position.reachable:
        return False
    order = graph.actors[position.actor].tasks
    ended = position.iteration + (order.index(task) < order.index(at))
    return ended > iteration
