"""DOT text → bytes through the Graphviz that comes in pygraphviz's wheel: no system package, no network."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

FINE_DPI = 192
"""Twice the resolution of a screen; large pictures get as much as ``MOST_PIXELS`` and ``MOST_SIDE`` allow."""

MOST_PIXELS = 12_000_000
MOST_SIDE = 16_000

_BOUNDS = re.compile(r'bb="([^"]*)"')
"""The first one is the whole picture's."""

_DATE = re.compile(rb"(?<=/CreationDate \(D:)\d{14}(?:Z|([+-]\d\d'\d\d))")
"""Cairo writes the time of day into PDFs, whatever ``SOURCE_DATE_EPOCH`` says."""

_ONE_AT_A_TIME = threading.Lock()
"""Graphviz keeps state of its own and is not safe for threads."""


def place(text: str, *, engine: str = "dot", amend: Callable[[Any], None] | None = None) -> str:
    """DOT text with the place of everything; the same text gives the same one on the same machine.

    Args:
        engine: ``dot``, or ``nop`` where the text says where every node is.
        amend: changes the placed graph, a ``pygraphviz.AGraph``.
    """
    import pygraphviz

    graph: Any = pygraphviz.AGraph
    with _ONE_AT_A_TIME, _no_chatter():
        placed = graph(string=graph(string=text).draw(format="dot", prog=engine).decode())
        if amend is not None:
            amend(placed)
        return str(placed.to_string())


def draw(text: str, form: str, *, engine: str = "nop2", dpi: float | None = None) -> bytes:
    """Renders DOT text in a format of Graphviz: ``svg``, ``png``, ``pdf``.

    Args:
        engine: ``nop2`` where the text says the place of everything, ``nop`` where it says that of nodes.
    """
    import pygraphviz

    graph: Any = pygraphviz.AGraph
    with _ONE_AT_A_TIME, _no_chatter():
        drawing = graph(string=text)
        if dpi is not None:
            drawing.graph_attr["dpi"] = f"{dpi:.2f}"
        drawn = bytes(drawing.draw(format=form, prog=engine))
    return _DATE.sub(_no_date, drawn, count=1) if form == "pdf" else drawn


def _no_date(found: re.Match[bytes]) -> bytes:
    """A fixed date of the same length, since a PDF counts its bytes."""
    return b"19700101000000" + (b"+00'00" if found[1] else b"Z")


def draw_png(text: str, *, engine: str = "nop2") -> bytes:
    """A PNG in twice a screen's resolution, or in the finest that keeps a huge picture within bounds."""
    dpi = _dpi(text if engine == "nop2" else place(text, engine=engine))
    if has_fonts():
        return draw(text, "png", engine=engine, dpi=dpi)
    return draw(_plain_letters(text), "png:gd", engine=engine, dpi=min(dpi, FINE_DPI / 2))


def _dpi(placed: str) -> float:
    found = _BOUNDS.search(placed)
    assert found is not None
    left, low, right, high = (float(number) / 72 for number in found[1].split(","))
    wide, tall = right - left + 1, high - low + 1
    return min(FINE_DPI, MOST_SIDE / max(wide, tall), math.sqrt(MOST_PIXELS / (wide * tall)))


@cache
def has_fonts() -> bool:
    """Whether this machine has a font to draw with; a bare container often has none, and Pango then draws empty boxes.

    PNGs are drawn with the letters that Graphviz brings for this case; SVGs need no font here; PDFs do.
    """
    placed = place('digraph { i [label="iiiiiiii"]; W [label="WWWWWWWW"]; }')
    narrow, wide = map(float, re.findall(r"width=([\d.]+)", placed))
    return wide > narrow


def _plain_letters(text: str) -> str:
    """DOT text in ASCII, as the built-in letters know no other."""
    plainer = text.replace("&#160;", " ").translate({0xA0: " ", 0xB7: "-", 0xD7: "x", 0x2026: "~"})
    return plainer.encode("ascii", "replace").decode("ascii")


@contextmanager
def _no_chatter() -> Iterator[None]:
    """Keeps what Graphviz, Pango and Fontconfig write to file descriptor 2 from the user's terminal."""
    try:
        saved = os.dup(2)
    except OSError:  # this process has no stderr
        yield
        return
    with tempfile.TemporaryFile() as sink:
        _flush_stderr()
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            _flush_stderr()
            os.dup2(saved, 2)
            os.close(saved)


def _flush_stderr() -> None:
    if sys.stderr is not None and not sys.stderr.closed:
        sys.stderr.flush()
