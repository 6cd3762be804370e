"""Imports torch on a thread while Ray starts, where the user's files will: the driver would only wait meanwhile.

The user's own modules are imported later, when Ray is up: they may use it.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import threading

from cgspec.graph import Graph

_IMPORTS_TORCH = re.compile(r"^\s*(?:import|from)\s+torch\b", re.MULTILINE)
LONGEST = 60.0
"""Seconds that are waited for it at the end."""


class Ahead:
    """What is imported ahead.

    Attributes:
        thread: None where nothing is.
    """

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None

    def start(self, graph: Graph, root: pathlib.Path) -> None:
        if _needs_torch(graph, root):
            self.thread = threading.Thread(target=_import_torch, name="cgspec-imports", daemon=True)
            self.thread.start()

    def wait(self) -> None:
        """Until it is there: half a module must not be met."""
        if self.thread is not None:
            self.thread.join(LONGEST)


def _needs_torch(graph: Graph, root: pathlib.Path) -> bool:
    files = {actor.class_ref.file for actor in graph.actors} - {None}
    return any(_IMPORTS_TORCH.search(_text(root / str(file))) for file in files)


def _text(file: pathlib.Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""


def _import_torch() -> None:
    with contextlib.suppress(Exception):  # whoever imports it next is told why
        import torch  # noqa: F401
