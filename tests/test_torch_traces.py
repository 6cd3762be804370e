"""What a torch trace says of itself, and what Holistic Trace Analysis 0.5 requires of it.

That it requires it was read from its ``common/trace_file.py`` (a rank in each file, found line by line),
``common/trace_parser.py`` (metadata before ``traceEvents``; ``dur`` and ``cat`` of what is kept) and
``common/trace.py`` (iterations by ``ProfilerStep#``). Run by hand on the two traces of the quickstart, its
``TraceAnalysis`` gave the ranks 0 and 1 and ten iterations of each.
"""

from __future__ import annotations

import gzip
import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest
from finished import TORCH, finish

from cgspec.engines import Phase
from cgspec.engines.phases import finish as finish_phase
from cgspec.engines.phases import watch_job
from cgspec.graph import Graph
from cgspec.spec import ProfileSpec
from cgspec.worker import WorkerPhase

RANK = re.compile(r'"rank":\s+(\d+)')
"""As ``create_rank_to_trace_dict`` looks for it: with white space after the colon."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of seven iterations of two tasks on the local engine."""
    found = finish(tmp_path_factory.mktemp("layers"), TORCH).run_dir / "trace" / "local.pt.trace.json.gz"
    assert found.is_file()
    return found


@pytest.fixture(scope="module")
def told(trace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(trace.read_bytes()))
    return found


def test_its_head_says_actor_node_gpu_and_rank(told: dict[str, Any]) -> None:
    assert told["distributedInfo"] == {"backend": "none", "rank": 0, "world_size": 1}
    expected = {"actor": "local", "node": platform.node(), "gpu": None, "process_group": None}
    assert told["cgspec"] | {"gpu": None} == expected


def test_each_actor_is_a_rank_of_its_own() -> None:
    from graphs_by_hand import Sketch

    sketch = Sketch("three")
    tasks = [sketch.task(name, sketch.actor(f"on-{name}")) for name in "abc"]
    sketch.output("y", tasks[0])
    graph = sketch.graph()
    jobs = [watch_job(graph, Phase("profile", 1, profile=ProfileSpec(kind="torch")), n) for n in range(3)]
    assert [(job.actor, job.rank, job.world_size) for job in jobs if job] == [
        ("on-a", 0, 3),
        ("on-b", 1, 3),
        ("on-c", 2, 3),
    ]


def test_the_rank_is_found_before_the_events_by_reading_lines(trace: Path) -> None:
    lines = gzip.decompress(trace.read_bytes()).decode().splitlines()
    number, found = next((number, match) for number, line in enumerate(lines) if (match := RANK.search(line)))
    assert int(found[1]) == 0
    assert not any('"traceEvents"' in line for line in lines[: number + 1])


def test_the_name_of_the_file_is_one_that_it_opens(trace: Path) -> None:
    assert trace.name.endswith(".gz") and trace.read_bytes()[:2] == b"\x1f\x8b"


def test_events_that_it_keeps_have_name_place_and_time(told: dict[str, Any]) -> None:
    kept = [event for event in told["traceEvents"] if "dur" in event and "cat" in event and event["cat"] != "Trace"]
    assert len(kept) > 14
    for event in kept:
        assert isinstance(event["name"], str) and {"pid", "tid", "ph"} <= event.keys()
        assert isinstance(event["ts"], (int, float)) and isinstance(event["dur"], (int, float)) and event["dur"] >= 0
        assert isinstance(event.get("args", {}), dict)


def test_iterations_are_steps_and_hold_their_tasks(told: dict[str, Any]) -> None:
    found = [event for event in told["traceEvents"] if event.get("cat") == "user_annotation"]
    steps = {
        int(match[1]): (event["ts"], event["ts"] + event["dur"])
        for event in found
        if (match := re.match(r"ProfilerStep\s*#\s*(\d+)", event["name"]))
    }
    assert sorted(steps) == list(range(7))
    for name in ("up", "down"):
        starts = [event["ts"] for event in found if event["name"] == name]
        assert [sum(low <= at < high for at in starts) for low, high in steps.values()] == [1] * 7


def test_a_trace_that_is_no_json_is_said_to_be_broken(tmp_path: Path, trace: Path) -> None:
    whole = trace.read_bytes()
    for content in (whole[: len(whole) // 2], gzip.compress(b'{"traceEvents": [{'), gzip.compress(b"{}"), b"no"):
        part = WorkerPhase(times={}, peak=0, files={"a.pt.trace.json.gz": content})
        data = finish_phase(graph_of_one(), Phase("profile", 1, trace_dir=tmp_path), [part])
        assert len(data.notes) == 1 and data.notes[0].startswith("a.pt.trace.json.gz is not a whole trace: ")


def graph_of_one() -> Graph:
    from graphs_by_hand import Sketch

    sketch = Sketch("one")
    sketch.actor("a")
    return sketch.graph()
