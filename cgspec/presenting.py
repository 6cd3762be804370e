"""What a run shows of itself at its end: the merged trace where it was profiled, and the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgspec.graph import Graph
    from cgspec.record import Record

TRACED = ("torch", "timeline")
"""Profilers whose runs get a merged trace."""


def present(run_dir: Path, record: Record, graph: Graph) -> Iterator[str]:
    """Writes the files of a saved and closed run; what cannot be made is told, one sentence each."""
    for step in (_trace, _report):
        try:
            yield from step(run_dir, record, graph)
        except Exception as error:
            yield f"the {step.__name__[1:]} could not be made: {type(error).__name__}: {error}"


def _trace(run_dir: Path, record: Record, graph: Graph) -> Iterator[str]:
    from cgspec.views import trace

    profiled = [phase for phase in record.phases if phase.name == "profile" and phase.profiled in TRACED]
    if profiled:
        merged = trace.merge(run_dir)
        profiled[0].files.insert(0, trace.MERGED)
        yield from merged.notes


def _report(run_dir: Path, record: Record, graph: Graph) -> Iterator[str]:
    from cgspec.views import report

    report.write(run_dir, graph=graph)
    yield from ()
