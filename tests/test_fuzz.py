"""Broken specs give findings or success: never a traceback, never more than a second, never more than 500 MB.

The same numbers give the same specs, so that a failure repeats: ``python tests/fuzzing.py mutation 1234 1``.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
from mutations import mutation, noise

FUZZING = pathlib.Path(__file__).parent / "fuzzing.py"


def fuzz(kind: str, first: int, count: int) -> None:
    """Checks the specs with some numbers in a process of their own, which a crash or a hang cannot hide in."""
    command = [sys.executable, str(FUZZING), kind, str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + count)
    last = done.stderr.strip().splitlines()[-1:] or ["none"]
    assert done.returncode == 0, f"{kind} {last[0]} ended the process with {done.returncode}: {done.stderr[-2000:]}"
    answer = json.loads(done.stdout)
    shown = "\n".join(f"{kind} {number}: {problem}" for number, problem in answer["problems"].items())
    assert not answer["problems"], shown
    assert answer["checked"] == count


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_mutated_specs_give_findings_or_success(first: int) -> None:
    fuzz("mutation", first, 500)


def test_random_bytes_give_findings_or_success() -> None:
    fuzz("noise", 0, 500)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(2000, 20_000, 2000))
def test_many_mutated_specs_give_findings_or_success(first: int) -> None:
    fuzz("mutation", first, 2000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_random_bytes_give_findings_or_success() -> None:
    fuzz("noise", 500, 4500)


def test_a_number_gives_the_same_spec_again() -> None:
    assert mutation(17) == mutation(17)
    assert noise(17) == noise(17)
    assert len({mutation(number).raw for number in range(50)}) == 50
