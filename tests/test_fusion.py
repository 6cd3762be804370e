"""Fusion: which tasks become one call, worked out by hand, and that nobody but the clock can tell."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator

import pytest
import ray
from engines_running import ROOT, one, options, run, started
from graphs import Drawing

from cgspec import usercode
from cgspec.checking import check
from cgspec.engines import Phase
from cgspec.errors import TaskRaised
from cgspec.fusion import fuse, fused_tasks
from cgspec.graph import Graph, Transport
from cgspec.layout import lay_out
from cgspec.worker import Born, Job, Worker

COUNTER = "plain.py:Counter"
TROUBLE = "plain.py:Trouble"
ACCELERATOR = Transport("accelerator", "default", False, False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def chains(graph: Graph, *, transports: bool = True) -> list[list[str]]:
    layout = fuse(lay_out(graph, transports=transports, devices=False))
    return [[graph.tasks[task].name for task in chain] for chain in fused_tasks(layout)]


def two_actors() -> Drawing:
    return Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x", "y")


def test_a_chain_ends_where_another_actor_takes_over() -> None:
    drawing = two_actors()
    for number, actor in enumerate("aaabbb"):
        drawing.task(f"t{number}", f"{actor}.inc", {"x": f"t{number - 1}" if number else "inputs.x"})
    assert chains(drawing.graph("t5")) == [["t0", "t1", "t2"], ["t3", "t4", "t5"]]


def test_what_others_read_is_sent_when_it_is_there() -> None:
    """``t1`` waits for nothing but ``t0``, so ``t0`` must not wait for ``t2``."""
    drawing = two_actors().task("t0", "a.inc", {"x": "inputs.x"}).task("t1", "b.inc", {"x": "t0"})
    drawing.task("t2", "a.inc", {"x": "t0"})
    assert chains(drawing.graph("t1", "t2")) == []


def test_what_the_driver_reads_is_sent_when_it_is_there() -> None:
    drawing = two_actors().task("t0", "a.inc", {"x": "inputs.x"}).task("t1", "a.inc", {"x": "t0"})
    assert chains(drawing.graph("t0", "t1")) == []


def test_what_comes_from_elsewhere_is_waited_for_by_the_first_only() -> None:
    """``t2`` reads ``b``: were it chained, ``t1`` would wait for ``b`` as well."""
    drawing = two_actors().task("t0", "b.inc", {"x": "inputs.x"}).task("t1", "a.inc", {"x": "inputs.y"})
    drawing.task("t2", "a.add", ["t1", "t0"])
    assert chains(drawing.graph("t2")) == []


def test_an_input_that_the_first_reads_may_be_read_again() -> None:
    drawing = two_actors().task("t0", "a.inc", {"x": "inputs.x"}).task("t1", "a.add", ["t0", "inputs.x"])
    assert chains(drawing.graph("t1")) == [["t0", "t1"]]


def test_a_task_with_nothing_to_read_starts_a_chain_and_joins_none() -> None:
    """It waits for the driver's trigger."""
    drawing = two_actors().task("t0", "a.inc", {"x": "inputs.x"}).task("k", "a.constant", consts={"k": 1})
    drawing.task("t2", "a.add", ["t0", "k"])
    assert chains(drawing.graph("t2")) == [["k", "t2"]]


def test_a_collective_ends_a_chain() -> None:
    drawing = two_actors().task("t0", "a.inc", {"x": "inputs.x"}).task("t1", "a.inc", {"x": "t0"})
    drawing.task("u", "b.inc", {"x": "inputs.x"}).collective("sum", "allreduce", ["t1", "u"])
    drawing.task("v0", "a.inc", {"x": "sum.0"}).task("v1", "a.inc", {"x": "v0"})
    assert chains(drawing.graph("v1", "sum.1")) == [["t0", "t1"], ["v0", "v1"]]


def test_an_effect_is_awaited_when_it_is_done() -> None:
    drawing = two_actors().task("t0", "a.note", {"x": "inputs.x"}, returns=()).task("t1", "a.inc", {"x": "inputs.x"})
    assert chains(drawing.graph("t1")) == []


def test_what_is_read_behind_a_chain_does_not_travel_by_its_transport() -> None:
    """``t0`` is read behind ``t1`` too: of one call, both results would go by accelerator."""
    drawing = Drawing().actor("a", COUNTER, num_gpus=1).actor("b", COUNTER, num_gpus=1).input("x")
    drawing.task("t0", "a.inc", {"x": "inputs.x"}).task("t1", "a.inc", {"x": "t0"}, transport=ACCELERATOR)
    drawing.task("u", "b.inc", {"x": "t1"}).task("t2", "a.inc", {"x": "t0"})
    graph = drawing.graph("u", "t2")
    assert chains(graph) == []
    assert chains(graph, transports=False) == [["t0", "t1"]]


def test_a_chain_keeps_the_transport_of_its_last_task() -> None:
    drawing = Drawing().actor("a", COUNTER, num_gpus=1).actor("b", COUNTER, num_gpus=1).input("x")
    drawing.task("t0", "a.inc", {"x": "inputs.x"}).task("t1", "a.inc", {"x": "t0"}, transport=ACCELERATOR)
    graph = drawing.task("u", "b.inc", {"x": "t1"}).graph("u")
    layout = fuse(lay_out(graph, transports=True, devices=False))
    assert [(bind.task, bind.ports, bind.transport) for bind in layout.binds] == [(1, 1, ACCELERATOR), (2, 1, None)]


def test_a_result_goes_when_its_last_reader_has_run() -> None:
    """A chain of forty must not hold forty activations."""
    drawing = Drawing().actor("a", "fused.py:Holder").input("x")
    for number in range(4):
        drawing.task(f"t{number}", "a.make", {"x": f"t{number - 1}" if number else "inputs.x"})
    graph = drawing.task("end", "a.alive", {"x": "t3"}).graph("end")
    layout = fuse(lay_out(graph, transports=False, devices=False))
    usercode.install(ROOT)
    worker = Worker()
    assert isinstance(worker.construct(Job(str(ROOT), graph.actors[0], layout.steps[0], "cpu")), Born)
    (bind,) = layout.binds
    made: list[weakref.ref[object]] = worker.call("made", {})  # type: ignore[assignment]
    assert worker.run(bind.step, 0) == 1
    gc.collect()
    assert [ref() for ref in made] == [None] * 4


def long_chain() -> Graph:
    """Twenty tasks on ``a``, then twenty on ``b``."""
    drawing = two_actors()
    for number in range(40):
        source = f"t{number - 1}" if number else "inputs.x"
        drawing.task(f"t{number}", f"{'ab'[number // 20]}.inc", {"x": source})
    return drawing.graph("t39")


@pytest.mark.parametrize("fused", [True, False])
def test_the_recorder_still_knows_each_task(fused: bool, cluster: None) -> None:
    """The object counts its calls, so the result depends on their number: twice 1 + ... + 20 = 420 at first."""
    graph = long_chain()
    with started(graph, options(engine={"fuse": fused}), Phase("measure", 3)) as engine:
        assert [len(chain) for chain in engine.fused] == ([20, 20] if fused else [])
        assert [one(engine, 0, 0) for _ in range(3)] == [[420], [1220], [2020]]
        times = engine.end().times
    assert [len(task.start) for task in times] == [3] * 40
    for i in range(3):
        moments = [moment for task in times for moment in (task.start[i], task.end[i])]
        assert moments == sorted(moments)


def test_a_failure_in_a_chain_names_its_task_and_the_graph_goes_on(cluster: None) -> None:
    drawing = Drawing().actor("a", "fused.py:Careful").actor("b", COUNTER).input("x")
    for number, method in enumerate(["echo", "positive", "echo"]):
        drawing.task(f"t{number}", f"a.{method}", {"x": f"t{number - 1}" if number else "inputs.x"})
    graph = drawing.task("u", "b.inc", {"x": "t2"}).graph("u")
    with started(graph, options()) as engine:
        assert engine.fused == ((0, 1, 2),)
        assert one(engine, 5) == [6]
        with pytest.raises(
            TaskRaised, match=r"task t1 \(a\.positive\) raised in iteration 1: ValueError: negative: -5"
        ):
            one(engine, -5)
        assert one(engine, 5) == [7]


def test_a_wrong_number_of_returns_in_a_chain_names_its_task(cluster: None) -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    drawing.task("t0", "a.three", {"x": "inputs.x"}, returns=("p", "q"))
    graph = drawing.task("t1", "a.keep", {"x": "t0.p"}).task("u", "b.inc", {"x": "t1"}).graph("u", unread=())
    with started(graph, options()) as engine, pytest.raises(TaskRaised, match=r"task t0 .* 3 values"):
        one(engine, 1)


def test_several_results_of_a_chain_are_read_behind_it(cluster: None) -> None:
    """``a`` hands out both halves of ``t0`` and what is made of them: 1 + 10, then 100 with all of it."""
    drawing = two_actors().task("t0", "a.two", {"x": "inputs.x"}, returns=("p", "q"))
    drawing.task("t1", "a.add", ["t0.p", "t0.q"]).task("u", "b.add", ["t1"])
    drawing.task("t2", "a.add", ["t0.p", "t0.q", "u"])
    graph = drawing.graph("t2")
    assert chains(graph) == [["t0", "t1"]]
    assert run(graph, [[1, 0], [2, 0]], options()) == [[22], [44]]


def test_the_specs_that_come_along_have_nothing_to_fuse() -> None:
    """So no run of theirs is slower for it, as the README says."""
    for file in sorted((ROOT.parent.parent / "specs").glob("*.yaml")):
        graph = check(file).graph
        assert graph is not None and chains(graph, transports=False) == [] == chains(graph, transports=True), file
