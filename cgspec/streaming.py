"""Reads a trace of any size event by event: JSON in the Chrome trace format, plain or gzip, in constant memory.

The standard library's scanner decodes one event at a time from a window that moves over the text; no library that does
the same is as fast for many small objects.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHUNK = 2**20
"""Characters that are read at a time."""
LONGEST = 2**24
"""Characters that one event, or one value beside the events, may have."""
EVENTS = "traceEvents"

_SKIP = re.compile(r"[ \t\r\n,:]*")
_decode = json.JSONDecoder().raw_decode


class Broken(Exception):
    """The text is no trace, or ends too early; what was read before is good."""


class TraceReader:
    """One trace.

    Attributes:
        header: every key beside the events, as far as it was read; complete before the first event where the file
            says it first, as Kineto's do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self._text, self._place, self._over = "", 0, False
        self._read: Callable[[], str] = str

    def events(self) -> Iterator[dict[str, Any]]:
        """The events, in the file's order.

        Raises:
            Broken: at the place where the file is no longer a trace.
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        with gzip.open(self.path, "rb") if _is_gzip(self.path) else self.path.open("rb") as file:
            self._read = lambda: _text(file, decoder)
            yield from self._document()

    def _document(self) -> Iterator[dict[str, Any]]:
        opening = self._next()
        if opening == "[":
            self._place += 1
            yield from self._array()
            return
        self._take("{")
        while self._next() != "}":
            key = self._value()
            if key == EVENTS and self._next() == "[":
                self._place += 1
                yield from self._array()
            else:
                self.header[str(key)] = self._value()

    def _array(self) -> Iterator[dict[str, Any]]:
        while self._next() != "]":
            event = self._value()
            if isinstance(event, dict):
                yield event
        self._place += 1

    def _take(self, wanted: str) -> None:
        if self._next() != wanted:
            raise Broken("it is no JSON object")
        self._place += 1

    def _next(self) -> str:
        """The next character that means something."""
        while True:
            found = _SKIP.match(self._text, self._place)
            assert found is not None
            self._place = found.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                raise Broken("it ends too early")

    def _value(self) -> Any:
        """The next JSON value; one that may go on behind the window is read again with more of the text."""
        self._next()
        while True:
            try:
                value, end = _decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if len(self._text) - self._place > LONGEST or not self._more():
                    raise Broken(f"it ends too early, or is no JSON ({error.msg})") from None
                continue
            if end < len(self._text) or not self._more():
                self._place = end
                return value

    def _more(self) -> bool:
        if self._over:
            return False
        read = self._read()
        self._over = not read
        self._text, self._place = self._text[self._place :] + read, 0
        return not self._over


def _text(file: gzip.GzipFile | io.BufferedReader, decoder: codecs.IncrementalDecoder) -> str:
    """The next part of the text; empty at its end."""
    while True:
        try:
            data = file.read1(CHUNK)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            data = b""  # what came before is good; that it is no whole document is found out
        text = decoder.decode(data, final=not data)
        if text or not data:
            return text


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"
