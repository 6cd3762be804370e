"""A graph as a plain Ray script, with no cgspec in it: what one would write by hand and check in.

Nothing of the user's is imported or run; his classes are read from their source, to know where Ray needs an adapter.
"""

from __future__ import annotations

from pathlib import Path

from cgspec.expectations import Read
from cgspec.graph import Graph
from cgspec.spec import Spec
from cgspec.views.export.composition import Script


def script(graph: Graph, spec: Spec, read: Read, root: Path, *, beside: Path | None = None) -> str:
    """The text of the script.

    Args:
        graph, spec: of a spec without errors.
        read: parses values that stay raw in the spec (``ValueReader.read``).
        root: the folder that class files are relative to.
        beside: the folder in which the script will lie; it then finds ``root`` from there, else by its full path.
    """
    return Script(graph, spec, read, root, beside).text()
