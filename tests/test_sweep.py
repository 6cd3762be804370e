"""A sweep: which points there are, in which order they run, what is kept of them, and how one goes on."""

import json
import textwrap

import pytest
from test_cli import ACTORS, cgspec

from cgspec.checking import check
from cgspec.spec import SweepSpec
from cgspec.sweeping import covering, points, turns

SWEPT = """\
    cgspec: 1
    vars: {k: 1}
    actors: {a: {class: actors.py:Counter}}
    inputs: {x: {$count: {from: $k}}}
    tasks: {t: {call: a.inc, in: {x: inputs.x}}}
    outputs: t
    run: {iterations: 4, warmup: 0}
    engine: local
    expect: [{output: t, equals: {$expr: "i + 1 + k"}}]
    sweep: {matrix: {vars.k: [1, 2], run.inflight: [1, 4]}, exclude: [{vars.k: 2, run.inflight: 4}], repeats: 2}
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "actors.py").write_text(ACTORS)
    (tmp_path / "swept.yaml").write_text(textwrap.dedent(SWEPT))
    return tmp_path / "swept.yaml"


def sweep_of(**given):
    return SweepSpec.model_validate({"matrix": {"a": [1, 2], "b": ["x", "y"]}, **given})


def test_points_are_the_matrix_row_major_without_what_is_excluded():
    found = points(sweep_of(exclude=[{"a": 2, "b": "x"}]))
    assert [point.label for point in found] == ["a=1 b=x", "a=1 b=y", "a=2 b=y"]


def test_an_exclusion_of_one_value_excludes_every_point_with_it():
    assert [point.label for point in points(sweep_of(exclude=[{"b": "x"}]))] == ["a=1 b=y", "a=2 b=y"]


def test_interleaved_repeats_are_apart_and_sequential_ones_together():
    apart = [(point.number, repeat) for point, repeat in turns(sweep_of(repeats=2))]
    together = [(point.number, repeat) for point, repeat in turns(sweep_of(repeats=2, order="sequential"))]
    assert apart == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1)]
    assert together == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]


def test_the_points_that_are_checked_hold_every_value():
    chosen = covering(SweepSpec.model_validate({"matrix": {"a": list(range(9)), "b": list(range(9))}}))
    assert len(chosen) == 17
    assert {pair for point in chosen for pair in point.choice} == {(k, n) for k in "ab" for n in range(9)}


def test_a_fault_of_one_value_is_found_by_check_at_that_value(spec):
    spec.write_text(spec.read_text().replace("[1, 4]", "[1, four]").replace("inflight: 4", "inflight: four"))
    (finding,) = check(spec).findings
    assert (finding.code, finding.place.line, finding.place.excerpt[finding.place.column - 1 :][:4]) == (
        "wrong-type", 10, "four",
    )  # fmt: skip
    assert "in the sweep, at vars.k=1 run.inflight=four" in finding.message


def test_every_point_runs_in_its_own_folder_and_the_table_has_a_row_for_each(spec):
    done = cgspec("run", spec.name, cwd=spec.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split()[:4] for line in done.stdout.splitlines() if line.startswith("vars.k")]
    assert rows == [
        ["vars.k=1", "run.inflight=1", "2", "passed"],
        ["vars.k=1", "run.inflight=4", "2", "passed"],
        ["vars.k=2", "run.inflight=1", "2", "passed"],
    ]
    folder = spec.parent / "runs" / "swept" / "latest"
    told = json.loads((folder / "sweep.json").read_text())
    for turn in told["turns"]:
        record = json.loads((folder / turn["run_dir"] / "run.json").read_text())
        assert record["status"] == "passed"
    assert len({turn["run_dir"] for turn in told["turns"]}) == 6


def test_where_of_a_sweep_is_that_of_its_last_run(spec):
    cgspec("run", spec.name, cwd=spec.parent)
    shown = cgspec("where", spec.parent / "runs" / "swept" / "latest")
    assert shown.stdout.startswith("swept is over: passed at ")


def test_the_specs_own_metrics_are_columns_of_the_table(spec):
    spec.write_text(spec.read_text() + "metrics: {last: {$expr: 'out.t * k'}}\n")
    done = cgspec("run", spec.name, cwd=spec.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert next(line.split()[-1] for line in lines if line.startswith("point")) == "last"
    assert [line.split()[-1] for line in lines if line.startswith("vars.k")] == ["5", "5", "12"]


def test_a_point_that_fails_does_not_keep_the_others_from_running(spec):
    spec.write_text(spec.read_text().replace("a.inc", "a.fail").replace("i + 1 + k", "i + k"))
    done = cgspec("run", spec.name, "--json", cwd=spec.parent)
    runs = json.loads(done.stdout)["runs"]
    assert done.returncode == 4
    assert {(turn["values"]["vars.k"], turn["status"]) for turn in runs} == {(1, "task-raised"), (2, "task-raised")}
    assert all("three is 3" in turn["faults"][0] for turn in runs)


def test_a_sweep_says_which_expectation_failed_where(spec):
    spec.write_text(spec.read_text().replace("i + 1 + k", "i + 2").replace("run.inflight: [1, 4]", "run.inflight: [4]"))
    spec.write_text(spec.read_text().replace("exclude: [{vars.k: 2, run.inflight: 4}], repeats: 2", "repeats: 1"))
    done = cgspec("run", spec.name, cwd=spec.parent)
    wrong = "output t equals (swept.yaml:9), iteration 0 (4 of 4 failed): expected 2, found 3"
    assert done.stdout.splitlines()[-1] == f"vars.k=2 run.inflight=4, run 1: {wrong}"
    assert f"{wrong}</li>" in (spec.parent / "runs" / "swept" / "latest" / "report.html").read_text()


def test_a_sweep_goes_on_where_it_was_and_only_with_the_same_spec(spec):
    cgspec("run", spec.name, cwd=spec.parent)
    folder = spec.parent / "runs" / "swept" / "latest"
    told = json.loads((folder / "sweep.json").read_text())
    kept = told["turns"][:4]
    (folder / "sweep.json").write_text(json.dumps({**told, "turns": kept}))
    again = cgspec("run", spec.name, "--resume", folder, "--json", cwd=spec.parent)
    runs = json.loads(again.stdout)["runs"]
    assert [turn["run_dir"] for turn in runs[:4]] == [turn["run_dir"] for turn in kept]
    assert len(runs) == 6
    other = cgspec("run", spec.name, "run.iterations=9", "--resume", folder, cwd=spec.parent)
    assert (other.returncode, "another spec" in other.stderr) == (2, True)


def test_what_is_no_sweep_cannot_be_resumed(spec):
    done = cgspec("run", spec.name, "--resume", spec.parent, cwd=spec.parent)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_a_fault_of_one_point_alone_is_found_before_anything_runs(spec):
    matrix = "matrix: {vars.k: [1, 2], run.inflight: [1, 4]}, exclude: [{vars.k: 2, run.inflight: 4}]"
    spread = (
        "matrix: {run.inflight: [1, 8], engine.max_inflight: [8, 4]}"  # 8 in flight of at most 4: one point of four
    )
    spec.write_text(spec.read_text().replace(matrix, spread).replace("engine: local", "engine: {kind: local}"))
    done = cgspec("run", spec.name, cwd=spec.parent)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "run.inflight is 8, and engine.max_inflight allows 4" in " ".join(done.stderr.split())
    assert not (spec.parent / "runs").exists()
