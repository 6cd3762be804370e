"""The graph of a finished run, from its folder: read from ``spec.resolved.yaml`` again, without running anything."""

from __future__ import annotations

from pathlib import Path

from cgspec.checking import check
from cgspec.graph import Graph

RESOLVED = "spec.resolved.yaml"


def graph_of(run_dir: Path) -> Graph | None:
    """The graph; None where the spec, or the source files that it names, no longer say one."""
    path = run_dir / RESOLVED
    return check(path, allow_import=("*",), rehearse=True).graph if path.is_file() else None
