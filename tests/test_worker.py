"""The layout and the worker, in this process: what each step gets, hands out and says about failures."""

from __future__ import annotations

import pathlib
import time

import pytest
from graphs import Drawing
from jobs import reader

from cgspec import usercode
from cgspec.engines import ENGINES, Options, Phase
from cgspec.errors import RunError, TaskRaised
from cgspec.graph import Graph, Transport
from cgspec.invocation import Failed
from cgspec.layout import lay_out
from cgspec.profilers import WatchJob
from cgspec.spec import ClusterSpec, EngineSpec
from cgspec.steps import Call, Forward, FromInput, FromPort, Whole
from cgspec.worker import Job, Worker

ROOT = pathlib.Path(__file__).parent / "actors"
COUNTER = "plain.py:Counter"


def run_local(graph: Graph, *iterations: list[object]) -> list[list[object]]:
    engine = ENGINES["local"](graph, Options(EngineSpec(kind="local"), ClusterSpec(), 1, ROOT))
    engine.place()
    engine.compile()
    engine.begin(Phase("measure", len(iterations)))
    found = []
    for inputs in iterations:
        engine.submit(inputs)
        fetched = engine.fetch()
        if fetched.error is not None:
            raise fetched.error
        found.append(fetched.values)
    engine.end()
    engine.teardown()
    return found


def test_tasks_of_one_actor_run_in_binding_order_so_that_their_state_agrees() -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("p", "a.inc", {"x": "inputs.x"}).task("q", "b.dbl_inc", {"x": "p"})
    drawing.task("r", "b.inc", {"x": "inputs.x"}).task("s", "a.dbl_inc", {"x": "r"})
    # p: n=1, 10+1; q: n=0*2+1=1, 11+1; r: n=2, 10+2; s: n=1*2+1=3, 12+3
    assert run_local(drawing.graph("p", "q", "r", "s"), [10]) == [[11, 12, 12, 15]]


def test_references_go_to_keyword_only_positional_only_and_list_parameters() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x", "y")
    drawing.task("k", "a.keyword_only", {"a": "inputs.x"}, consts={"b": 3})
    drawing.task("p", "a.positional_only", {"c": "inputs.x", "b": "inputs.y", "a": "inputs.x"})
    drawing.task("t", "a.total", {"xs": ["inputs.x", "k", "inputs.x"]}, consts={"bias": 100})
    drawing.task("v", "a.add", ["inputs.x", "inputs.y"], consts={"scale": 2})
    assert run_local(drawing.graph("k", "p", "t", "v"), [2, 5]) == [[6, (2, 5, 2), 110, 14]]


@pytest.mark.parametrize("method", ["two", "two_as_list"])
def test_a_multi_return_is_read_by_return_and_whole_as_a_tuple(method: str) -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("m", f"a.{method}", {"x": "inputs.x"}, returns=("low", "high"))
    drawing.task("w", "b.whole", {"pair": "m"}).task("e", "b.echo", {"x": "m.high"})
    assert run_local(drawing.graph("w", "e", "m.low", "m"), [4]) == [[(4, 40), 40, 4, (4, 40)]]


def test_a_multi_return_of_one_name_is_unpacked() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x")
    drawing.task("m", "a.one_tuple", {"x": "inputs.x"}, returns=("only",))
    assert run_local(drawing.graph("m.only", "m"), [4]) == [[5, (5,)]]


def test_effects_are_run_and_tasks_of_constants_need_no_input() -> None:
    drawing = Drawing().actor("a", COUNTER)
    drawing.task("c", "a.constant", consts={"k": 7}).task("n", "a.note", {"x": "c"}, returns=())
    drawing.task("s", "a.seen")
    assert run_local(drawing.graph("s"), [], []) == [[7], [14]]


def test_an_input_can_be_an_output_and_one_reference_can_stand_twice() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x")
    drawing.task("e", "a.echo", {"x": "inputs.x"})
    assert run_local(drawing.graph("inputs.x", "e", ["e", "inputs.x", "e"]), [3]) == [[3, 3, 3, 3, 3]]


def test_unread_returns_do_not_travel_and_an_unread_task_hands_out_nothing() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x")
    drawing.task("m", "a.two", {"x": "inputs.x"}, returns=("low", "high")).task("d", "a.echo", {"x": "inputs.x"})
    layout = lay_out(drawing.graph("m.high", unread=("m.low", "d")), transports=False, devices=False)
    two, echo = layout.steps[0]
    assert isinstance(two, Call) and two.ports == (1,) and isinstance(echo, Call) and echo.ports == ()
    assert layout.reads == (FromPort(0, 0), FromPort(1, 0))


def test_a_reference_that_stands_twice_in_a_task_is_read_once() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x")
    drawing.task("t", "a.total", {"xs": ["inputs.x", "inputs.x"]})
    layout = lay_out(drawing.graph("t"), transports=True, devices=False)
    step = layout.steps[0][0]
    assert isinstance(step, Call) and step.arguments == (("xs", Whole("list", (0, 0))),)
    assert layout.binds[0].reads == (FromInput(0),)


def test_a_result_for_driver_and_accelerator_readers_is_split_in_the_worker() -> None:
    drawing = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    drawing.task("m", "a.echo", {"x": "inputs.x"}, transport=Transport("accelerator"))
    drawing.task("own", "a.echo", {"x": "m"}).task("other", "b.echo", {"x": "m"})
    layout = lay_out(drawing.graph("m", "own", "other"), transports=True, devices=True)
    carried = [bind for bind in layout.binds if bind.transport is not None]
    assert [type(layout.steps[bind.actor][bind.step]) for bind in carried] == [Forward]
    assert [type(step) for step in layout.steps[0]] == [Call, Forward, Forward, Call, Forward]
    assert len(layout.steps[1]) == 2 and layout.reads == (FromPort(2, 0), FromPort(4, 0), FromPort(6, 0))


def test_a_transport_is_not_used_where_nothing_crosses() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x")
    drawing.task("m", "a.echo", {"x": "inputs.x"}, transport=Transport("accelerator")).task("n", "a.echo", {"x": "m"})
    layout = lay_out(drawing.graph("n"), transports=True, devices=False)
    assert [bind.transport for bind in layout.binds] == [None, None]


def test_a_failure_skips_its_readers_keeps_the_count_and_shows_only_the_users_frames() -> None:
    drawing = Drawing().actor("a", "plain.py:Trouble").actor("b", COUNTER).input("x")
    drawing.task("r", "a.raises", {"x": "inputs.x"}).task("i", "b.inc", {"x": "r"}).task(
        "k", "b.inc", {"x": "inputs.x"}
    )
    engine = ENGINES["local"](drawing.graph("i", "k"), Options(EngineSpec(kind="local"), ClusterSpec(), 1, ROOT))
    engine.place()
    engine.begin(Phase("measure", 3))
    results = []
    for x in (1, -5, 2):
        engine.submit([x])
        results.append(engine.fetch())
    assert [fetched.values for fetched in results] == [[2, 3], [], [6, 7]]
    error = results[1].error
    assert isinstance(error, TaskRaised) and error.failure.kind == "raised"
    assert (error.failure.task, error.failure.actor, error.failure.iteration) == ("r", "a", 1)
    assert "ValueError: negative: -5" in error.failure.message
    assert "plain.py" in error.failure.traceback and "worker.py" not in error.failure.traceback
    times = engine.end().times
    assert [len(task.start) for task in times] == [3, 3, 3] and times[1].start[1] == 0 < times[2].start[1]


@pytest.mark.parametrize(
    ("method", "kind", "said"),
    [
        ("odd_error", "raised", "Local: ('odd', 1, 2)"),
        ("exits", "raised", "SystemExit: 3"),
        ("is_cancelled", "raised", "CancelledError: no more"),
    ],
)
def test_any_exception_of_the_user_is_carried_as_text(method: str, kind: str, said: str) -> None:
    drawing = Drawing().actor("a", "plain.py:Trouble").input("x").task("t", f"a.{method}", {"x": "inputs.x"})
    with pytest.raises(TaskRaised, match="iteration 0") as caught:
        run_local(drawing.graph("t"), [1])
    assert caught.value.failure.kind == kind and said in caught.value.failure.message


def test_a_wrong_number_of_returns_names_both_numbers() -> None:
    drawing = Drawing().actor("a", "plain.py:Trouble").input("x")
    drawing.task("t", "a.three", {"x": "inputs.x"}, returns=("a", "b"))
    with pytest.raises(TaskRaised, match=r"returned 3 values, and its `returns` has 2 \(a, b\)") as caught:
        run_local(drawing.graph("t.a", unread=("t.b",)), [1])
    assert caught.value.failure.kind == "arity"


def test_a_value_that_could_not_be_read_is_said_and_not_handed_to_the_user() -> None:
    class RaySystemError(Exception):
        client_exc = ModuleNotFoundError("No module named 'only_here'")

    drawing = Drawing().actor("a", COUNTER).input("x").task("t", "a.echo", {"x": "inputs.x"})
    with pytest.raises(
        TaskRaised, match=r"cannot be read in its process: Module.*No module named 'only_here'"
    ) as caught:
        run_local(drawing.graph("t"), [RaySystemError("System error: a page of text")])
    assert caught.value.failure.kind == "unreadable"


def test_a_constructor_that_raises_and_an_import_that_fails_are_told_apart() -> None:
    broken = Drawing().actor("a", "plain.py:BadConstructor").input("x").task("t", "a.echo", {"x": "inputs.x"})
    with pytest.raises(TaskRaised, match="constructor raised: RuntimeError: no such checkpoint") as caught:
        run_local(broken.graph("t"), [1])
    assert caught.value.failure.kind == "constructor" and "helper" in caught.value.failure.traceback
    missing = Drawing().actor("a", "missing_import.py:Never").input("x").task("t", "a.echo", {"x": "inputs.x"})
    with pytest.raises(TaskRaised, match="No module named 'a_module_that_is_nowhere'") as caught:
        run_local(missing.graph("t"), [1])
    assert caught.value.failure.kind == "import" and "missing_import.py" in caught.value.failure.traceback


@pytest.mark.parametrize(
    "value, exit_code, said",
    [
        (
            {"$env": "CGSPEC_NOWHERE"},
            1,
            "cannot be made: the environment has no CGSPEC_NOWHERE, and $env gives no default",
        ),
        ({"$call": "plain.py:refuse"}, 4, "raised LookupError: nothing here"),
    ],
)
def test_an_argument_that_cannot_be_made_is_blamed_on_its_place_in_the_spec(
    value: object, exit_code: int, said: str
) -> None:
    """And not on the constructor, the method, or the machine."""
    given = reader().read(value, ())
    for path, what, actor, consts in (
        (("actors", "a", "args", "start"), "its argument start", {"kwargs": {"start": given}}, {}),
        (("actors", "a", "env", "HOME"), "its environment variable HOME", {"env": {"HOME": given}}, {}),
        (("tasks", "t", "with", "scale"), "the constant scale of task t", {}, {"scale": given}),
    ):
        drawing = Drawing().actor("a", COUNTER, **actor).input("x").task("t", "a.add", ["inputs.x"], consts=consts)
        with pytest.raises(RunError) as caught:
            run_local(drawing.graph("t"), [1])
        failure = caught.value.failure
        assert (failure.path, failure.actor, caught.value.exit_code) == (path, "a", exit_code)
        assert failure.message == f"actor a did not start: {'making ' * (exit_code == 4)}{what} {said}"
        assert ("in refuse" in failure.traceback) == (exit_code == 4)


def test_plain_calls_outside_the_graph_reach_the_same_object() -> None:
    drawing = Drawing().actor("a", COUNTER, 5).input("x").task("t", "a.inc", {"x": "inputs.x"})
    engine = ENGINES["local"](drawing.graph("t"), Options(EngineSpec(kind="local"), ClusterSpec(), 1, ROOT))
    engine.place()
    assert engine.call(0, "seen", {}) == 5
    engine.call(0, "note", {"x": 10})
    assert engine.call(0, "seen", {}) == 15
    with pytest.raises(RunError, match="raised: TypeError"):
        engine.call(0, "note", {"x": None})


def test_where_says_what_comes_next() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x")
    drawing.task("s", "a.inc", {"x": "inputs.x"}).task("t", "a.inc", {"x": "s"})
    engine = ENGINES["local"](drawing.graph("t"), Options(EngineSpec(kind="local"), ClusterSpec(), 1, ROOT))
    engine.place()
    engine.begin(Phase("measure", 2))
    engine.submit([1])
    (position,) = engine.where()
    assert (position.task, position.upcoming, position.iteration, position.ended) == (None, 0, 1, 2)


def test_a_step_costs_little() -> None:
    drawing = Drawing().actor("a", COUNTER).input("x").task("t", "a.echo", {"x": "inputs.x"})
    graph = drawing.graph("t")
    layout = lay_out(graph, transports=False, devices=False)
    worker = Worker()
    assert not isinstance(worker.construct(Job(str(ROOT), graph.actors[0], layout.steps[0], "cpu")), Failed)
    worker.begin(20_000)
    best = min(_time_steps(worker) for _ in range(5))
    assert best < 20e-6, f"{best * 1e6:.2f} µs per step"
    print(f"{best * 1e6:.2f} µs per step")
    usercode.uninstall()


def _time_steps(worker: Worker) -> float:
    began = time.thread_time()
    for _ in range(2000):
        worker.run(0, 1)
    return (time.thread_time() - began) / 2000


def test_the_short_way_through_a_step_says_the_same_as_the_long_one() -> None:
    drawing = Drawing().actor("a", "plain.py:Trouble").input("x").task("t", "a.raises", {"x": "inputs.x"})
    graph = drawing.graph("t")
    worker = Worker()
    worker.construct(Job(str(ROOT), graph.actors[0], lay_out(graph, transports=False, devices=False).steps[0], "cpu"))
    for watch in (None, WatchJob("nvtx", "a", warmup=0, iterations=9)):
        worker.begin(9, watch)
        assert worker.run(0, 3) == 3
        failed = worker.run(0, -3)
        assert isinstance(failed, Failed) and (failed.kind, failed.task, failed.iteration) == ("raised", 0, 1)
        assert worker.run(0, failed) is failed and worker.run(0, 1) == 1
        spot = worker.where()
        assert (spot.task, spot.upcoming, spot.iteration, spot.ended) == (None, 0, 4, 4)
        first, starts, ends = worker.end().times[0]
        assert first == 0 and [end > 0 for end in ends] == [True, True, False, True]
        assert all(start <= end for start, end in zip(starts, ends, strict=True))
