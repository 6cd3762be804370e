"""Findings: what ``check`` has to say about a spec, as data; how they are shown is ``views/diagnostics``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Path = tuple[str | int, ...]
MAX_CHOICES = 200
"""Choices among which the nearest is looked for in earnest; of more than these, only like ones."""
Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file that can be shown.

    Attributes:
        file: as the user named it; ``command line`` for an override.
        line, column: from 1, in characters; ``end_column`` is exclusive and on the same line.
        excerpt: the line's text.
    """

    file: str
    line: int
    column: int
    end_column: int
    excerpt: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains a finding, e.g. where a duplicate was first."""

    message: str
    path: Path = ()
    on: Literal["key", "value"] = "value"
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with, or worth knowing about, a spec.

    Attributes:
        code: the word that ``cgspec explain`` knows.
        message: one sentence in the user's words, with both values where two things disagree.
        path: where, as keys and indices; lines are computed when the finding is shown.
        on: whether the key or the value at ``path`` is meant.
        span: characters within the scalar at ``path`` that are meant, e.g. the class in ``model.py:Stgae``.
        why: the reason, where it is not obvious (often Ray's).
        fix: what to do.
        place: filled in by ``check``.
    """

    code: str
    message: str
    path: Path = ()
    severity: Severity = "error"
    on: Literal["key", "value"] = "value"
    span: tuple[int, int] | None = None
    why: str = ""
    fix: str = ""
    related: tuple[Related, ...] = field(default=())
    place: Place | None = None


def finding_data(finding: Finding) -> dict[str, Any]:
    """One finding in the shape of ``check --format json``."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        **_place_data(finding.place),
        "path": list(finding.path),
        "why": finding.why,
        "fix": finding.fix,
        "related": [{"message": item.message, **_place_data(item.place)} for item in finding.related],
    }


def _place_data(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {"file": None, "line": None, "column": None}
    return {"file": place.file, "line": place.line or None, "column": place.column or None}


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that ``word`` was most likely meant to be, or None."""
    names = list(choices)
    if len(names) > MAX_CHOICES:
        names = [name for name in names if name[:1] == word[:1] and abs(len(name) - len(word)) < 3][:MAX_CHOICES]
    folded = {name.casefold(): name for name in reversed(names)}
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def suggest(word: str, choices: Iterable[str], *, noun: str = "it knows", most: int = 8) -> str:
    """A sentence that offers the nearest choice, or lists what there is to choose from.

    Args:
        noun: what the list is introduced with, e.g. ``actors``.
        most: how many choices are listed at the most.
    """
    names = list(choices)
    if (near := nearest(word, names)) is not None:
        return f"did you mean {near}?"
    if not names:
        return f"there are no {noun}"
    listed = ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
    return f"{noun}: {listed}"
