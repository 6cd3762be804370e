"""Findings as text with excerpt and caret, as JSON, and as GitHub annotations: functions of findings alone."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence

from cgspec.diagnostics import Finding, Place, Related, finding_data
from cgspec.views.taming import printable

_COLOURS = {"error": "31", "warning": "33", "note": "36"}
_WIDEST = 160
"""Characters of a line that are shown around the caret."""
_LONG_WORD = re.compile(r"\S{300,}")


def text(findings: Sequence[Finding], *, colour: bool = False) -> str:
    """Every finding with its place, excerpt, reason and fix, and a count at the end."""
    blocks = [_block(finding, _Paint(colour)) for finding in findings]
    return "\n".join([*blocks, _count(findings)]) if blocks else ""


def as_json(findings: Sequence[Finding], *, colour: bool = False) -> str:
    """``{"findings": [..]}``; the shape is stable."""
    return json.dumps({"findings": [finding_data(finding) for finding in findings]}, indent=2, ensure_ascii=False)


def github(findings: Sequence[Finding], *, colour: bool = False) -> str:
    """A workflow command for each finding, which GitHub shows as an annotation at the line."""
    return "\n".join(_annotation(finding) for finding in findings)


FORMATS: dict[str, Callable[..., str]] = {"text": text, "json": as_json, "github": github}


class _Paint:
    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.colour else text


def _block(finding: Finding, paint: _Paint) -> str:
    colour = _COLOURS[finding.severity]
    where = f"{printable(str(finding.place))}: " if finding.place is not None else ""
    head = f"{paint(where, '1')}{paint(finding.severity, colour)}: {_shown(finding.message)} [{finding.code}]"
    lines = [head, *_excerpt(finding.place, paint, colour)]
    lines += [f"  {paint(label, '1')} {_shown(said)}" for label, said in _reasons(finding) if said]
    for item in finding.related:
        lines.append(f"  {paint('see:', '1')} {_related(item)}")
    return "\n".join(lines) + "\n"


def _reasons(finding: Finding) -> list[tuple[str, str]]:
    return [("why:", finding.why), ("fix:", finding.fix)]


def _related(item: Related) -> str:
    return _shown(f"{item.place}: {item.message}" if item.place is not None else item.message)


def _shown(text: str) -> str:
    """Text for the terminal, with words that are very long cut in the middle."""
    return printable(_LONG_WORD.sub(lambda word: f"{word[0][:80]}…{word[0][-20:]}", text))


def _excerpt(place: Place | None, paint: _Paint, colour: str) -> list[str]:
    """The line with a caret under what is meant; a very long line is cut around it."""
    if place is None or not place.line or not place.excerpt.strip():
        return []
    start, end = place.column - 1, place.end_column - 1
    cut = max(0, start - _WIDEST // 2) if len(place.excerpt) > _WIDEST else 0
    shown = place.excerpt[cut : cut + _WIDEST]
    before, meant = shown[: start - cut], shown[start - cut : end - cut]
    prefix = "…" if cut else ""
    margin = f"{place.line:>5} | "
    pad = "".join(" " if character != "\t" else "\t" for character in prefix + before for _ in range(_width(character)))
    carets = "^" * max(sum(map(_width, meant)), 1)
    return [f"{margin}{prefix}{printable(shown)}", f"{' ' * len(margin)}{pad}{paint(carets, colour)}"]


def _width(character: str) -> int:
    """Columns that a character takes on a terminal."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _count(findings: Sequence[Finding]) -> str:
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("error", "warning", "note")}
    parts = [f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in counts.items() if n]
    codes = list(dict.fromkeys(finding.code for finding in findings))
    return f"{', '.join(parts)}; cgspec explain {codes[0]} tells more"


def _annotation(finding: Finding) -> str:
    """``::error file=..,line=..,col=..,endColumn=..,title=..::message``, escaped as GitHub asks."""
    level = {"error": "error", "warning": "warning", "note": "notice"}[finding.severity]
    place = finding.place
    properties = []
    if place is not None:
        properties.append(f"file={_property(place.file)}")
        if place.line:
            properties += [f"line={place.line}", f"col={place.column}", f"endColumn={place.end_column}"]
    properties.append(f"title={_property(finding.code)}")
    reasons = [f"{label} {said}" for label, said in _reasons(finding) if said]
    said = "\n".join([finding.message, *reasons])
    return f"::{level} {','.join(properties)}::{_data(said)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
