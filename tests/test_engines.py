"""Every engine gives the values that were worked out by hand; what Ray refuses works."""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Iterator

import jobs
import numpy as np
import pytest
import ray
import torch
from engines_running import one, options, run, started
from graphs import Drawing

from cgspec import raynames, running
from cgspec.engines import Phase
from cgspec.errors import TaskRaised
from cgspec.graph import Graph, Transport

COUNTER = "plain.py:Counter"
TROUBLE = "plain.py:Trouble"


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(params=["local", "compiled", "direct"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_order_on_one_actor_decides_the_result(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("p", "a.inc", {"x": "inputs.x"}).task("q", "b.dbl_inc", {"x": "p"})
    drawing.task("r", "b.inc", {"x": "inputs.x"}).task("s", "a.dbl_inc", {"x": "r"})
    # iteration 0 as in test_worker; then p: n=3+1=4, q: n=2*2+1=5, r: n=6, s: n=4*2+1=9
    assert run(drawing.graph("p", "q", "r", "s"), [[10], [10]], options(kind)) == [[11, 12, 12, 15], [14, 19, 16, 25]]


def test_every_way_to_hand_over_arguments(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x", "y", "unused")
    drawing.task("k", "a.keyword_only", {"a": "inputs.x"}, consts={"b": 3})
    drawing.task("p", "b.positional_only", {"c": "k", "b": "inputs.y", "a": "inputs.x"})
    drawing.task("t", "b.total", {"xs": ["inputs.x", "k", "inputs.x"]}, consts={"bias": 100})
    drawing.task("v", "a.add", ["inputs.x", "t"], consts={"scale": 2})
    assert run(drawing.graph("k", "p", "t", "v"), [[2, 5, 0]], options(kind)) == [[6, (2, 5, 6), 110, 224]]


def test_multi_returns_whole_by_return_as_list_and_of_one(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("m", "a.two", {"x": "inputs.x"}, returns=("low", "high"))
    drawing.task("l", "a.two_as_list", {"x": "m.low"}, returns=("low", "high"))
    drawing.task("o", "b.one_tuple", {"x": "l.high"}, returns=("only",))
    drawing.task("w", "b.whole", {"pair": "m"}).task("e", "b.echo", {"x": "o.only"})
    graph = drawing.graph("w", "e", "m", "o", unread=("l.low",))
    assert run(graph, [[4]], options(kind)) == [[(4, 40), 41, (4, 40), (41,)]]


def test_no_input_all_constants_and_effects(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER)
    drawing.task("c", "a.constant", consts={"k": 7}).task("n", "b.note", {"x": "c"}, returns=())
    drawing.task("s", "b.seen")
    assert run(drawing.graph("s"), [[], [], []], options(kind)) == [[7], [14], [21]]


def test_constants_beside_inputs(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("c", "b.constant", consts={"k": 7}).task("t", "a.total", {"xs": ["c", "inputs.x"]})
    assert run(drawing.graph("t"), [[1], [2]], options(kind)) == [[8], [9]]


def test_inputs_as_outputs_and_one_reference_many_times(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).input("x", "y")
    drawing.task("e", "a.echo", {"x": "inputs.x"})
    graph = drawing.graph("inputs.y", "e", ["e", "inputs.x", "e"])
    assert run(graph, [[3, "y"]], options(kind)) == [["y", 3, 3, 3, 3]]


def test_unread_members_are_awaited_and_dropped(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("d", "a.note", {"x": "inputs.x"}).task("m", "b.two", {"x": "inputs.x"}, returns=("low", "high"))
    drawing.task("s", "a.seen")
    assert run(drawing.graph("m.high", "s", unread=("d", "m.low")), [[5], [5]], options(kind)) == [[50, 5], [50, 10]]


def test_a_window_of_iterations_keeps_their_order(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("p", "a.inc", {"x": "inputs.x"}).task("q", "b.inc", {"x": "p"})
    found = []
    with started(drawing.graph("q"), options(kind, inflight=5), Phase("measure", 40)) as engine:
        for i in range(40):
            engine.submit([i])
            if i >= 4:
                found.append(engine.fetch().values[0])
        found += [engine.fetch().values[0] for _ in range(4)]
        times = engine.end().times
    assert found == [i + 2 * (i + 1) for i in range(40)]
    for task in times:
        assert (
            task.first == 0 and len(task.start) == 40 and all(a < b for a, b in zip(task.start, task.end, strict=True))
        )
    assert all(p_end <= q_start for p_end, q_start in zip(times[0].end, times[1].start, strict=True))


def test_a_task_that_raises_leaves_the_graph_usable(kind: str) -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    drawing.task("r", "a.raises", {"x": "inputs.x"}).task("i", "b.inc", {"x": "r"}).task(
        "k", "b.inc", {"x": "inputs.x"}
    )
    with started(drawing.graph("i", "k"), options(kind)) as engine:
        assert one(engine, 1) == [2, 3]
        with pytest.raises(
            TaskRaised, match=r"task r \(a\.raises\) raised in iteration 1: ValueError: negative: -5"
        ) as e:
            one(engine, -5)
        assert e.value.failure.kind == "raised" and e.value.failure.path == ("tasks", "r")
        assert "plain.py" in e.value.failure.traceback and "worker.py" not in e.value.failure.traceback
        # k ran in iteration 1 too, i did not: n is 3 before this
        assert one(engine, 2) == [6, 7]
        times = engine.end().times
    assert [len(task.start) for task in times] == [3, 3, 3] and times[1].start[1] == 0


@pytest.mark.parametrize(
    ("method", "problem", "said"),
    [
        ("odd_error", "raised", "Local: ('odd', 1, 2)"),
        ("exits", "raised", "SystemExit: 3"),
    ],
)
def test_errors_that_cannot_be_pickled_are_told(kind: str, method: str, problem: str, said: str) -> None:
    drawing = Drawing().actor("a", TROUBLE).input("x").task("t", f"a.{method}", {"x": "inputs.x"})
    with started(drawing.graph("t"), options(kind)) as engine:
        for _ in range(2):
            with pytest.raises(TaskRaised) as caught:
                one(engine, 1)
            assert caught.value.failure.kind == problem and said in caught.value.failure.message


def test_a_wrong_number_of_returns_does_not_end_the_graph(kind: str) -> None:
    drawing = Drawing().actor("a", TROUBLE).input("x")
    drawing.task("t", "a.three", {"x": "inputs.x"}, returns=("a", "b"))
    with started(drawing.graph("t"), options(kind)) as engine:
        for _ in range(2):
            with pytest.raises(TaskRaised, match="returned 3 values, and its `returns` has 2"):
                one(engine, 1)


def test_plain_calls_reach_the_object_between_phases(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER, 5).input("x").task("t", "a.inc", {"x": "inputs.x"})
    with started(drawing.graph("t"), options(kind)) as engine:
        assert one(engine, 1) == [7]
        engine.call(0, "note", {"x": 10})
        assert engine.call(0, "seen", {}) == 16
        engine.begin(Phase("again", 10))
        assert one(engine, 1) == [18] and [len(task.start) for task in engine.end().times] == [1]
        with pytest.raises(TaskRaised, match=r"call of a\.note outside the graph raised: TypeError"):
            engine.call(0, "note", {"x": None})


def test_tensors_and_arrays_arrive_and_results_are_the_callers_own(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x", "y")
    drawing.task("p", "a.echo", {"x": "inputs.x"}, transport=Transport("shm")).task("q", "b.echo", {"x": "p"})
    drawing.task("m", "b.echo", {"x": "inputs.y"}).task("n", "a.echo", {"x": "m"})
    with started(drawing.graph("q", "n"), options(kind)) as engine:
        kept = [one(engine, torch.full((3,), float(i)), np.full(1000, i)) for i in range(6)]
    for i, (tensor, array) in enumerate(kept):
        assert torch.equal(tensor, torch.full((3,), float(i)))
        assert array.flags.writeable and (array == i).all()


def test_an_actor_may_keep_an_array_that_it_was_given(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", TROUBLE).input("x")
    drawing.task("p", "a.echo", {"x": "inputs.x"}).task("k", "b.keep", {"x": "p"})
    iterations = [[{"deep": [np.full(5000, i)]}] for i in range(4)]
    assert run(drawing.graph("k"), iterations, options(kind)) == [[1], [2], [3], [4]]


def test_payloads_larger_than_the_buffer_arrive(kind: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("p", "a.echo", {"x": "inputs.x"}).task("q", "b.echo", {"x": "p"})
    given = options(kind, engine={"buffer": 10_000}, inflight=2)
    with started(drawing.graph("q"), given) as engine:
        for size in (10, 1000, 500_000, 10):
            (found,) = one(engine, np.arange(size))
            assert isinstance(found, np.ndarray) and found.shape == (size,) and found[-1] == size - 1


def test_the_environment_of_an_actor_is_set(kind: str) -> None:
    drawing = Drawing().actor("a", "plain.py:Environment", env={"CGSPEC_TEST": "7", "FLAG": True})
    drawing.input("x").task("t", "a.get", {"name": "inputs.x"})
    assert run(drawing.graph("t"), [["CGSPEC_TEST"], ["FLAG"]], options(kind)) == [["7"], ["1"]]
    assert "CGSPEC_TEST" not in os.environ


def test_logs_hold_everything_that_an_actors_process_writes(tmp_path: pathlib.Path) -> None:
    drawing = Drawing().actor("a.0", COUNTER).input("x").task("t", "a.0.say", {"x": "inputs.x"})
    assert run(drawing.graph("t"), [[1], [2]], options(log_dir=tmp_path / "logs")) == [[1], [2]]
    text = (tmp_path / "logs" / "a.0.log").read_text()
    assert text.count("from a child") == 2
    assert [line for line in text.splitlines() if "said" in line or "complained" in line] == [
        "said 1", "complained 1", "said 2", "complained 2",
    ]  # fmt: skip


def test_compile_options_reach_ray_and_the_drivers_context_is_put_back() -> None:
    from ray.dag import DAGContext

    before = (DAGContext.get_current().buffer_size_bytes, DAGContext.get_current().teardown_timeout)
    drawing = Drawing().actor("a", "plain.py:Environment").input("x").task("t", "a.buffer", {"x": "inputs.x"})
    given = options(engine={"buffer": 123_456, "max_inflight": 3, "max_buffered": 7})
    with started(drawing.graph("t"), given) as engine:
        assert one(engine, 1) == [123_456] and engine.call(0, "torch_is_loaded", {}) is False
        compiled = engine.compiled  # type: ignore[attr-defined]
        assert (compiled._max_inflight_executions, compiled._max_buffered_results) == (3, 7)
        assert DAGContext.get_current().buffer_size_bytes == 123_456
    assert (DAGContext.get_current().buffer_size_bytes, DAGContext.get_current().teardown_timeout) == before


def test_live_actors_take_over_another_graph(kind: str, tmp_path: pathlib.Path) -> None:
    def graph(method: str, start: int = 5) -> Graph:
        drawing = Drawing().actor("a", COUNTER, start).actor("b", COUNTER).input("x")
        return drawing.task("t", f"a.{method}", {"x": "inputs.x"}).task("u", "b.echo", {"x": "t"}).graph("u")

    with started(graph("inc"), options(kind, engine={"buffer": 10_000}, log_dir=tmp_path / "1")) as engine:
        assert one(engine, 1) == [7]
        (big,) = one(engine, np.zeros(100_000))  # outgrows its channels
        assert big[0] == 7.0
        engine.end()
        assert not engine.renew(graph("say", start=6), options(kind))
        assert engine.renew(graph("say"), options(kind, log_dir=tmp_path / "2"))
        engine.compile()
        engine.begin(Phase("measure", 5))
        assert one(engine, 1) == [1] and engine.call(0, "seen", {}) == 7 and len(engine.end().times[0].start) == 1
        assert engine.renew(graph("inc"), options(kind), fresh=True)
        engine.compile()
        engine.begin(Phase("measure", 5))
        assert one(engine, 1) == [7]
        with pytest.raises(TaskRaised, match="TypeError"):
            one(engine, "text")
        assert one(engine, 1) == [9]
    if kind == "compiled":
        assert "said 1" in (tmp_path / "2" / "a.log").read_text()


def test_setup_is_called_before_each_phase_and_duration_ends_the_measured_one(
    kind: str, tmp_path: pathlib.Path
) -> None:
    setup = [{"call": "only.reset", "with": {"total": 100}, "at": "phase"}]
    settings = {"iterations": 10**6, "warmup": 3, "duration": "100ms"}
    result = running.run(jobs.job(jobs.one("add", 1), tmp_path, engine=kind, setup=setup, run=settings))
    warmup, measure = result.record.phases
    assert (result.status, warmup.iterations) == ("passed", 3) and 1 <= measure.iterations < 10**6
    assert (result.first, result.last) == (101, 100 + measure.iterations)


def test_a_declared_payload_is_the_buffer() -> None:
    from dataclasses import replace

    from cgspec.graph import Payload

    drawing = Drawing().actor("a", "plain.py:Environment").input("x").task("t", "a.buffer", {"x": "inputs.x"})
    drawing.tasks[0] = replace(drawing.tasks[0], payload=Payload(5_000_000))
    assert run(drawing.graph("t"), [[1]], options()) == [[5_065_536]]


def test_an_input_that_cannot_be_sent_is_named_and_the_graph_goes_on() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x", "y").task("t", "a.add", ["inputs.x", "inputs.y"])
    with started(drawing.graph("t"), options()) as engine:
        assert one(engine, 1, 2) == [3]
        with pytest.raises(TaskRaised, match=r"input y of iteration 1 cannot be sent to the actors: TypeError") as e:
            one(engine, 1, threading.Lock())
        assert e.value.failure.path == ("inputs", "y")
        assert one(engine, 2, 2) == [4]


def test_the_private_names_that_need_a_running_ray() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x").task("t", "a.echo", {"x": "inputs.x"})
    with started(drawing.graph("t"), options()) as engine:
        loops = raynames.loop_refs(engine.compiled)  # type: ignore[attr-defined]
        assert list(loops) == engine.actors.handles  # type: ignore[attr-defined]
        assert (raynames.session_folder() / "logs").is_dir()


def test_startup_is_told_by_step_and_memory_by_actor() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x").task("t", "a.pid", {"x": "inputs.x"})
    with started(drawing.graph("t"), options()) as engine:
        assert one(engine, 1) != [os.getpid()]
        assert set(engine.startup) == {"import", "ray", "place", "construct", "compile", "first"}
        assert engine.nodes.keys() == {"a"} and engine.end().peaks["a"] > 10_000_000
