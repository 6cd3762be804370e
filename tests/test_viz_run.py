"""Pictures of runs: times, widths and marks were worked out by hand from runs that were written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from finished import CHAIN, by_hand, edit, finish
from graphs_by_hand import Sketch, at

from cgspec.cli import cli
from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.record import load
from cgspec.timeline import read_phase
from cgspec.views import picture, schedule
from cgspec.views.flows import find_flows
from cgspec.views.overlay import overlay
from cgspec.views.palette import HEATS
from cgspec.views.ran import find_ran
from cgspec.views.scene import Box, Scene

BUSY = {"load": 100, "fwd": 500, "post": 300}


def chain() -> Graph:
    sketch = Sketch("hand")
    load = sketch.task("load", sketch.actor("on-load"))
    fwd = sketch.task("fwd", sketch.actor("on-fwd"), reads={"x": load})
    sketch.output("y", sketch.task("post", sketch.actor("on-post"), reads={"x": fwd}))
    return sketch.graph()


def times(us: float) -> Mapping[str, Any]:
    return {"count": 9, **dict.fromkeys(("p50", "p95", "p99", "mean", "min", "max"), us)}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Tasks of 100, 500 and 300 µs, one after the other."""
    made = by_hand(tmp_path / "run", {name: (lambda draw, us=us: us) for name, us in BUSY.items()}, iterations=9)
    edit(
        made,
        tasks={name: {"busy_us": times(us)} for name, us in BUSY.items()},
        limits={
            "critical_path_us": 900,
            "critical_path": list(BUSY),
            "busiest_actor_us": 500,
            "busiest_actor": "on-fwd",
            "busiest_task": "fwd",
        },
    )
    return made


def drawn(run_dir: Path, graph: Graph | None = None, **settings: Any) -> Scene:
    graph, record = graph or chain(), load(run_dir)
    flows = find_flows(graph, record, read_phase(run_dir, "measure"))
    return overlay(picture.compose(graph, **settings), record, flows)


def boxes(scene: Scene) -> dict[str, Box]:
    return {box.name: box for box in scene.boxes}


def test_tasks_are_coloured_by_their_share_of_the_longest_busy_time(run_dir: Path) -> None:
    scene = drawn(run_dir)
    assert {name: box.heat for name, box in boxes(scene).items() if box.kind == "task"} == {
        "load": HEATS[1],  # 100 of 500: the second fifth begins
        "fwd": HEATS[4],
        "post": HEATS[3],
    }
    assert scene.heats == "500 µs"


def test_bottleneck_and_critical_path_are_marked_in_words_and_outlines(run_dir: Path) -> None:
    scene = drawn(run_dir)
    assert {name: set(box.marks) for name, box in boxes(scene).items() if box.kind == "task"} == {
        "load": {"critical"},
        "fwd": {"critical", "bottleneck"},
        "post": {"critical"},
    }
    assert boxes(scene)["fwd"].lines == ("takes 500 µs", "bottleneck", "on the critical path")
    assert [cluster.name for cluster in scene.clusters if cluster.bottleneck] == ["on-fwd"]
    assert sum(link.critical for link in scene.links) == 2


def test_the_task_that_failed_is_marked_and_unmeasured_ones_are_white(run_dir: Path) -> None:
    edit(run_dir, failure={"kind": "raised", "message": "no", "task": "post", "iteration": 4}, tasks={}, limits=None)
    post = boxes(drawn(run_dir))["post"]
    assert (post.marks, post.lines, post.heat) == ({"failed"}, ("failed in iteration 4",), "#ffffff")


def test_links_are_as_wide_as_results_wait(run_dir: Path) -> None:
    text = (run_dir / "timeline.csv").read_text().splitlines()
    later = [f"{p},{i},{task},{int(s) + 250_000},{int(e) + 250_000}" for p, i, task, s, e in _rows(text, "post")]
    (run_dir / "timeline.csv").write_text("\n".join([*text[:19], *later]) + "\n")
    links = {link.facts[0][1]: link for link in drawn(run_dir).links}
    assert links["load"].width == pytest.approx(1.2)
    assert links["fwd"].width == pytest.approx(1.2 + 4.8 * 0.5)  # 250 µs of the 500 that the longest task takes
    assert links["fwd"].label == "shm, 250 µs"


def _rows(lines: list[str], task: str) -> list[list[str]]:
    return [row for line in lines if (row := line.split(","))[2] == task]


def test_links_are_as_wide_as_declared_bytes(run_dir: Path) -> None:
    from cgspec.graph import Payload

    graph = chain()
    load_, fwd, post = graph.tasks
    sized = replace(graph, tasks=(replace(load_, payload=Payload(100)), replace(fwd, payload=Payload(400)), post))
    links = {link.facts[0][1]: link for link in drawn(run_dir, sized).links}
    assert links["load"].width == pytest.approx(1.2 + 4.8 / 4)
    assert links["fwd"].width == pytest.approx(6.0)
    assert links["fwd"].label == "shm 400 B"


@pytest.mark.parametrize("form", picture.FORMATS)
def test_every_format_draws_a_run(form: str, run_dir: Path) -> None:
    record = load(run_dir)
    made = picture.write(overlay(picture.compose(chain()), record), form)
    if form not in ("png", "pdf"):
        assert "takes 500" in made.decode() and "bottleneck" in made.decode()
    if form in ("svg", "dot", "html", "mmd"):
        assert HEATS[4].lower() in made.decode().lower()


def test_families_have_the_colour_of_their_slowest_member(tmp_path: Path) -> None:
    sketch = Sketch("pairs")
    ends = [sketch.task("work", sketch.actor("w", at(n=n)), index=at(n=n)) for n in range(2)]
    sketch.output("y", ends[0])
    sketch.output("z", ends[1])
    made = by_hand(tmp_path / "run", {"work.0": lambda draw: 10, "work.1": lambda draw: 100}, iterations=3)
    edit(made, tasks={"work.0": {"busy_us": times(10)}, "work.1": {"busy_us": times(100)}})
    only = next(box for box in drawn(made, sketch.graph(), collapse=True).boxes if box.kind == "task")
    assert (only.lines, only.heat) == (("takes 10 µs to 100 µs",), HEATS[4])


def test_an_iteration_is_drawn_by_time_below_the_steps(run_dir: Path) -> None:
    graph = chain()
    ran = find_ran(graph, load(run_dir), read_phase(run_dir, "measure"), 3)
    assert [ran.spans[number] for number in range(3)] == [(0, 100_000), (100_000, 600_000), (600_000, 900_000)]
    assert ran.idle_share(graph) == pytest.approx(1 - 900 / 2700)
    text = schedule.dot_text(graph, ran=ran)
    assert "iteration 3 as it ran, 900 µs, idle 67%" in text
    assert all(f" {name} [" in text for name in ("t0", "t1", "t2", "rant0", "rant1", "rant2"))


def test_an_iteration_that_was_not_recorded_is_said_to_be_missing(run_dir: Path) -> None:
    with pytest.raises(UsageError, match="no times of iteration 9: it holds 0 to 8"):
        find_ran(chain(), load(run_dir), read_phase(run_dir, "measure"), 9)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("chain"), CHAIN).run_dir


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["viz", *arguments], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def test_a_run_is_drawn_from_its_folder_alone(finished: Path) -> None:
    assert "takes " in invoke("--run", str(finished), "--ascii")
    assert invoke("--run", str(finished), "--ascii").isascii() and "\\x" not in invoke(
        "--run", str(finished), "--ascii"
    )
    assert "as it ran" in invoke("--run", str(finished), "--schedule", "-o", "-", "--format", "dot")


def test_a_page_of_a_run_has_times_spec_lines_and_signatures(finished: Path) -> None:
    page = invoke("--run", str(finished), "-o", "-", "--format", "html")
    assert "busy p95" in page and "forward(self, x" in page and "spec.resolved.yaml:" in page


def test_viz_wants_a_spec_or_a_run() -> None:
    done = CliRunner().invoke(cli, ["viz"])
    assert isinstance(done.exception, UsageError) and "--run DIR" in str(done.exception)


def test_a_run_draws_itself_in_a_notebook(finished: Path) -> None:
    import cgspec

    drawn = cgspec.open_run(finished)._repr_svg_()
    assert drawn is not None and "takes " in drawn and drawn.rstrip().endswith("</svg>")


def test_a_run_whose_code_is_gone_shows_the_picture_of_its_day(tmp_path: Path) -> None:
    result = finish(tmp_path, CHAIN)
    (tmp_path / "model.py").unlink()
    assert result._repr_svg_() == (result.run_dir / "graph.svg").read_text()


def test_a_png_that_is_too_small_to_read_says_which_formats_stay_sharp(tmp_path: Path) -> None:
    spec = str(Path(__file__).parent.parent / "specs" / "1f1b.yaml")
    for form, said in (("png", True), ("dot", False)):
        words = ["viz", spec, "vars.mb=70", "--expand", "-o", str(tmp_path / f"made.{form}")]
        done = CliRunner().invoke(cli, words, standalone_mode=False)
        assert done.exception is None and ("SVG, PDF and HTML stay sharp" in done.stderr) is said
