"""The run folder ``<out>/<name>/<UTC time>-<id>/``: made new, never overwritten, each file written whole or not at all.

Where the disk is full or goes away, what fails is remembered in ``trouble`` and the run goes on: what was measured is
still told at its end. Some room is kept until then, so that the record can say how the run ended.
"""

from __future__ import annotations

import os
import secrets
import unicodedata
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from cgspec.errors import Failure, NotAble

LATEST = "latest"
RESERVE, RESERVED = ".reserve", 256 * 2**10
"""A file that gives its bytes back when the disk is full."""
LONGEST = 100
"""Bytes of a folder's name that come from the spec's."""

_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})


def now() -> str:
    """The moment in UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def safe_name(name: str) -> str:
    """A name that every file system takes: letters, digits, ``.``, ``_`` and ``-``, not hidden, not too long."""
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in unicodedata.normalize("NFC", name))
    kept = kept.encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore").lstrip(".").rstrip(". ")
    if not kept.strip("_"):
        return "run"
    return f"_{kept}" if kept.split(".")[0].lower() in _RESERVED else kept


class RunFolder:
    """A run's folder.

    Args:
        out: the folder of all runs, made if it is not there.
        name: the spec's.

    Attributes:
        path: absolute.
        id: the folder's own name.
        trouble: why something could not be written, or None.

    Raises:
        NotAble: no folder can be made there.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.trouble: str | None = None
        self._open: dict[str, IO[str]] = {}
        self._closed = False
        try:
            above = Path(os.path.abspath(out)) / safe_name(name)
            above.mkdir(parents=True, exist_ok=True)
            self.path = _new_folder(above)
        except OSError as error:
            raise _cannot_write(out, error) from None
        self.id = self.path.name
        with suppress(OSError):
            (self.path / RESERVE).write_bytes(bytes(RESERVED))
        self._point_to_it(above / LATEST)

    @classmethod
    def opened(cls, path: Path) -> RunFolder:
        """A folder that is there already."""
        folder = cls.__new__(cls)
        folder.trouble, folder._open, folder._closed = None, {}, False
        folder.path, folder.id = Path(os.path.abspath(path)), path.name
        return folder

    def _point_to_it(self, latest: Path) -> None:
        """Makes ``latest`` a link to this run, or a text file with its name where links are not to be had."""
        if latest.is_dir() and not latest.is_symlink():
            return
        new = latest.with_name(f".{LATEST}-{self.id}")
        with suppress(OSError):
            try:
                new.symlink_to(self.id)
            except (OSError, NotImplementedError):
                new.write_text(self.id + "\n", encoding="utf-8")
            os.replace(new, latest)

    def write(self, name: str, text: str) -> None:
        """Writes a file whole: a reader finds the old text or the new one, never a part."""
        path = self.path / name
        try:
            _write_whole(path, text)
        except OSError as error:
            self._remember(name, error)
            if self._give_back():
                self.write(name, text)

    def append(self, name: str, text: str) -> None:
        """Adds to a file; nothing is added any more once that failed, or the folder is closed."""
        if name not in self._open:
            if self._closed or self.trouble is not None:
                return
            try:
                path = self.path / name
                self._open[name] = path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n")
            except OSError as error:
                self._remember(name, error)
                return
        try:
            self._open[name].write(text)
        except OSError as error:
            self._drop(name, error)

    def flush(self) -> None:
        """Hands everything that was added to the operating system."""
        for name, file in list(self._open.items()):
            try:
                file.flush()
            except OSError as error:
                self._drop(name, error)

    def close(self) -> None:
        """Ends the files that were added to; idempotent."""
        self.flush()
        self._give_back()
        self._closed = True
        for file in self._open.values():
            with suppress(OSError):
                file.close()
        self._open.clear()

    def _give_back(self) -> bool:
        """Gives back the room that was kept; False where there is none."""
        try:
            (self.path / RESERVE).unlink()
        except OSError:
            return False
        return True

    def _drop(self, name: str, error: OSError) -> None:
        self._remember(name, error)
        file = self._open.pop(name)
        with suppress(OSError):
            file.close()

    def _remember(self, name: str, error: OSError) -> None:
        if self.trouble is None:
            self.trouble = f"{name} in {self.path} could not be written: {error.strerror or error}"


def _write_whole(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _new_folder(above: Path) -> Path:
    while True:
        moment = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H-%M-%SZ")
        path = above / f"{moment}-{secrets.token_hex(3)}"
        with suppress(FileExistsError):
            path.mkdir()
            return path


def _cannot_write(out: Path, error: OSError) -> NotAble:
    place = error.filename if isinstance(error.filename, str) else out
    message = f"no run folder can be made in {out}: {place}: {error.strerror or error}; --out DIR chooses another"
    return NotAble(Failure("not-able", message, phase="startup"))
