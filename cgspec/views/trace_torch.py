"""One torch trace on its way into the merged one: its process becomes its actor's, its clock the recorder's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cgspec.alignment import Alignment, align
from cgspec.quantities import show_duration
from cgspec.streaming import Broken, TraceReader
from cgspec.timeline import Rows
from cgspec.views.trace_events import TASKS, named, process_of

Event = dict[str, Any]

GPUS = 1 << 20
"""Processes of an actor's GPUs begin here: GPU g of actor a is ``GPUS + 64 a + g``."""
FLOWS = 1 << 40
"""Torch's own arrows: those of the actor a have the ids from ``FLOWS (a + 1)`` on, below 2^53 for 8,000 actors."""


class Torch:
    """A trace and where it goes; ``look``, then ``settle``, then ``events``.

    Attributes:
        name: the actor's, or that of a process that holds several (``whole_process``), which gets a track of its own.
        notes: sentences about what could not be read.
    """

    def __init__(self, path: Path, name: str, number: int, origin: int, *, whole_process: bool = False) -> None:
        self.path, self.name, self.number, self.whole_process = path, name, number, whole_process
        self.alignment: Alignment | None = None
        self.notes: list[str] = []
        self._origin = origin
        self._first: int | None = None
        self._exact = True
        self._pids: dict[object, int] = {}
        self._tids: dict[object, int] = {}
        self._told: set[object] = set()

    def look(self, tasks: Mapping[str, Rows]) -> None:
        """Reads the ranges that are named after tasks, and finds the offset of the clock."""
        ranges: dict[str, list[tuple[int, int]]] = {}
        reader = TraceReader(self.path)
        try:
            for event in reader.events():
                if event.get("ph") != "X":
                    continue
                if self._first is None and event.get("cat") != "Trace":
                    self._first = _ns(event, reader)
                if event.get("cat") == "user_annotation" and event.get("name") in tasks:
                    start = _ns(event, reader)
                    ranges.setdefault(event["name"], []).append((start, start + round(event.get("dur", 0) * 1e3)))
        except Broken as error:
            self.notes.append(f"{self.path.name} is broken: {error}; what comes before is in the merged trace")
        self.alignment = align({name: sorted(spans) for name, spans in ranges.items()}, tasks, whole=not self.notes)

    def settle(self, shared: Sequence[Alignment], began: int) -> None:
        """Without a task in it, the trace takes the offset of another, or begins with its phase."""
        if self.alignment is None:
            self._exact = False
            guess = Alignment((self._first or 0) - began, 0)
            self.alignment = min(shared, key=lambda each: each.error, default=guess)
            whose = "of another actor" if shared else "that lets it begin with its phase"
            self.notes.append(f"{self.path.name} names no task: its clock is moved by the offset {whose}")

    def labels(self) -> str:
        """How well it is aligned."""
        if self.alignment is None or not self._exact:
            return "torch clock not aligned by tasks"
        return f"torch clock aligned to ±{show_duration(self.alignment.error / 1e9)}"

    def events(self) -> Iterator[Event]:
        """The trace's events as those of its actor; the profiler's own bookkeeping is left out."""
        assert self.alignment is not None
        if self.whole_process:
            yield from named(process_of(self.number), f"process {self.name}: all actors", self.labels(), 1 << 20)
        reader = TraceReader(self.path)
        try:
            for event in reader.events():
                if (moved := self._moved(event, reader)) is not None:
                    yield moved
        except Broken:
            return  # ``look`` said it

    def _moved(self, event: Event, reader: TraceReader) -> Event | None:
        pid, kind = event.get("pid"), event.get("ph")
        if not isinstance(pid, int):
            return None
        if kind == "M":
            return self._metadata(event, pid)
        assert self.alignment is not None
        event["pid"], event["tid"] = self._process(pid), self._thread(pid, event.get("tid"))
        if "ts" in event:
            event["ts"] = (_ns(event, reader) - self.alignment.offset - self._origin) / 1e3
        if isinstance(event.get("id"), int):
            event["id"] += FLOWS * (self.number + 1)
        return event

    def _process(self, pid: int) -> int:
        return self._pids.get(pid, process_of(self.number))

    def _thread(self, pid: int, tid: object) -> int:
        """Small numbers in the order in which threads turn up; a thread's name still says its own."""
        return self._tids.setdefault((pid, tid), TASKS + 1 + len(self._tids))

    def _metadata(self, event: Event, pid: int) -> Event | None:
        """Names of threads, and of GPUs; the actor's process has a name already."""
        name, args = event.get("name"), event.get("args") or {}
        label = str(args.get("labels", ""))
        if name == "process_labels" and label.startswith("GPU"):
            self._pids[pid] = GPUS + 64 * self.number + pid % 64
            about = {"name": f"{'process' if self.whole_process else 'actor'} {self.name}: {label}"}
            return {"ph": "M", "name": "process_name", "pid": self._pids[pid], "tid": 0, "args": about}
        if name != "thread_name":
            return None
        where = {"pid": self._process(pid), "tid": self._thread(pid, event.get("tid"))}
        again, self._told = (pid, event.get("tid")) in self._told, self._told | {(pid, event.get("tid"))}
        return None if again else {"ph": "M", "name": name, **where, "args": args}


def _ns(event: Event, reader: TraceReader) -> int:
    """When an event began, in ns of Unix time; ``ts`` is in µs since ``baseTimeNanoseconds``, or since 1970."""
    return int(reader.header.get("baseTimeNanoseconds", 0)) + round(float(event.get("ts", 0)) * 1e3)
