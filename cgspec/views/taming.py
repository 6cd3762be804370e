"""Makes any text fit for a picture: one line, printable, of bounded length, and escaped for the format it goes to."""

from __future__ import annotations

import html
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgspec.views.scene import Facts

_JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need; the others can reorder or hide text."""


def tame(text: str) -> str:
    """One printable line: line breaks become ``↵``, other control characters and lone surrogates ``\ufffd``."""
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "↵").replace("\t", " ")
    return "".join(map(_tame_character, lines))


def _tame_character(character: str) -> str:
    if character in _JOINERS:
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"):
        return "\ufffd"
    return character


def printable(text: str) -> str:
    """Lines for a terminal, without control characters: a name cannot drive it, nor turn its text around."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if _shown(c) else "·" for c in text)


def _shown(character: str) -> bool:
    return character in "\n\t" + _JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Cs")


def shorten(text: str, most: int) -> str:
    """At most ``most`` tamed characters, ``…`` in the middle: it is the end of a name that tells members apart."""
    text = tame(text)
    if len(text) <= most:
        return text
    tail = most // 3
    return text[: most - tail - 1] + "…" + text[len(text) - tail :]


def quote(text: str) -> str:
    """A quoted DOT string that Graphviz shows as the tamed text; it would expand ``\\N`` and decode ``&lt;``."""
    escaped = tame(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{escaped}"'


def quote_lines(lines: list[str]) -> str:
    """Several lines as one quoted DOT string."""
    return '"' + "\\n".join(quote(line)[1:-1] for line in lines) + '"'


def mark_up(text: str, most: int) -> str:
    """Shortened text for an HTML-like label of Graphviz, which expands ``\\N`` even there; never empty, as its grammar
    wants something in places."""
    return html.escape(shorten(text, most), quote=True).replace("\\", "\\\\") or "&#160;"


def tell_all(name: str, note: str, facts: Facts, *, most: int = 400) -> list[str]:
    """The lines of a tooltip: the name in full, then what is known."""
    head = [name or "(no name)"] + ([note] if note else [])
    return [shorten(line, most) for line in head + [f"{what}: {text}" for what, text in facts]]
