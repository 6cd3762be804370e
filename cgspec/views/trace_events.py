"""The merged trace's own events: processes and threads, tasks, the driver's iterations, and arrows between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cgspec.record import Record
from cgspec.timeline import Rows, Segment

Event = dict[str, Any]

DRIVER = 1
"""The driver's process id; the actors' follow, in the order of the record."""
TASKS = 1
"""The thread of an actor's tasks; torch's threads follow. Perfetto keeps 0 for itself."""
DEVICE, CHANNELS = 1 << 20, (1 << 20) + 1
"""The threads of an actor's tasks by its GPU's clock, and of its channels, beyond those of torch."""
LANE = 1
"""The thread of the driver's first iteration; those beside it follow."""
INPUT = "inputs."


def process_of(actor: int) -> int:
    """The process id of an actor, by its place in the record."""
    return DRIVER + 1 + actor


def metadata(record: Record, labels: Mapping[str, str]) -> Iterator[Event]:
    """Names and order of processes and threads; ``labels`` say how an actor's torch trace was aligned."""
    yield from named(DRIVER, "driver", f"{record.name} on the {record.engine} engine", 0)
    for number, actor in enumerate(record.actors):
        about = [actor.class_, f"on {actor.node}" if actor.node else "", labels.get(actor.name, "")]
        pid = process_of(number)
        yield from named(pid, f"actor {actor.name}", ", ".join(filter(None, about)), pid)
        yield _meta("thread_name", pid, TASKS, {"name": "tasks"})
        yield _meta("thread_sort_index", pid, TASKS, {"sort_index": -1})


def named(pid: int, name: str, labels: str, place: int) -> Iterator[Event]:
    """A process's name, what is said beside it, and its place."""
    yield _meta("process_name", pid, 0, {"name": name})
    yield _meta("process_labels", pid, 0, {"labels": labels})
    yield _meta("process_sort_index", pid, 0, {"sort_index": place})


def _meta(name: str, pid: int, tid: int, args: Event) -> Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


class Recorded:
    """What the flight recorder and the driver saw, as events; ``origin`` (ns) is the moment 0."""

    def __init__(self, record: Record, edges: Sequence[tuple[str, str]], origin: int) -> None:
        self._record, self._edges, self._origin = record, edges, origin
        self._process = {task: process_of(number) for number, actor in enumerate(record.actors) for task in actor.tasks}
        self._arrows = 0
        self._named: set[int] = set()
        self._threads: set[tuple[int, int]] = set()

    def events(self, segment: Segment) -> Iterator[Event]:
        """One phase."""
        lanes = _lanes(segment.driver)
        for lane in sorted(set(lanes) - self._named):
            self._named.add(lane)
            name = "iterations" if lane == LANE else f"iterations (lane {lane - LANE + 1})"
            yield _meta("thread_name", DRIVER, lane, {"name": name})
        yield from self._iterations(segment, lanes)
        for task, rows in segment.tasks.items():
            yield from self._tasks(segment, task, rows, task)
        for task, rows in segment.device.items():
            yield from self._thread(task, DEVICE, "tasks, by the GPU's clock")
            yield from self._tasks(segment, task, rows, task, "device", DEVICE)
        for (task, operation), rows in segment.channels.items():
            yield from self._thread(task, CHANNELS, "channels")
            yield from self._tasks(segment, task, rows, f"{operation} {task}", operation, CHANNELS)
        yield from self._flows(segment, lanes)

    def _iterations(self, segment: Segment, lanes: Sequence[int]) -> Iterator[Event]:
        rows = segment.driver
        for place, lane in enumerate(lanes):
            i, start, end = rows.iteration[place], rows.start[place], rows.end[place]
            args = {"iteration": i, "phase": segment.label}
            if end:
                yield self._slice(f"iteration {i}", "iteration", DRIVER, lane, start, end, args)
            else:
                at = {"ph": "i", "s": "t", "pid": DRIVER, "tid": lane, "ts": self._us(start)}
                yield {"name": f"iteration {i} raised", "cat": "iteration", **at, "args": args}

    def _thread(self, task: str, thread: int, name: str) -> Iterator[Event]:
        """The name of a thread that only some actors have."""
        pid = self._process.get(task)
        if pid is not None and (pid, thread) not in self._threads:
            self._threads.add((pid, thread))
            yield _meta("thread_name", pid, thread, {"name": name})
            yield _meta("thread_sort_index", pid, thread, {"sort_index": 0})

    def _tasks(
        self, segment: Segment, task: str, rows: Rows, name: str, kind: str = "task", thread: int = TASKS
    ) -> Iterator[Event]:
        pid = self._process.get(task)
        known = self._record.tasks.get(task)
        line = known.line if known is not None else None
        if pid is None:
            return
        for i, start, end in zip(rows.iteration, rows.start, rows.end, strict=True):
            args = {"iteration": i, "phase": segment.label, "spec": line}
            yield self._slice(name, kind, pid, thread, start, end, args)

    def _slice(self, name: str, kind: str, pid: int, tid: int, start: int, end: int, args: Event) -> Event:
        where = {"ph": "X", "pid": pid, "tid": tid, "ts": self._us(start), "dur": (end - start) / 1e3}
        return {"name": name, "cat": kind, **where, "args": args}

    def _flows(self, segment: Segment, lanes: Sequence[int]) -> Iterator[Event]:
        sent = {i: (lanes[place], segment.driver.start[place]) for place, i in enumerate(segment.driver.iteration)}
        held = {task: rows.by_iteration() for task, rows in segment.tasks.items() if task in self._process}
        for source, target in self._edges:
            for i, (start, _) in held.get(target, {}).items():
                into = (self._process[target], TASKS, start)
                if source.startswith(INPUT) and i in sent:
                    yield from self._arrow(source, (DRIVER, *sent[i]), into)
                elif i in held.get(source, {}):
                    began, ended = held[source][i]
                    yield from self._arrow(source, (self._process[source], TASKS, max(began, ended - 1)), into)

    def _arrow(self, name: str, source: tuple[int, int, int], target: tuple[int, int, int]) -> Iterator[Event]:
        """From within the slice that gives to the start of the one that reads."""
        self._arrows += 1
        for phase, (pid, tid, at) in (("s", source), ("f", target)):
            bind = {"bp": "e"} if phase == "f" else {}
            where = {"pid": pid, "tid": tid, "ts": self._us(at), "id": self._arrows}
            yield {"ph": phase, "name": name, "cat": "edge", **where, **bind}

    def _us(self, ns: int) -> float:
        return (ns - self._origin) / 1e3


def _lanes(rows: Rows) -> list[int]:
    """A thread for each iteration, so that those of one thread do not overlap: with n in flight there are n."""
    free: list[int] = []
    lanes = []
    for start, end in zip(rows.start, rows.end, strict=True):
        lane = next((number for number, at in enumerate(free) if at <= start), len(free))
        free[lane : lane + 1] = [end or start]
        lanes.append(LANE + lane)
    return lanes
