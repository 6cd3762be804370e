"""Comparing runs: nothing is found where nothing changed, the task that changed is named, other graphs are refused."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from finished import CHAIN, by_hand, copy, edit, finish, slow_down

from cgspec.comparing import cliffs_delta, compare, widening
from cgspec.errors import UsageError
from cgspec.views.compare import CAUTION, FORMATS, as_data, failing, markdown, text, verdict

BUSY = {task: (lambda draw: draw.lognormvariate(5, 0.15)) for task in ("load", "model.0", "model.1")}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return by_hand(tmp_path / "before", BUSY)


@pytest.fixture
def slower(run: Path, tmp_path: Path) -> Path:
    """A copy in which one task takes 10% longer."""
    other = copy(run, tmp_path / "after")
    slow_down(other, "model.1", 1.1)
    return other


def test_a_run_and_itself_do_not_differ(run: Path) -> None:
    compared = compare(run, run)
    assert not compared.differences and len(compared.all) == 3 + 1 + 2 * 3
    assert all(change.change == 0 and change.significant is False for change in compared.all)
    (said,) = verdict(compared)
    assert said.startswith("No difference in latency.p50 that could not be chance: the same (95%: -")


def test_a_real_run_and_itself_do_not_differ(tmp_path: Path) -> None:
    run_dir = finish(tmp_path, CHAIN).run_dir
    compared = compare(run_dir, run_dir)
    assert not compared.differences and not any(change.significant for change in compared.all)
    assert {change.task for change in compared.tasks} == {"a", "b"}


def test_the_task_that_takes_longer_is_named(run: Path, slower: Path) -> None:
    compared = compare(run, slower)
    assert [change.task for change in compared.culprits] == ["model.1"]
    assert compared.culprits[0].change == pytest.approx(0.1, abs=1e-4)
    latency = compared.run[0]
    assert latency.metric == "latency.p50" and latency.significant and latency.change > 0.02
    said = verdict(compared)
    assert said[-2].startswith("Task model.1 takes 10% longer: ") and said[-1] == CAUTION


def test_a_change_that_is_too_large_for_percent_is_told_in_times(run: Path, tmp_path: Path) -> None:
    slow = copy(run, tmp_path / "slow")
    slow_down(slow, "model.1", 40)
    said = " ".join(verdict(compare(run, slow)))
    assert "Task model.1 takes 40 times as long: " in said and re.search(r"latency.p50 is [\d.]+ times as high", said)
    assert "e+" not in text(compare(run, slow))


def test_the_other_way_round_it_takes_less(run: Path, slower: Path) -> None:
    compared = compare(slower, run)
    assert [(change.task, round(change.change, 3)) for change in compared.culprits] == [("model.1", -0.091)]
    assert "Task model.1 takes 9.09% less" in "\n".join(verdict(compared))
    assert not failing(compared, ["latency.p50:1%", "busy.p50:1%"])


def test_the_interval_of_a_change_holds_the_true_one() -> None:
    """Of 300 pairs of runs of one process, independent or not, at most 1 in 14 is called different."""
    draw = random.Random(5)
    assert _called_different(lambda: [round(draw.lognormvariate(5, 0.3) * 1e3) for _ in range(200)]) < 300 / 14
    assert _called_different(lambda: _dependent(draw, 0.7)) < 300 / 14


def _called_different(make: object) -> int:
    from cgspec.comparing import _estimate, _ratio_interval

    found = 0
    for _ in range(300):
        interval = _ratio_interval(*(_estimate(make(), 0.5, 1) for _ in range(2)))  # type: ignore[operator]
        assert interval is not None
        found += not interval[0] <= 0 <= interval[1]
    return found


def _dependent(draw: random.Random, keep: float) -> list[int]:
    """An AR(1) process: each value keeps a part of the one before."""
    value, values = 0.0, []
    for _ in range(400):
        value = keep * value + draw.gauss(0, 1)
        values.append(round(100_000 + 5_000 * value))
    return values


def test_cliffs_delta_by_hand() -> None:
    assert cliffs_delta([1, 2, 3], [1, 2, 3]) == 0
    assert cliffs_delta([1, 2], [3, 4]) == 1
    assert cliffs_delta([1, 3], [2, 2]) == 0
    assert cliffs_delta([1, 2, 3], [3]) == pytest.approx(2 / 3)  # greater than two, equal to one


def test_iterations_that_depend_on_each_other_widen_the_interval() -> None:
    assert widening([1, 9] * 50, 5) == 1.0
    assert widening([1] * 50 + [9] * 50, 5) > 5
    assert widening([5] * 100, 5) == 1.0


def test_what_differs_to_begin_with_is_said_first(run: Path, slower: Path) -> None:
    for path, rows in ((run, 64), (slower, 128)):
        spec = {"cgspec": 1, "root": str(path), "vars": {"rows": rows}, "run": {"iterations": 400}}
        (path / "spec.resolved.yaml").write_text(yaml.safe_dump(spec))
    actors = json.loads((run / "run.json").read_text())["actors"]
    actors[0]["tasks"], actors[1]["tasks"] = ["load", "model.0"], []
    edit(slower, actors=actors, rehearsal=True, machine={"host": "cluster", "gpus": ["A100"], "cpus": 2})
    compared = compare(run, slower)
    found = {each.what: (each.before, each.after) for each in compared.differences}
    assert found["rehearsal"] == ("no", "yes")
    assert found["host"] == ("laptop", "cluster") and found["GPUs"] == ("none", "A100")
    assert found["version of torch"] == ("2.13.0", "none")
    assert found["order of on-load"] == ("load", "load → model.0")
    assert found["spec: vars.rows"] == ("64", "128")
    assert not any("root" in what or "iterations" in what for what in found)
    shown = text(compared)
    assert shown.index("these differ to begin with") < shown.index("latency.p50")


def test_other_tasks_are_refused_and_named(run: Path, tmp_path: Path) -> None:
    other = by_hand(tmp_path / "other", {"load": BUSY["load"], "extra": BUSY["load"]})
    with pytest.raises(UsageError, match=r"only the first has model\.0, model\.1; only the second has extra"):
        compare(run, other)


def test_other_outputs_are_refused(run: Path, slower: Path) -> None:
    edit(run, outputs={"last": {"loss": 1}})
    edit(slower, outputs={"last": [1, 2]})
    with pytest.raises(UsageError, match="the first gives the outputs loss, the second a list of 2 outputs"):
        compare(run, slower)


def test_other_values_of_outputs_are_a_difference(run: Path, slower: Path) -> None:
    edit(run, outputs={"last": 1.5})
    edit(slower, outputs={"last": 2.5})
    assert [each.what for each in compare(run, slower).differences] == ["outputs of the last iteration"]


def test_a_run_that_measured_nothing_is_refused(run: Path, slower: Path) -> None:
    edit(slower, phases=[], status="not-able")
    with pytest.raises(UsageError, match=r"cannot be compared: it measured nothing \(it is not-able\)"):
        compare(run, slower)


def test_conditions_break_where_a_number_is_worse_by_more(run: Path, slower: Path) -> None:
    compared = compare(run, slower)
    assert failing(compared, ["latency.p50:50%", "throughput:5%", "model.0.busy.p50:0%"]) == []
    assert failing(compared, ["model.1.busy.p50: 5%"]) == ["model.1.busy.p50 is 10% higher: more than 5% worse"]
    assert failing(compared, ["busy.p50:5%"]) == ["model.1.busy.p50 is 10% higher: more than 5% worse"]
    edit(slower, phases=[{"name": "measure", "iterations": 400, "asked": 400, "throughput_per_s": 800.0}])
    assert failing(compare(run, slower), ["throughput:5%"]) == ["throughput is 20% lower: more than 5% worse"]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("latency.p50", "say a metric and a percentage, e.g. latency.p50:5%"),
        ("latency.p50:fast", "say a metric and a percentage"),
        ("latncy.p50:5%", "did you mean latency.p50"),
    ],
)
def test_conditions_that_cannot_be_read_are_refused(condition: str, message: str, run: Path) -> None:
    with pytest.raises(UsageError) as error:
        failing(compare(run, run), [condition])
    assert message.lower() in str(error.value).lower()


def test_runs_without_samples_are_compared_by_their_records(tmp_path: Path) -> None:
    run_dir = copy(Path(__file__).parent / "data" / "run-v1", tmp_path / "run")
    (run_dir / "samples.csv").unlink()
    compared = compare(run_dir, run_dir)
    assert compared.run[0].between is not None and compared.run[0].significant is False
    assert len([change for change in compared.tasks if change.metric == "busy.p50"]) == 4


def test_the_formats_hold_the_same(run: Path, slower: Path) -> None:
    compared = compare(run, slower)
    broken = failing(compared, ["busy.p50:5%"])
    data = as_data(compared, broken)
    assert set(FORMATS) == {"text", "markdown", "json"}
    assert json.loads(json.dumps(data))["failing"] == broken
    assert {change["metric"] for change in data["metrics"]} >= {"latency.p50", "throughput"}
    changed = [change for change in data["tasks"] if change["task"] == "model.1" and change["metric"] == "busy.p50"]
    assert changed[0]["significant"] and changed[0]["change"] == pytest.approx(0.1, abs=1e-4)
    shown = markdown(compared, broken)
    assert "| model.1.busy.p50 |" in shown and "Task model.1 takes 10% longer" in shown


def command(*arguments: object) -> tuple[int, str, str]:
    """Exit code and what is printed."""
    words = [sys.executable, "-m", "cgspec", "compare", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_the_command_exits_with_1_where_a_condition_is_broken(run: Path, slower: Path) -> None:
    code, out, err = command(run, slower, "--fail-if", "busy.p50:5%", "--fail-if", "latency.p99:900%", "--json")
    told = json.loads(out)
    assert (code, err, told["failing"]) == (1, "", ["model.1.busy.p50 is 10% higher: more than 5% worse"])
    code, out, err = command(run, slower, "--fail-if", "busy.p50:15%", "--format", "markdown")
    assert (code, err, out.startswith("**")) == (0, "", True)
    code, out, err = command(run, slower, "--fail-if", "latency.p5:5%")
    assert (code, out, "latency.p5 was not compared; did you mean" in err) == (2, "", True)


def test_markdown_takes_hostile_text_as_text(run: Path, slower: Path) -> None:
    edit(slower, machine={"host": "a | b <script> `x` [y](z)\n# no"})
    shown = markdown(compare(run, slower))
    assert r"a \| b \<script\> \`x\` \[y\](z) \# no" in shown


def test_the_specs_own_metrics_are_compared_as_numbers(run: Path, slower: Path) -> None:
    edit(run, metrics={"tokens_per_s": 1000.0, "loss": 0.0, "gone": 1.0})
    edit(slower, metrics={"tokens_per_s": 900.0, "loss": 0.0, "gone": None})
    compared = compare(run, slower)
    own = {change.metric: round(change.change, 3) for change in compared.run if change.own}
    assert own == {"tokens_per_s": -0.1, "loss": 0.0}
    assert failing(compared, ["tokens_per_s:5%"]) == ["tokens_per_s is 10% lower: more than 5% away"]
    assert failing(compared, ["tokens_per_s:15%", "loss:0%"]) == []
    row = next(line for line in text(compared).splitlines() if line.startswith("tokens_per_s"))
    assert row.split() == ["tokens_per_s", "1000", "900", "-10.0%", "not", "tested"]
    assert [(each.what, each.before, each.after) for each in compared.differences] == [("metric gone", "1", "no value")]


def sweep(path: Path, points: dict[int, list[float]], **more: object) -> Path:
    """A sweep of ``rows``, with the p50 (µs) of each point's repeats."""
    path.mkdir(parents=True)
    turns = [
        {
            "point": n,
            "repeat": r,
            "values": {"rows": rows},
            "run_dir": f"points/{n}/{r}",
            "status": "passed",
            "exit_code": 0,
            "p50_us": p50,
            "throughput_per_s": 1e6 / p50,
        }
        for n, (rows, repeats) in enumerate(points.items())
        for r, p50 in enumerate(repeats)
    ]
    (path / "sweep.json").write_text(json.dumps({"name": "swept", "planned": 8, "turns": turns} | more))
    return path


def test_sweeps_are_compared_point_by_point(tmp_path: Path) -> None:
    one = sweep(tmp_path / "one", {64: [100, 103, 99, 101], 128: [200, 220, 205, 190], 256: [1, 1, 1, 1]})
    two = sweep(tmp_path / "two", {64: [120, 122, 119, 121], 128: [201, 215, 195, 210], 512: [1, 1, 1, 1]})
    compared = compare(one, two)
    assert [(each.what, each.before, each.after) for each in compared.differences] == [
        ("point rows=256", "4 runs", "not run"),
        ("point rows=512", "not run", "4 runs"),
    ]
    assert [change.task for change in compared.culprits] == ["rows=64"]
    assert compared.culprits[0].change == pytest.approx(120.5 / 100.5 - 1)
    assert compared.culprits[0].between == pytest.approx((119 / 103 - 1, 122 / 99 - 1))
    assert verdict(compared) == [
        "Point rows=64 takes 19.9% longer: 101 µs → 120 µs; no other point changed by as much time."
    ]
    assert failing(compared, ["latency.p50:5%"]) == ["rows=64.latency.p50 is 19.9% higher: more than 5% worse"]
    assert "rows=128.latency.p50" in text(compared) and len(as_data(compared)["points"]) == 4


def test_the_specs_own_metrics_of_sweeps_are_compared_point_by_point(tmp_path: Path) -> None:
    """``gbps`` moves by a half; ``loss`` may be negative, so that no ratio has an interval; ``gone`` has no value."""
    dirs = [sweep(tmp_path / name, {64: [100, 100, 100, 100]}) for name in ("one", "two")]
    for path, gbps in zip(dirs, (10.0, 15.0), strict=True):
        told = json.loads((path / "sweep.json").read_text())
        for place, turn in enumerate(told["turns"]):
            turn["metrics"] = {"gbps": gbps + place / 10, "loss": -1.0 * place, "gone": None}
        (path / "sweep.json").write_text(json.dumps(told))
    compared = compare(*dirs)
    own = {change.metric: change for change in compared.tasks if change.own}
    assert list(own) == ["gbps", "loss"] and own["loss"].between is None
    assert (own["gbps"].before, own["gbps"].after) == pytest.approx((10.15, 15.15))
    assert own["gbps"].between == pytest.approx((15 / 10.3 - 1, 15.3 / 10 - 1))
    assert failing(compared, ["gbps:20%"]) == ["rows=64.gbps is 49.3% higher: more than 20% away"]
    row = next(line for line in text(compared).splitlines() if line.startswith("rows=64.gbps"))
    assert row.split()[1:3] == ["10.15", "15.15"] and row.split()[-1] == "different"


def test_too_few_repeats_tell_nothing(tmp_path: Path) -> None:
    one, two = (sweep(tmp_path / name, {64: [time] * 3}) for name, time in (("one", 100), ("two", 150)))
    assert verdict(compare(one, two)) == [
        "Too few repeats to tell a change from chance: it takes 4 of each point in both sweeps."
    ]


def test_a_sweep_and_itself_do_not_differ(tmp_path: Path) -> None:
    one = sweep(tmp_path / "one", {64: [100, 103, 99, 101]})
    assert verdict(compare(one, one)) == ["No point changed by more than its repeats differ."]


def test_sweeps_that_cannot_be_compared_are_refused(run: Path, tmp_path: Path) -> None:
    one, two = sweep(tmp_path / "one", {64: [1.0]}), sweep(tmp_path / "two", {65: [1.0]})
    with pytest.raises(UsageError, match=r"no point of .*one is one of"):
        compare(one, two)
    with pytest.raises(UsageError, match="is no sweep, and a sweep can be compared with another only"):
        compare(one, run)
