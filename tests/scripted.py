"""An engine whose fetch does what a test tells it; it checks the order of calls itself."""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cgspec.engines import ENGINES, Fetched, Options, Phase, PhaseData, Position, TaskTimes
from cgspec.errors import RunError
from cgspec.graph import Graph


@dataclass
class Scripted:
    """An engine whose fetch does what it is told; it checks the order of calls itself."""

    graph: Graph
    options: Options
    fetching: Callable[[Scripted, int], object] = lambda engine, number: None
    during: Callable[[str], None] = lambda step: None
    startup: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    fused: tuple[tuple[int, ...], ...] = ()
    kind: str = "scripted"
    log: list[str] = field(default_factory=list)
    pending: deque[object] = field(default_factory=deque)
    most: int = 0
    number: int = 0
    phases: list[Phase] = field(default_factory=list)

    def _step(self, name: str) -> None:
        self.log.append(name)
        self.during(name)

    def place(self) -> None:
        self._step("place")

    def compile(self) -> None:
        self._step("compile")

    def call(self, actor: int, method: str, kwargs: Mapping[str, object]) -> object:
        self._step(f"call {actor} {method} {dict(kwargs)}")
        return None

    def begin(self, phase: Phase) -> None:
        assert not self.pending
        self.phases.append(phase)
        self.number = 0
        self._step(f"begin {phase.name}")

    def submit(self, inputs: Sequence[object]) -> None:
        self.pending.append(inputs[0])
        self.most = max(self.most, len(self.pending))
        assert len(self.pending) <= self.options.inflight

    def fetch(self) -> Fetched:
        value = self.pending.popleft()
        number, self.number = self.number, self.number + 1
        found = self.fetching(self, number)
        if isinstance(found, RunError):
            return Fetched([], time.monotonic_ns(), found)
        return Fetched([value if found is None else found] * len(self.graph.output_refs), time.monotonic_ns())

    def end(self) -> PhaseData:
        assert not self.pending
        self._step("end")
        times = TaskTimes(0, array("q"), array("q"))
        data = PhaseData(tuple(times for _ in self.graph.tasks))
        if (folder := self.phases[-1].trace_dir) is not None:
            folder.mkdir()
            (folder / "only.pt.trace.json.gz").write_bytes(b"")
            data.files.append(folder / "only.pt.trace.json.gz")
        return data

    def rescue(self) -> PhaseData:
        """By hand: each task took 1 ms in every iteration, and had begun one that was never done."""
        starts = array("q", [1 + 2_000_000 * i for i in range(self.number)])
        times = TaskTimes(0, starts, array("q", [at + 1_000_000 for at in starts]))
        return PhaseData(tuple(times for _ in self.graph.tasks))

    def where(self) -> tuple[Position, ...]:
        return ()

    def teardown(self) -> None:
        self._step("teardown")

    def late_files(self) -> list[Path]:
        return []


def scripted(monkeypatch: pytest.MonkeyPatch, **script: Any) -> list[Scripted]:
    made: list[Scripted] = []

    def make(graph: Graph, options: Options) -> Scripted:
        made.append(Scripted(graph, options, **script))
        return made[-1]

    monkeypatch.setitem(ENGINES, "local", make)
    return made
