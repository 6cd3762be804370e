"""Schedules: the steps were worked out by hand."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from graphs_by_hand import Sketch, at, kinds, one_f_one_b, tp_pp

from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.views import schedule
from cgspec.views.timetable import count_steps, find_starts, idle_share


def rows(graph: Graph) -> dict[str, str]:
    """Each actor's row as text: what runs in each step, a dot where nothing does."""
    starts = find_starts(graph)
    cells = {actor.name: ["."] * count_steps(starts) for actor in graph.actors}
    for task, start in zip(graph.tasks, starts, strict=True):
        assert cells[graph.actors[task.actor].name][start] == "."
        cells[graph.actors[task.actor].name][start] = task.family[0] + "".join(
            str(i) for axis, i in task.index if axis == "mb"
        )
    return {name: " ".join(row) for name, row in cells.items()}


def test_1f1b_of_two_stages_and_three_microbatches() -> None:
    assert rows(one_f_one_b(2, 3)) == {
        "stage.0": "f0 f1 . . b0 f2 . b1 . . b2 s",
        "stage.1": ". f0 l0 b0 f1 l1 b1 f2 l2 b2 s .",
    }


def test_members_of_a_collective_start_together() -> None:
    sketch = Sketch("late")
    a, b = sketch.actor("a"), sketch.actor("b")
    early = sketch.task("early", a)
    sketch.task("first", b)
    late = sketch.task("late", b)
    sketch.output("x", sketch.allreduce("sum", [(a, at(n=0), early), (b, at(n=1), late)]))
    assert rows(sketch.graph()) == {"a": "e . s", "b": "f l s"}


def test_idle_share_counts_only_actors_that_run_something() -> None:
    sketch = Sketch("idle")
    a, b, _ = sketch.actor("a"), sketch.actor("b"), sketch.actor("unused")
    sketch.output("x", sketch.task("two", b, reads={"x": sketch.task("one", a)}))
    graph = sketch.graph()
    assert idle_share(graph, find_starts(graph)) == 0.5


def test_svg_has_a_cell_for_each_task_labelled_by_its_microbatch() -> None:
    root = ET.fromstring(schedule.render(one_f_one_b(4, 8), "svg"))
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"stage.0", "stage.3", "fwd", "forward", "bwd", "1f1b"} <= set(texts)
    assert "4 actors · 76 tasks · 31 steps · idle 39%, if every task took one step" in texts
    assert texts.count("7") == 4 + 4 + 1  # forward and backward on four stages, one loss
    titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("bwd.2.7\nbackward\nactor: stage.2\n") for title in titles)


@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG\r\n\x1a\n"), ("pdf", b"%PDF-"), ("dot", b"digraph")])
def test_other_formats(form: str, magic: bytes) -> None:
    for graph in (kinds(), tp_pp(), Sketch("nothing").graph("list")):
        assert schedule.render(graph, form).startswith(magic)
        assert schedule.render(graph, form) == schedule.render(graph, form)


def test_unknown_format_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no schedules in the format mmd"):
        schedule.render(kinds(), "mmd")
