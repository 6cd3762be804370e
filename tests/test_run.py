"""What a run gives back, its inputs, its failures and its shape in JSON, on the local engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jobs import actor, fan, graph, job, one, samples, task

from cgspec.errors import Failure, RunError, SpecError, UsageError
from cgspec.graph import InputRef, Pack, TaskRef
from cgspec.record import load
from cgspec.running import run
from cgspec.views.summary import error_json, next_command, text, to_json


def test_a_run_on_the_local_engine_passes_and_leaves_its_folder(tmp_path: Path) -> None:
    expect = [{"output": 0, "equals": {"$expr": "2 * i"}}, {"output": 1, "equals_input": "x"}]
    result = run(job(fan(), tmp_path, run={"iterations": 30, "warmup": 4, "inflight": 3}, expect=expect))
    assert (result.status, result.exit_code, result.error) == ("passed", 0, None)
    assert (result.first, result.last) == ([0, 0], [58, 29])
    assert [(phase.name, phase.iterations) for phase in result.record.phases] == [("warmup", 4), ("measure", 30)]
    assert [(verdict.passed, verdict.looked) for verdict in result.record.expect] == [(True, 30), (True, 30)]
    rows = samples(result)
    assert [(row["phase"], row["iteration"]) for row in rows] == [
        *(("warmup", str(n)) for n in range(4)),
        *(("measure", str(n)) for n in range(30)),
    ]
    assert all(int(row["latency_ns"]) > 0 for row in rows)
    assert load(result.run_dir).status == "passed"


@pytest.mark.parametrize(
    "outputs, form, expected",
    [
        ([("left", TaskRef(2))], "single", 2),
        ([(0, TaskRef(2)), (1, InputRef(0))], "list", [2, 1]),
        ([("a", TaskRef(3)), ("b", TaskRef(2))], "map", {"a": 1, "b": 2}),
        (
            [("all", Pack((TaskRef(2), TaskRef(3), TaskRef(2)))), ("one", TaskRef(3))],
            "map",
            {"all": [2, 1, 2], "one": 1},
        ),
        ([(0, Pack(()))], "list", [[]]),
    ],
)
def test_outputs_come_in_the_form_of_the_spec(tmp_path: Path, outputs: Any, form: str, expected: object) -> None:
    made = replace(fan(x=1), outputs=tuple(outputs), output_form=form)  # type: ignore[arg-type]
    assert run(job(made, tmp_path, run={"iterations": 2, "warmup": 0})).last == expected


def test_json_has_exactly_the_promised_shape(tmp_path: Path) -> None:
    data = to_json(run(job(fan(), tmp_path, run={"iterations": 2}, expect=[{"output": 0, "equals": 0}])).record)
    assert ",".join(data) == (
        "run_dir,status,rehearsal,engine,fused,phases,startup,first_result_s,outputs,expect,limits,tasks,metrics,failure,findings"
    )
    assert list(data["phases"][1]) == ["name", "iterations", "latency_us", "throughput_per_s", "profiled"]
    assert list(data["phases"][1]["latency_us"]) == ["p50", "p95", "p99", "mean", "min", "max"]
    assert data["outputs"] == {"first": [0, 0], "last": [2, 1]}
    (expectation,) = data["expect"]
    assert expectation == {
        "what": "output 0 equals",
        "passed": False,
        "expected": "0",
        "found": "2",
        "iteration": 1,
    }
    assert list(data["limits"]) == ["critical_path_us", "busiest_actor_us"]
    assert list(data["tasks"]["left"]["busy_us"]) == ["p50", "p95", "p99", "mean", "min", "max"]
    assert data["failure"] is None
    json.dumps(data, allow_nan=False)


def test_json_of_a_failure_and_of_an_early_error_have_the_same_shape(tmp_path: Path) -> None:
    failed = to_json(run(job(one("fail_at", 1, {"at": 1}), tmp_path)).record)
    early = [
        error_json(SpecError((), "text")),
        error_json(UsageError("no such thing")),
        error_json(RunError(Failure("x", "y"))),
    ]
    for data in early:
        assert list(data) == list(failed)
    assert list(failed["failure"]) == list(early[1]["failure"]) == list(early[2]["failure"])
    assert (early[0]["status"], early[0]["run_dir"], early[1]["failure"]["message"]) == (
        "invalid",
        None,
        "no such thing",
    )


def test_a_value_that_uses_the_iteration_is_made_anew_and_any_other_once(tmp_path: Path) -> None:
    made = fan(x={"$call": "actors.py:batch", "args": {"n": {"$expr": "i"}}})
    result = run(job(made, tmp_path, run={"iterations": 5, "warmup": 2}))
    assert result.last == [[4, 16, 4, 16], [4, 16]]
    counted = fan(x={"$call": "actors.py:batch", "args": {"n": 3}})
    assert run(job(counted, tmp_path, run={"iterations": 5})).last == [[3, 9, 3, 9], [3, 9]]


@pytest.mark.parametrize("inflight", [1, 4])
def test_feedback_gives_the_output_of_lag_iterations_ago(tmp_path: Path, inflight: int) -> None:
    """x_i = 2 x_(i-4) from 1: after 12 iterations three doublings have gone in, and the output doubles once more."""
    made = one("double", {"$feedback": "work", "lag": 4, "first": 1})
    expect = [{"output": "work", "equals": {"$expr": "2 ** (i // 4 + 1)"}}]
    settings = {"iterations": 12, "warmup": 5, "inflight": inflight}
    result = run(job(made, tmp_path, run=settings, expect=expect))
    assert (result.status, result.last) == ("passed", 8)


def test_an_input_that_cannot_be_made_ends_the_run_after_those_that_could(tmp_path: Path) -> None:
    for inflight in (1, 2):
        result = run(job(one("echo", {"$values": [1, 2, 3]}), tmp_path, run={"warmup": 0, "inflight": inflight}))
        failure = result.record.failure
        assert failure is not None
        assert (failure.kind, failure.iteration, failure.phase) == ("input", 3, "measure")
        assert "the input x cannot be made for iteration 3: $values has 3 values" in failure.message
        assert (failure.file, failure.line, failure.column) == ("small.yaml", 10, 5)
        assert (result.status, result.exit_code) == ("invalid", 1)
        assert (result.record.phases[0].iterations, result.last) == (3, 3)


def test_a_users_function_that_raises_is_told_with_its_own_lines(tmp_path: Path) -> None:
    made = one("echo", {"$call": "actors.py:broken", "args": {"n": {"$expr": "i"}}})
    result = run(job(made, tmp_path))
    failure = result.record.failure
    assert failure is not None
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert failure.message == "making the input x for iteration 0 raised RuntimeError: no data"
    assert 'raise RuntimeError("no data")' in failure.traceback and "cgspec/" not in failure.traceback


def test_a_task_that_raises_ends_the_run_with_everything_that_is_known(tmp_path: Path) -> None:
    result = run(job(one("fail_at", {"$expr": "i"}, {"at": 7}), tmp_path, run={"warmup": 0, "inflight": 3}))
    failure = result.record.failure
    assert failure is not None
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert (failure.kind, failure.task, failure.iteration, failure.phase) == ("raised", "work", 7, "measure")
    assert (failure.actor, failure.file, failure.line) == ("only", "small.yaml", 20)
    assert 'raise ValueError(f"no {x} please")' in failure.traceback
    assert "small.yaml:20:5, task work, iteration 7 of measure" in text(result.record)
    assert "--only 7 --engine local" in text(result.record)
    rows = samples(result)
    assert [row["latency_ns"] == "" for row in rows] == [n == 7 for n in range(len(rows))]
    assert len(rows) >= 8
    saved = json.loads((result.run_dir / "failed-inputs.json").read_text())
    assert saved == {"phase": "measure", "iteration": 7, "inputs": {"x": 7}}


def test_what_to_do_next_keeps_the_engine_that_was_asked_for(tmp_path: Path) -> None:
    made = replace(job(one("echo", 1), tmp_path), overrides={"engine.kind": "local", "run.iterations": "3"})
    assert str(next_command(run(made).record)).endswith("--engine local --profile torch")


def test_on_error_continue_counts_what_raised_and_goes_on(tmp_path: Path) -> None:
    settings = {"iterations": 20, "warmup": 6, "on_error": "continue", "inflight": 2}
    expect = [{"output": "work", "equals": {"$expr": "i"}}]
    result = run(job(one("fail_at", {"$expr": "i"}, {"at": [5, 9, 19]}), tmp_path, run=settings, expect=expect))
    warmup, measure = result.record.phases
    assert (warmup.iterations, warmup.errors, measure.iterations, measure.errors) == (6, 1, 20, 3)
    assert measure.latency_us is not None and measure.latency_us.count == 17
    assert (result.status, result.exit_code, result.last) == ("task-raised", 4, 18)
    assert [(verdict.passed, verdict.looked) for verdict in result.record.expect] == [(True, 17)]


def test_a_failure_while_starting_is_told(tmp_path: Path) -> None:
    made = one("echo", 1)
    broken = replace(made, actors=(replace(made.actors[0], kwargs={"nonsense": made.inputs[0].value}),))
    result = run(job(broken, tmp_path, expect=[{"output": "work", "equals": 1}]))
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert result.record.failure is not None and result.record.failure.phase == "startup"
    assert [verdict.passed for verdict in result.record.expect] == [None]
    assert result.record.phases == []


def test_only_runs_the_one_iteration_with_its_own_number(tmp_path: Path) -> None:
    made = replace(job(one("fail_at", {"$expr": "i"}, {"at": 7}), tmp_path, profile="torch"), only=7)
    result = run(made)
    assert result.record.failure is not None
    assert (result.record.failure.iteration, len(result.record.phases)) == (7, 1)
    assert "in iteration 7" in result.record.failure.message
    fine = run(replace(made, only=6))
    assert (fine.status, fine.last, samples(fine)[0]["iteration"]) == ("passed", 6, "6")


def test_duration_ends_the_measure_phase_only(tmp_path: Path) -> None:
    settings = {"iterations": 10_000, "warmup": 5, "duration": "200ms", "inflight": 2}
    result = run(job(one("nap", 1, {"seconds": 0.02}), tmp_path, run=settings))
    warmup, measure = result.record.phases
    assert (warmup.iterations, result.status) == (5, "passed")
    assert 5 <= measure.iterations <= 12 and measure.asked == 10_000


def test_one_iteration_is_run_however_short_the_duration(tmp_path: Path) -> None:
    settings = {"iterations": 10**9, "warmup": 0, "duration": "1ns", "inflight": 4}
    result = run(job(one("echo", 1), tmp_path, run=settings))
    assert (result.status, result.last) == ("passed", 1)


def test_more_under_way_than_there_are_iterations(tmp_path: Path) -> None:
    settings = {"iterations": 2, "warmup": 1, "inflight": 64}
    assert run(job(one("echo", {"$expr": "i"}), tmp_path, run=settings)).last == 1


def test_a_users_function_that_exits_counts_as_one_that_raised(tmp_path: Path) -> None:
    result = run(job(one("echo", {"$call": "actors.py:leave", "args": {"n": 1}}), tmp_path))
    assert (result.status, result.exit_code) == ("task-raised", 4)
    assert result.record.failure is not None and "raised SystemExit: 3" in result.record.failure.message
    said = {"$call": "actors.py:leave", "args": {"n": {"$expr": "i"}}}
    judged = run(job(one("echo", 1), tmp_path, expect=[{"output": "work", "equals": said}]))
    assert (judged.status, judged.record.expect[0].failed) == ("expectation-failed", 100)


def test_setup_calls_happen_once_or_before_every_phase(tmp_path: Path) -> None:
    made = one("add", 1)
    once = [{"call": "only.reset", "with": {"total": 100}}]
    settings = {"iterations": 3, "warmup": 2}
    assert run(job(made, tmp_path, run=settings, setup=once)).last == 105
    each = [{"call": "only.reset", "with": {"total": {"$expr": "50 * 2"}}, "at": "phase"}]
    assert run(job(made, tmp_path, run=settings, setup=each)).last == 103


def test_setup_reaches_every_member_of_a_family_with_its_own_index(tmp_path: Path) -> None:
    tasks = [task(f"t.{n}", n, "add", {"x": InputRef(0)}) for n in range(3)]
    actors = [actor(f"a.{n}", (n,)) for n in range(3)]
    made = graph({"x": 0}, actors, tasks, [("t", Pack(tuple(TaskRef(n) for n in range(3))))])
    said = [{"call": "a.reset", "with": {"total": {"$expr": "10 * index.axis0 + size.axis0"}}}]
    assert run(job(made, tmp_path, setup=said)).last == [3, 13, 23]
    last = [{"call": "a.-1.reset", "with": {"total": 7}}]
    assert run(job(made, tmp_path, setup=last)).last == [0, 0, 7]


def test_reset_makes_the_users_objects_anew_between_phases_and_sets_them_up_again(tmp_path: Path) -> None:
    settings = {"iterations": 3, "warmup": 2, "reset": True}
    assert run(job(one("add", 1), tmp_path, run=settings)).last == 3
    setup = [{"call": "only.reset", "with": {"total": 100}}]
    assert run(job(one("add", 1), tmp_path, run=settings, setup=setup)).last == 103


def test_what_a_task_returns_is_looked_at_in_its_worker(tmp_path: Path) -> None:
    made = one("echo", {"$values": [1.0, 0.0, float("inf")], "cycle": True})
    expect = [{"task": "work", "finite": True, "at": at} for at in ("every", "first", "last")]
    result = run(job(made, tmp_path, run={"iterations": 5, "warmup": 1}, expect=expect))
    found = [(v.what, v.passed, v.iteration, v.looked, v.failed) for v in result.record.expect]
    assert found == [
        ("task work finite", False, 2, 5, 1),
        ("task work finite", True, 0, 1, 0),
        ("task work finite", True, 4, 1, 0),
    ]
    assert result.exit_code == 1 and result.record.expect[0].found == "work: inf"


@pytest.mark.parametrize(
    "sections, message",
    [
        ({"setup": [{"call": "onyl.reset"}]}, "there is no actor onyl; did you mean only?"),
        ({"profile": [{"kind": "torch", "actors": ["onyl"]}]}, "there is no actor onyl; did you mean only?"),
    ],
)
def test_what_a_run_cannot_do_yet_is_refused_by_name(tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(job(one("echo", 1), tmp_path, **sections))
    assert not list((tmp_path / "runs").rglob("run.json"))
