"""The user's metrics: edge times on timelines worked out by hand, values, and what ``expect`` says of them."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest
import torch
from jobs import actor, fan, graph, job, one, task

from cgspec import expressions
from cgspec.analysis import Spans
from cgspec.checking import check
from cgspec.formulas import Formula, all_bytes, built_in
from cgspec.graph import Graph, InputRef, Payload, TaskRef
from cgspec.job import Job
from cgspec.readout import Readout, busy_times, edge_times
from cgspec.running import run
from cgspec.views.summary import text, to_json


def spans(first: int, *intervals: tuple[int, int]) -> Spans:
    starts, ends = zip(*intervals, strict=True)
    return Spans(first, array("q", starts), array("q", ends))


def test_an_edge_lasts_from_the_producers_end_to_the_readers_start() -> None:
    """double ends at 10 and 110, left starts at 13 and 117; same and right are not asked for."""
    held = {0: spans(0, (5, 10), (105, 110)), 1: spans(0, (5, 90), (105, 190)), 2: spans(0, (13, 20), (117, 120))}
    assert edge_times(fan(), held, "double") == [3, 7]
    assert edge_times(fan(), held, "same") == [], "right was not recorded"


def test_an_edge_is_counted_in_iterations_that_both_ends_have() -> None:
    """The producer is held from iteration 1 on, the reader from 2; in iteration 3 it was skipped."""
    held = {0: spans(1, (10, 11), (20, 22), (30, 33), (40, 44)), 2: spans(2, (25, 26), (0, 0), (50, 51))}
    assert edge_times(fan(), held, "double") == [3, 6]


def test_a_result_that_two_actors_read_has_two_edges_and_a_reader_counts_once() -> None:
    tasks = [
        task("make-it", 0, "echo", {"x": InputRef(0)}),
        task("near", 0, "echo", {"x": TaskRef(0)}),
        task("far", 1, "echo", {"x": TaskRef(0), "y": TaskRef(0)}),
        task("off", 2, "echo", {"x": TaskRef(0)}),
    ]
    made = graph({"x": 1}, [actor("a", (0, 1)), actor("b", (2,)), actor("c", (3,))], tasks, [("o", TaskRef(2))])
    held = {0: spans(0, (1, 10)), 1: spans(0, (11, 12)), 2: spans(0, (14, 15)), 3: spans(0, (19, 20))}
    assert edge_times(made, held, "make_it") == [4, 9]
    assert "edge.near.p50" not in built_in(made)


def members(payload: Payload | None = None) -> Graph:
    """part.0 and part.1 go from two actors to one."""
    tasks = [task(f"part.{n}", n, "echo", {"x": InputRef(0)}, payload=payload) for n in range(2)]
    tasks.append(task("join", 2, "echo", {"x": TaskRef(0), "y": TaskRef(1)}))
    actors = [actor("a.0", (0,)), actor("a.1", (1,)), actor("b", (2,))]
    return graph({"x": 1}, actors, tasks, [("loss-now", TaskRef(2))], "map")


def test_a_family_stands_for_all_its_members() -> None:
    held = {0: spans(0, (0, 10), (20, 32)), 1: spans(0, (1, 15)), 2: spans(0, (18, 20), (40, 41))}
    assert sorted(busy_times(members(), {0: spans(0, (1, 11), (20, 32)), 1: spans(0, (1, 15))}, "part")) == [10, 12, 14]
    assert sorted(edge_times(members(), held, "part")) == [3, 8, 8]


def test_bytes_are_those_of_everything_that_travels() -> None:
    assert all_bytes(members(Payload(100))) == 200
    assert all_bytes(members()) is None
    assert all_bytes(one("echo", 1)) is None


def value(made: Graph, said: str, outputs: list[object] | None = None, **variables: object) -> tuple[Any, list[str]]:
    held = {0: spans(0, (1, 11)), 1: spans(0, (1, 21)), 2: spans(0, (31, 61))}
    readout = Readout(made, {"latency.p50": 2e-3}, held, outputs, variables.__getitem__)
    return readout.evaluate([Formula("m", expressions.parse(said))])["m"], readout.notes


@pytest.mark.parametrize(
    "said, expected",
    [
        ("1 / latency.p50", 500.0),
        ("busy.part.max / busy.part.min", 2.0),
        ("edge.part.min", 10e-9),
        ("bytes / edge.part.min / 1e9", 20.0),
        ("bytes.part + rows", 103.0),
        ("out.loss_now * 2", 0.5),
        ("out['loss-now']", 0.25),
    ],
)
def test_values(said: str, expected: float) -> None:
    found, notes = value(members(Payload(100)), said, [torch.tensor([0.25])], rows=3)
    assert found == pytest.approx(expected) and notes == []


@pytest.mark.parametrize(
    "said, outputs, reason",
    [
        ("latency.p99", [1], "latency.p99 was not measured"),
        ("1 / (latency.p50 - 0.002)", [1], "float division by zero"),
        ("out.loss_now", [torch.ones(2)], "the output loss_now is no number, but a tensor of float32 [2]"),
        ("out.loss_now", None, "there is no last iteration with outputs"),
        ("out.loss_now", [float("nan")], "it is nan"),
        ("(1, 2)", [1], "it is no number, but a tuple"),
        ("10.0 ** 300 * 10.0 ** 300", [1], "it is inf"),
        ("bytes", [1], "no payload is declared for it"),
    ],
)
def test_a_metric_without_a_value_says_why(said: str, outputs: list[object] | None, reason: str) -> None:
    found, notes = value(members(), said, outputs)
    assert found is None
    assert notes == [f"the metric m has no value: {reason}"]


def test_outputs_that_are_a_list_are_picked_by_index() -> None:
    found, _ = value(fan(), "out[0] + out[-1]", [4, 6])
    assert found == 10


def test_metrics_are_in_the_record_the_summary_and_json_and_expected_as_plain_numbers(tmp_path: Path) -> None:
    said = {
        "twice": {"$expr": "2 * out[0]"},
        "more": {"$expr": "twice + 1"},
        "none": {"$expr": "out[7]"},
        "ways": {"$expr": "edge.double.p50 > 0 and 1"},
    }
    expect = [
        {"metric": "twice", "below": 100, "above": {"$expr": "2 * 57"}},
        {"metric": "none", "below": 1},
        {"metric": "more", "above": 116},
    ]
    result = run(job(fan(), tmp_path, run={"iterations": 30}, metrics=said, expect=expect))
    assert result.record.metrics == {"twice": 116, "more": 117, "none": None, "ways": 1}
    assert [verdict.passed for verdict in result.record.expect] == [False, True, None, True]
    failed = result.record.expect[0]
    assert (failed.what, failed.found) == ("twice below 100", "116, 16% outside the bound")
    assert to_json(result.record)["metrics"]["twice"] == 116
    told = text(result.record)
    assert "twice   116" in told and "the metric none has no value" in told


SPEC = """
cgspec: 1
vars: {rows: 256}
actors: {a: {class: "actors.py:Counter"}, b: {class: "actors.py:Counter"}}
inputs: {x: {$count: {from: 1}}}
tasks:
  send: {call: a.echo, in: {x: inputs.x}, payload: {shape: [$rows, 4], dtype: float16}}
  recv: {call: b.double, in: {x: send}}
outputs: {loss: recv}
engine: local
run: {iterations: 10, warmup: 0}
metrics:
  moved: {$expr: "bytes"}
  gbps: {$expr: "moved / edge.send.p50 / 1e9"}
  last: {$expr: "out.loss * rows"}
expect:
  - {metric: gbps, above: 0}
  - {metric: moved, below: $rows}
"""


def test_a_spec_with_metrics_checks_clean_and_runs(tmp_path: Path) -> None:
    made = job(fan(), tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC)
    checked = check(tmp_path / "spec.yaml")
    assert checked.findings == ()
    result = run(Job.of(checked, out=made.out))
    assert (result.record.metrics["moved"], result.record.metrics["last"]) == (2048, 20 * 256)
    assert [verdict.passed for verdict in result.record.expect] == [True, False]


@pytest.mark.parametrize(
    "said, codes",
    [
        ("{m: {$expr: 'late + 1'}, late: {$expr: '1'}}", ["unknown-metric-name"]),
        ("{m: {$expr: 'm + 1'}}", ["unknown-metric-name"]),
        ("{m: {$expr: 'i'}}", ["unknown-metric-name"]),
        ("{m: {$expr: 'out.lss'}}", ["unknown-metric-name"]),
        ("{throughput: {$expr: '1'}}", ["bad-name"]),
        ("{my-metric: {$expr: '1'}}", ["bad-name"]),
        ("{m: $rows}", ["wrong-type"]),
        ("{m: {$expr: 'rows +'}}", ["bad-expression"]),
        ("{m: {$expr: 5}}", []),
    ],
)
def test_what_is_wrong_with_a_metric_is_found(tmp_path: Path, said: str, codes: list[str]) -> None:
    job(fan(), tmp_path)
    head = SPEC.partition("metrics:")[0]
    (tmp_path / "spec.yaml").write_text(head + f"metrics: {said}\n")
    assert [finding.code for finding in check(tmp_path / "spec.yaml").findings] == codes
