"""Every expansion vector: what a spec expands to, worked out by hand (see vectors/README.md)."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from cgspec.check import check
from cgspec.graph import Graph, Pack, Ref

VECTORS = pathlib.Path(__file__).parent / "vectors"
SPECS = sorted(VECTORS.glob("*.yaml"))


def described(graph: Graph) -> dict[str, Any]:
    """A graph in the form of the vectors."""
    names = [task.name for task in graph.tasks]

    def read(value: Ref | Pack) -> Any:
        return [one(ref) for ref in value.items] if isinstance(value, Pack) else one(value)

    def one(ref: Ref) -> str:
        ret = graph.return_name(ref)
        return graph.source_name(ref) + (f".{ret}" if ret is not None else "")

    return {
        "actors": {actor.name: [names[number] for number in actor.tasks] for actor in graph.actors},
        "bind": [names[number] for number in graph.bind],
        "edges": [
            {
                "from": graph.source_name(edge.source),
                "return": graph.return_name(edge.source),
                "to": names[edge.to],
                "arg": edge.arg,
                "list": edge.in_list,
                "crosses": edge.crosses,
            }
            for edge in graph.edges
        ],
        "outputs": {str(key): read(value) for key, value in graph.outputs},
        "groups": [
            {"task": group.family, "members": [names[number] for number in group.members]} for group in graph.groups
        ],
        "effects": [names[number] for number in graph.effects],
        "unread": [
            names[number] + (f".{(graph.tasks[number].returns or ())[ret]}" if ret is not None else "")
            for number, ret in graph.unread
        ],
        "error": None,
    }


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
