"""Every expansion vector: what a spec expands to, worked out by hand (see vectors/README.md)."""

from __future__ import annotations

import json
import pathlib

import pytest
from described import described

from cgspec.checking import check

VECTORS = pathlib.Path(__file__).parent / "vectors"
SPECS = sorted(VECTORS.glob("*.yaml"))


@pytest.mark.parametrize("spec", SPECS, ids=[spec.stem for spec in SPECS])
def test_a_vector_expands_as_worked_out_by_hand(spec: pathlib.Path) -> None:
    expected = json.loads(spec.with_suffix(".json").read_text())
    checked = check(spec)
    if expected["error"] is not None:
        assert [finding.code for finding in checked.errors] == [expected["error"]["code"]]
        assert checked.graph is None
        return
    assert checked.graph is not None, [finding.message for finding in checked.errors]
    found = described(checked.graph)
    for part, value in expected.items():
        assert found[part] == value, part


def test_every_vector_has_both_files() -> None:
    assert {spec.stem for spec in SPECS} == {answer.stem for answer in VECTORS.glob("*.json")}
    assert len(SPECS) >= 28
