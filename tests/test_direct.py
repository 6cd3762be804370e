"""The direct engine: what stays in an actor, who answers meanwhile, how it ends when an actor does not come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import ray
from engines_running import error_of, one, options, run, started
from graphs import Drawing

TROUBLE = "plain.py:Trouble"
COUNTER = "plain.py:Counter"


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_what_only_its_own_actor_reads_is_never_pickled() -> None:
    drawing = Drawing().actor("a", TROUBLE).input("x")
    drawing.task("l", "a.lock", {"x": "inputs.x"}).task("k", "a.keep", {"x": "l"})
    assert run(drawing.graph("k"), [[1], [2]], options("direct")) == [[1], [2]]


def test_results_that_cannot_be_sent_are_told() -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", TROUBLE).input("x")
    drawing.task("l", "a.lock", {"x": "inputs.x"}).task("k", "b.keep", {"x": "l"})
    error = error_of(drawing.graph("k"), [1], options("direct"))
    assert error.failure.kind == "unserialisable" and error.failure.task == "l"


def test_an_actor_tells_where_it_is_while_its_peer_waits_for_it() -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    drawing.task("s", "a.sleep", {"x": "inputs.x"}).task("t", "b.echo", {"x": "s"})
    with started(drawing.graph("t"), options("direct")) as engine:
        engine.submit([2.0])
        time.sleep(1.0)
        where = engine.where()
        assert (where[0].task, where[1].task, where[1].upcoming, where[1].reachable) == (0, None, 1, True)
        assert any("plain.py" in line for line in where[0].stack)
        assert engine.fetch().values == [2.0]


def test_a_task_that_does_not_come_back_is_a_stall_that_names_it() -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    drawing.task("s", "a.sleep", {"x": "inputs.x"}).task("t", "b.echo", {"x": "s"})
    with started(drawing.graph("t"), options("direct", timeouts={"stall": 2.0})) as engine:
        assert one(engine, 0) == [0]
        began = time.monotonic()
        with pytest.raises(Exception, match="actor a has been in task s") as caught:
            one(engine, 1000)
    assert caught.value.exit_code == 5 and time.monotonic() - began < 20  # type: ignore[attr-defined]
    assert any("b (pid" in line and "for s on a" in line for line in caught.value.failure.waiting)  # type: ignore[attr-defined]


def test_an_actor_that_dies_is_named() -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    drawing.task("s", "a.die", {"x": "inputs.x"}).task("t", "b.echo", {"x": "s"})
    with started(drawing.graph("t"), options("direct")) as engine:
        assert one(engine, 1) == [1]
        began = time.monotonic()
        with pytest.raises(Exception, match=r"actor a .*died") as caught:
            one(engine, -1)
    assert caught.value.exit_code == 5 and time.monotonic() - began < 20  # type: ignore[attr-defined]


def test_iterations_overlap() -> None:
    """Two actors of 0.2 s each: four iterations one after the other take 1.6 s, in a window 1 s."""
    drawing = Drawing().actor("a", TROUBLE).actor("b", TROUBLE).input("x")
    drawing.task("s", "a.sleep", {"x": "inputs.x"}).task("t", "b.sleep", {"x": "s"})
    with started(drawing.graph("t"), options("direct", inflight=4)) as engine:
        one(engine, 0.0)
        began = time.monotonic()
        for _ in range(4):
            engine.submit([0.2])
        assert [engine.fetch().values for _ in range(4)] == [[0.2]] * 4
        assert time.monotonic() - began < 1.5
    assert not [thread for thread in threading.enumerate() if thread.name == "cgspec-watchdog"]
