"""The wait-for chain and the watchdog, on positions that were made up."""

from __future__ import annotations

import threading
import time

from graphs import Drawing

from cgspec.engines import Position
from cgspec.engines.waiting import Watchdog, chain, stalled
from cgspec.graph import Graph
from cgspec.layout import lay_out
from cgspec.steps import sources_of


def crossing() -> Graph:
    """``a`` runs p and s, ``b`` runs q and r; q reads p, s reads r."""
    drawing = Drawing().actor("a", "plain.py:Counter").actor("b", "plain.py:Counter").input("x")
    drawing.task("p", "a.inc", {"x": "inputs.x"}).task("q", "b.inc", {"x": "p"})
    drawing.task("r", "b.inc", {"x": "inputs.x"}).task("s", "a.inc", {"x": "r"})
    return drawing.graph("q", "s")


def sources(graph: Graph) -> dict[int, tuple[int, ...]]:
    return sources_of(lay_out(graph, transports=False, devices=False))


def test_the_chain_says_who_waits_for_whom() -> None:
    graph = crossing()
    seen = (
        Position(0, pid=1, upcoming=3, iteration=7, seconds=9.0),
        Position(1, pid=2, task=1, iteration=7, seconds=9.0, stack=("f.py:1 in inc", "g.py:2 in wait: lock()")),
    )
    assert chain(graph, sources(graph), seen) == (
        "a (pid 1) waits to run s, iteration 7, for r on b",
        "b (pid 2) is in q, iteration 7, for 9 s: g.py:2 in wait: lock()",
    )
    failure = stalled(graph, sources(graph), seen, "no task began or ended in 9 s", "measure").failure
    assert (failure.task, failure.actor, failure.iteration) == ("q", "b", 7)
    assert failure.traceback.splitlines() == ["f.py:1 in inc", "g.py:2 in wait: lock()"]


def test_what_has_ended_is_not_waited_for() -> None:
    graph = crossing()
    # b has ended q and r of iteration 7 and waits for the next p; a has not got r yet
    seen = (Position(0, pid=1, upcoming=3, iteration=7), Position(1, pid=2, upcoming=1, iteration=8))
    lines = chain(graph, sources(graph), seen)
    assert lines[0] == "a (pid 1) waits to run s, iteration 7, for its input"
    assert lines[1] == "b (pid 2) waits to run q, iteration 8, for p on a"


def test_a_member_in_a_collective_waits_and_one_that_does_not_come_is_named() -> None:
    """Though it came to its own task a moment later."""
    drawing = Drawing().actor("a", "plain.py:Counter").actor("b", "plain.py:Counter").input("x")
    drawing.task("p", "a.inc", {"x": "inputs.x"}).task("q", "b.inc", {"x": "inputs.x"})
    graph = drawing.collective("s", "allreduce", ["p", "q"]).graph("s.0", "s.1")
    seen = (Position(0, pid=1, task=2, iteration=7, seconds=9.0), Position(1, pid=2, task=1, iteration=7, seconds=8.9))
    assert stalled(graph, sources(graph), seen, "so", "measure").failure.task == "q"
    assert stalled(graph, sources(graph), seen[:1], "so", "measure").failure.task == "s.0"


def test_an_actor_that_does_not_answer_is_the_one_to_blame() -> None:
    graph = crossing()
    seen = (Position(0, pid=5, reachable=False), Position(1, pid=6, upcoming=1, iteration=0))
    failure = stalled(graph, sources(graph), seen, "the first iteration is not done in 2 s", "warmup").failure
    assert failure.actor == "a" and "actor a (pid 5) does not answer" in failure.message
    assert failure.waiting == ("a (pid 5) does not answer", "b (pid 6) waits to run q, iteration 0, for p on a")


def watched(seen: list[Position], allowance: float = 0.0) -> tuple[Watchdog, threading.Event]:
    fired = threading.Event()
    dog = Watchdog(
        stall=0.3,
        positions=lambda: tuple(seen),
        allowance=lambda position: allowance,
        fire=lambda seen, limit: fired.set(),
    )
    dog.start()
    return dog, fired


def test_the_watchdog_fires_when_nothing_happens_and_not_while_the_driver_is_idle() -> None:
    dog, fired = watched([Position(0, task=0, seconds=99.0)])
    time.sleep(0.7)
    assert not fired.is_set()
    dog.progress(1)
    assert fired.wait(3)
    dog.join(3)
    assert not dog.is_alive()


def test_tasks_that_begin_and_end_and_tasks_with_time_left_keep_it_quiet() -> None:
    for seconds, allowance in ((0.01, 0.0), (5.0, 10.0)):
        dog, fired = watched([Position(0, task=0, seconds=seconds), Position(1, upcoming=0, seconds=5.0)], allowance)
        dog.progress(1)
        assert not fired.wait(1.0)
        dog.end()


def test_what_is_expected_has_its_own_deadline() -> None:
    dog, fired = watched([])
    dog.expect(0.4)
    assert not fired.wait(0.2) and fired.wait(3)
    dog, fired = watched([])
    dog.expect(0.3)
    dog.met()
    assert not fired.wait(0.8)
    dog.end()
