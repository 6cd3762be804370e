"""What ``run --update-expect`` wrote into the spec, and what it did not write, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cgspec.updating import Update


def text(updates: Sequence[Update], *, ended: bool) -> str:
    """For people: one line for each expectation that failed; whether the run came to its end."""
    if not ended:
        return "nothing was updated: the run did not come to its end"
    if not updates:
        return "nothing to update: no expectation on an output failed"
    return "\n".join(_lines(updates))


def _lines(updates: Sequence[Update]) -> Iterator[str]:
    written = sum(update.written for update in updates)
    yield f"{written} of {len(updates)} failed expectations on outputs updated"
    for update in updates:
        place = f" ({update.file}:{update.line})" if update.file else ""
        if update.written:
            yield f"  ✓ {update.what}{place}: {_one_line(update.old)} → {update.new}"
        else:
            yield f"  ✗ {update.what}{place} is as it was: {update.why}"


def _one_line(old: str) -> str:
    shown = " ".join(old.split()) or "nothing"
    return shown if len(shown) <= 60 else shown[:59] + "…"


def as_data(updates: Sequence[Update]) -> list[dict[str, Any]]:
    """The ``updates`` of ``run --json``."""
    return [
        {
            "what": update.what,
            "written": update.written,
            "file": update.file or None,
            "line": update.line,
            "new": update.new or None,
            "why": update.why or None,
        }
        for update in updates
    ]
