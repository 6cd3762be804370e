"""What user code prints in this process: on the terminal as ever, and in the log of the actor that prints it.

It goes by ``sys.stdout`` and ``sys.stderr``, so what children and C code write by themselves is on the terminal alone.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Callable
from typing import IO, Any


class Prints:
    """Copies what is printed while ``actor``, the name of one, is set; to ``<actor>.log`` in ``folder``.

    ``trouble`` says why no more is copied: a full disk must not fail whoever prints.
    """

    def __init__(self) -> None:
        self.folder: pathlib.Path | None = None
        self.actor: str | None = None
        self.trouble: str | None = None
        self._opened: tuple[pathlib.Path, IO[str]] | None = None
        self._before: dict[str, tuple[Any, Any]] = {}

    def start(self) -> None:
        """Stands before both streams; does nothing where it does already."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if name not in self._before and stream is not None:
                self._before[name] = (tee := _Tee(stream, self._log), stream)
                setattr(sys, name, tee)

    def stop(self) -> None:
        """Puts the streams back, but for one that somebody else has replaced since; closes the log."""
        for name, (tee, stream) in self._before.items():
            if getattr(sys, name) is tee:
                setattr(sys, name, stream)
        self._before.clear()
        self.actor = None
        self._close()

    def _log(self, text: str) -> None:
        if self.folder is not None and self.actor is not None and self.trouble is None:
            path = self.folder / f"{self.actor}.log"
            try:
                self._open(path).write(text)
            except OSError as error:
                self.trouble = f"what is printed is not in the logs any more: {path}: {error.strerror}"

    def _open(self, path: pathlib.Path) -> IO[str]:
        """One log is open at a time: there may be more actors than a process may have files."""
        if self._opened is None or self._opened[0] != path:
            self._close()
            path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = (path, path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1))
        return self._opened[1]

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with contextlib.suppress(OSError):
                opened[1].close()


class _Tee:
    """A stream, and a copy of what is written; to everybody else, debuggers and ``input`` among them, the stream."""

    def __init__(self, stream: Any, copy: Callable[[str], None]) -> None:
        self._stream, self._copy = stream, copy

    def write(self, text: str) -> int:
        count: int = self._stream.write(text)
        self._copy(text)
        return count

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
