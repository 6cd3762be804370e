"""What a run shows of itself at its end: the merged trace where it was profiled, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgspec.graph import Graph
    from cgspec.record import Record

TRACED = ("torch", "timeline")
"""Profilers whose runs get a merged trace."""

Clean = Callable[[str], str]
"""Takes secrets out of a text."""


def present(run_dir: Path, record: Record, graph: Graph, *, clean: Clean, save: Callable[[], None]) -> None:
    """Writes the files of a closed run, and notes in its record what could not be made; saves it after each."""
    for step in (_trace, _report):
        try:
            record.notes += step(run_dir, record, graph, clean)
        except Exception as error:
            record.notes.append(f"the {step.__name__[1:]} could not be made: {type(error).__name__}: {error}")
        save()


def _trace(run_dir: Path, record: Record, graph: Graph, clean: Clean) -> Iterator[str]:
    from cgspec.views import trace

    profiled = [phase for phase in record.phases if phase.name == "profile" and phase.profiled in TRACED]
    if profiled:
        merged = trace.merge(run_dir)
        profiled[0].files.insert(0, trace.MERGED)
        yield from merged.notes


def _report(run_dir: Path, record: Record, graph: Graph, clean: Clean) -> Iterator[str]:
    from cgspec.views import report

    report.write(run_dir, graph=graph, clean=clean)
    yield from ()
