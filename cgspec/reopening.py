"""The graph of a finished run, from its folder: read from ``spec.resolved.yaml`` again, without running anything."""

from __future__ import annotations

from pathlib import Path

from cgspec.checking import Checked, check
from cgspec.errors import UsageError
from cgspec.graph import Graph

RESOLVED = "spec.resolved.yaml"


def graph_of(run_dir: Path) -> Graph | None:
    """The graph; None where the spec, or the source files that it names, no longer say one."""
    checked = _read(run_dir)
    return checked.graph if checked is not None else None


def checked_of(run_dir: Path) -> Checked:
    """The spec as it was run.

    Raises:
        UsageError: the spec, or the source files that it names, no longer say a graph.
    """
    checked = _read(run_dir)
    if checked is None:
        raise UsageError(f"{run_dir} has no {RESOLVED}: name the spec too")
    if checked.graph is None:
        first = checked.errors[0].message if checked.errors else "it has no graph"
        raise UsageError(f"{run_dir / RESOLVED} cannot be drawn any more: {first}")
    return checked


def _read(run_dir: Path) -> Checked | None:
    path = run_dir / RESOLVED
    return check(path, allow_import=("*",), rehearse=True) if path.is_file() else None
