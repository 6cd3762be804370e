"""What actors' processes are given: process groups, names, and a new run on the same actors."""

from __future__ import annotations

import json
import pathlib
import textwrap
from collections.abc import Iterator

import pytest
import ray
from engines_running import error_of, one, options, run, started
from graphs import Drawing

from cgspec.engines import Phase

pytestmark = pytest.mark.slow

PEER = "grouped.py:Peer"


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_a_family_forms_a_process_group_of_torch_distributed() -> None:
    drawing = Drawing().input("x")
    for rank in range(2):
        drawing.actor(f"p.{rank}", PEER, process_group=True).task(f"t.{rank}", f"p.{rank}.total", {"x": "inputs.x"})
    found = run(drawing.graph("t.0", "t.1"), [[10], [20]], options())
    assert found == [[(21, 2, "0"), (21, 2, "1")], [(41, 2, "0"), (41, 2, "1")]]


def test_two_families_form_two_groups() -> None:
    drawing = Drawing().input("x")
    for name in ("p", "q"):
        drawing.actor(name, PEER, process_group=True).task(f"t{name}", f"{name}.total", {"x": "inputs.x"})
    assert run(drawing.graph("tp", "tq"), [[1]], options()) == [[(1, 1, "0"), (1, 1, "0")]]


def test_in_one_process_a_group_has_one_member() -> None:
    drawing = Drawing().input("x").actor("p.0", PEER, process_group=True).actor("p.1", PEER, process_group=True)
    drawing.task("t", "p.0.total", {"x": "inputs.x"})
    error = error_of(drawing.graph("t"), [1], options("local"))
    assert error.exit_code == 3 and "the 2 members of p form a process group" in error.failure.message


def test_options_of_actors_reach_ray() -> None:
    drawing = Drawing().input("x").actor("a", "grouped.py:Who", options={"name": "the-learner", "max_concurrency": 3})
    drawing.task("t", "a.name", {"x": "inputs.x"})
    assert run(drawing.graph("t"), [[1]], options()) == [["the-learner"]]


def test_objects_are_made_anew_while_the_graph_stays() -> None:
    drawing = Drawing().input("x").actor("a", "plain.py:Counter", 5).task("t", "a.inc", {"x": "inputs.x"})
    with started(drawing.graph("t"), options()) as engine:
        assert [one(engine, 0), one(engine, 0)] == [[6], [7]]
        engine.end()
        compiled = engine.compiled  # type: ignore[attr-defined]
        engine.reset()
        engine.begin(Phase("measure", 10))
        assert one(engine, 0) == [6] and engine.compiled is compiled  # type: ignore[attr-defined]


def test_what_a_task_returns_is_looked_at_in_its_actor() -> None:
    drawing = Drawing().input("x").actor("a", "plain.py:Counter").actor("b", "plain.py:Counter")
    drawing.task("p", "a.echo", {"x": "inputs.x"}).task("q", "b.inc", {"x": "p"})
    with started(drawing.graph("q"), options(), Phase("measure", 3, looks=(0,))) as engine:
        for x in (1.0, float("nan"), 2.0):
            one(engine, x)
        looked = engine.end().looked
    assert looked.keys() == {0} and (looked[0].looked, looked[0].failed, looked[0].iteration) == (3, 1, 1)
    assert (looked[0].first, looked[0].bad, looked[0].last) == ("", "nan", "")


def test_the_points_of_a_sweep_run_on_the_same_live_actors(tmp_path: pathlib.Path) -> None:
    from test_cli import ACTORS, cgspec

    (tmp_path / "actors.py").write_text(
        ACTORS + "\n    def pid(self, x):\n        import os\n        return os.getpid()\n"
    )
    (tmp_path / "swept.yaml").write_text(
        textwrap.dedent("""\
            cgspec: 1
            vars: {k: 1}
            actors: {a: {class: actors.py:Counter}}
            inputs: {x: {$count: {from: $k}}}
            tasks: {t: {call: a.inc, in: {x: inputs.x}}, p: {call: a.pid, in: {x: t}}}
            outputs: {n: t, pid: p}
            run: {iterations: 4, warmup: 0}
            expect: [{output: n, equals: {$expr: "i + 1 + k"}}]
            sweep: {matrix: {vars.k: [1, 2]}}
        """)
    )
    done = cgspec("run", "swept.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "runs" / "swept" / "latest"
    turns = json.loads((folder / "sweep.json").read_text())["turns"]
    records = [json.loads((folder / turn["run_dir"] / "run.json").read_text()) for turn in turns]
    assert len({record["outputs"]["last"]["pid"] for record in records}) == 1
    assert ["ray" in record["startup"] for record in records] == [True, False]
