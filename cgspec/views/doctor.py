"""What ``doctor`` found, as text and JSON, and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cgspec.doctor import Check

SIGNS = {"good": "✓", "note": "-", "bad": "✗"}
NOT_ABLE = 3


def text(checks: Sequence[Check]) -> str:
    """For people, by topic."""
    return "\n".join(_lines(checks))


def _lines(checks: Sequence[Check]) -> Iterator[str]:
    width = max((len(check.what) for check in checks), default=0)
    for topic in dict.fromkeys(check.topic for check in checks):
        yield topic
        for check in checks:
            if check.topic == topic:
                yield f"  {SIGNS[check.status]} {check.what:{width}}  {check.found}"
                if check.fix:
                    yield f"    {'':{width}}  → {check.fix}"
    bad = [check.what for check in checks if check.status == "bad"]
    yield ""
    yield f"to be mended: {', '.join(bad)}" if bad else "nothing keeps cgspec from running here"


def as_data(checks: Sequence[Check]) -> dict[str, Any]:
    """For programs."""
    return {"able": exit_code(checks) == 0, "checks": [asdict(check) for check in checks]}


def exit_code(checks: Sequence[Check]) -> int:
    """3 where something keeps runs from working, else 0."""
    return NOT_ABLE if any(check.status == "bad" for check in checks) else 0
