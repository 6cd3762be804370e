"""Checks many broken specs in this process and prints what went wrong: ``fuzzing.py mutation|noise FIRST COUNT``.

Each gives findings or success: no exception, no more than a second, no more than 500 MB; and findings can be shown.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
import traceback
from typing import Any

from mutations import Case, mutation, noise

from cgspec.checking import Checked, check
from cgspec.views import diagnostics

CASES = {"mutation": mutation, "noise": noise}
SECONDS = 1.0
MEGABYTES = 500
HANG = 20
"""Seconds after which a check is given up."""


def hang(*_: object) -> None:
    raise TimeoutError(f"a check ran for more than {HANG} s")


def peak() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judged(checked: Checked) -> str | None:
    """What is wrong with an answer, or None."""
    if (checked.graph is None) != bool(checked.errors):
        return "a graph and errors, or neither"
    if any(not finding.message or finding.place is None or not finding.code for finding in checked.findings):
        return "a finding without a message, a code or a place"
    for form in diagnostics.FORMATS.values():
        if any(len(line) > 100_000 for line in form(checked.findings).splitlines()):
            return "a line of more than 100,000 characters"
    return None


def problem(case: Case) -> str | None:
    """What is wrong with the check of one case, or None."""
    before = peak()
    began = time.process_time()
    signal.alarm(HANG)
    try:
        checked = check(case.path, raw=case.raw, overrides=case.overrides, variant=case.variant)
        took = time.process_time() - began
        wrong = judged(checked)
    except Exception:
        return traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)
    if took > SECONDS:
        return f"it took {took:.2f} s"
    if peak() > MEGABYTES and peak() > before + 20:
        return f"it took {peak():.0f} MB"
    return wrong


def main(kind: str, first: int, count: int) -> None:
    signal.signal(signal.SIGALRM, hang)
    found: dict[int, str] = {}
    for number in range(first, first + count):
        print(number, file=sys.stderr)
        wrong = problem(CASES[kind](number))
        if wrong is not None:
            found[number] = wrong
    answer: dict[str, Any] = {"checked": count, "problems": found, "peak_mb": round(peak())}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
