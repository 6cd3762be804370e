"""Random valid specs expand to the same graph as by a second, naive reading of the language."""

from __future__ import annotations

import collections
import json
import pathlib
from typing import Any

import pytest
import yaml
from described import described
from hypothesis import HealthCheck, given, settings
from naive import Naive, Stuck
from random_specs import specs

from cgspec.checking import check

VECTORS = pathlib.Path(__file__).parent / "vectors"
PLAIN = [
    path for path in sorted(VECTORS.glob("*.yaml")) if not {"vars", "include"} & set(yaml.safe_load(path.read_text()))
]
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def same_as_naive(spec: dict[str, Any]) -> str:
    """Asserts that the two expansions agree; says what became of the spec."""
    checked = check(VECTORS / "random.yaml", raw=json.dumps(spec))
    codes = [finding.code for finding in checked.errors]
    try:
        expected = Naive(spec).described()
    except Stuck:
        assert codes == ["cycle"]
        return "cycle"
    assert codes == [], [finding.message for finding in checked.errors]
    assert checked.graph is not None
    found = described(checked.graph)
    for part, value in expected.items():
        assert found[part] == value, part
    return "graph"


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(specs())
def test_a_random_spec_expands_as_the_naive_reading_says(spec: dict[str, Any]) -> None:
    same_as_naive(spec)


@pytest.mark.soak
@settings(max_examples=4000, deadline=None, suppress_health_check=SLOW)
@given(specs())
def test_many_random_specs_expand_as_the_naive_reading_says(spec: dict[str, Any]) -> None:
    same_as_naive(spec)


def test_the_random_specs_use_the_whole_language() -> None:
    """What is never drawn is never compared."""
    seen: collections.Counter[str] = collections.Counter()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(specs())
    def look(spec: dict[str, Any]) -> None:
        text = json.dumps(spec)
        words = (
            "$at",
            "$all",
            "$prev",
            "$next",
            "$expr",
            "slot",
            "returns",
            "members",
            "allreduce",
            "allgather",
            ".*",
            ".-1",
        )
        seen.update(word for word in words if word in text)
        seen.update([same_as_naive(spec)])

    look()
    assert all(
        seen[word] >= 5 for word in ("$at", "$all", "$prev", "$next", "$expr", "slot", "returns", "members", ".*")
    )
    assert seen["graph"] >= 50
    assert seen["cycle"] >= 3


@pytest.mark.parametrize("path", PLAIN, ids=[path.stem for path in PLAIN])
def test_the_naive_reading_agrees_with_the_vectors(path: pathlib.Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    code = (expected["error"] or {}).get("code")
    if code == "cycle":
        with pytest.raises(Stuck):
            Naive(yaml.safe_load(path.read_text())).described()
    elif code is None:
        assert Naive(yaml.safe_load(path.read_text())).described() == expected
