"""Which results go by Ray Direct Transport, by which library, and what ``plan`` says of it."""

from __future__ import annotations

import json
import pathlib

import pytest

from cgspec.checking import check
from cgspec.routes import routes_of
from cgspec.views import plan

CASES = pathlib.Path(__file__).parent / "cases"


def spec(transport: str, gpus: tuple[float, float], engine: str = "direct") -> dict[str, object]:
    """``t`` on ``a`` is read by ``u`` on ``b``, by ``v`` on its own actor and by the driver."""
    return {
        "cgspec": 1,
        "actors": {
            name: {"class": "actors.py:Counter", "num_gpus": count} for name, count in zip("ab", gpus, strict=True)
        },
        "inputs": {"x": 1},
        "tasks": {
            "t": {"call": "a.inc", "in": {"x": "inputs.x"}, "transport": transport},
            "u": {"call": "b.echo", "in": {"value": "t"}},
            "v": {"call": "a.echo", "in": {"value": "t"}},
        },
        "outputs": ["t", "u", "v"],
        "engine": {"kind": engine},
    }


@pytest.mark.parametrize(
    ("transport", "gpus", "route", "rehearsed"),
    [
        ("accelerator", (1, 1), "nccl", "gloo"),
        ("nccl", (1, 1), "nccl", "gloo"),
        ("accelerator", (0, 0), "gloo", "gloo"),
        ("auto", (1, 1), "nccl", "gloo"),
        ("auto", (1, 0), None, None),
        ("auto", (0, 0), None, None),
        ("auto", (0.5, 0.5), None, None),
        ("shm", (1, 1), None, None),
    ],
)
def test_the_library_follows_transport_and_gpus(
    transport: str, gpus: tuple[float, float], route: str | None, rehearsed: str | None
) -> None:
    checked = check(CASES / "x.yaml", raw=json.dumps(spec(transport, gpus)))
    assert checked.graph is not None and not checked.findings
    assert routes_of(checked.graph, rehearse=False).get(0) == route
    assert routes_of(checked.graph, rehearse=True).get(0) == rehearsed
    assert not {1, 2} & routes_of(checked.graph, rehearse=True).keys()


@pytest.mark.parametrize(
    ("engine", "gpus", "ways", "buffers"),
    [
        ("compiled", (1, 1), ["host", "accelerator", "local"], "buffers: 4 channels, 1 in flight, "),
        ("direct", (1, 1), ["host", "nccl", "local"], "buffers: none, each task is a call of its own"),
        ("direct", (0, 0), ["host", "gloo", "local"], "buffers: none, each task is a call of its own"),
        ("local", (0, 0), ["local", "local", "local"], "buffers: none, everything stays in this process"),
    ],
)
def test_the_plan_says_how_each_engine_sends(
    engine: str, gpus: tuple[float, float], ways: list[str], buffers: str
) -> None:
    checked = check(CASES / "x.yaml", raw=json.dumps(spec("accelerator", gpus, engine)))
    assert checked.graph is not None and checked.spec is not None
    assert [edge["transport"] for edge in plan.as_data(checked.graph, checked.spec)["edges"]] == ways
    text = plan.text(checked.graph, checked.spec)
    assert text.splitlines()[-1].startswith(buffers)
    assert f"t → u(value)  {ways[1]}" in text


def test_the_plan_says_what_the_object_store_carries() -> None:
    checked = check(CASES / "x.yaml", raw=json.dumps(spec("shm", (0, 0))))
    assert checked.graph is not None and checked.spec is not None
    edges = plan.as_data(checked.graph, checked.spec)["edges"]
    assert [(edge["to"], edge["transport"]) for edge in edges] == [("t", "host"), ("u", "store"), ("v", "local")]
