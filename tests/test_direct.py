"""The direct engine: what stays in an actor, what goes by Ray Direct Transport, who answers meanwhile, how it ends when
an actor does not come back."""

from __future__ import annotations

import pathlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import ray
from engines_running import Shared, error_of, one, options, run, started
from graphs import Drawing

from cgspec.engines import Engine, rdt
from cgspec.graph import Graph, Transport

TROUBLE = "plain.py:Trouble"
COUNTER = "plain.py:Counter"
POST = "tensors.py:Post"
DIRECT = Transport("accelerator")


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


@pytest.mark.parametrize("transport", [None, DIRECT])
def test_a_task_that_does_not_come_back_is_a_stall_that_names_it(transport: Transport | None) -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    drawing.task("s", "a.sleep", {"x": "inputs.x"}, transport=transport).task("t", "b.echo", {"x": "s"})
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


def three() -> Drawing:
    """The actors of all tests that send tensors: they are started once."""
    return Drawing().actor("a", POST).actor("b", POST).actor("c", POST).input("x")


@pytest.fixture(scope="module")
def shared(_cluster: None) -> Iterator[Shared]:
    found = Shared()
    yield found
    found.end()
    assert rdt._RANKS == {}


def in_a_window(
    shared: Shared, graph: Graph, count: int, inflight: int, given: Callable[[int], object]
) -> list[list[object] | str]:
    """The values of each iteration, or what is said of its failure; so many are under way at once."""
    with shared.started(graph, options("direct", inflight=inflight)) as engine:
        found: list[list[object] | str] = []
        sent = 0
        while len(found) < count:
            while sent < min(count, len(found) + inflight):
                engine.submit([given(sent)])
                sent += 1
            fetched = engine.fetch()
            found.append(fetched.values if fetched.error is None else fetched.error.failure.message)
        return found


def held(engine: Engine, actor: int) -> list[tuple[int, ...]]:
    """The shapes of the tensors that Ray's store for direct transport holds in an actor."""

    def look(_: object) -> list[tuple[int, ...]]:
        store = ray._private.worker.global_worker.rdt_manager.rdt_store
        return [tuple(tensor.shape) for queue in store._rdt_store.values() for entry in queue for tensor in entry.data]

    return ray.get(engine.actors.handles[actor].__ray_call__.remote(look))  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(("transport", "shapes"), [(DIRECT, [(16, 16)]), (None, []), (Transport("shm"), [])])
def test_a_tensor_goes_by_direct_transport_where_its_task_says_so(
    shared: Shared, transport: Transport | None, shapes: list[tuple[int, ...]]
) -> None:
    drawing = three().task("m", "a.make", {"x": "inputs.x"}, transport=transport).task("f", "b.first", {"x": "m"})
    with shared.started(drawing.graph("f"), options("direct")) as engine:
        assert one(engine, 7) == [7.0]
        assert held(engine, 0) == shapes and held(engine, 1) == []


def test_tensors_go_round_while_others_are_under_way(shared: Shared) -> None:
    """The sender waits for what it sent to come back: with Ray's own order of calls this is a deadlock (#60954)."""
    drawing = three().task("m", "a.make", {"x": "inputs.x"}, transport=DIRECT)
    drawing.task("p", "b.add", {"x": "m"}, transport=DIRECT).task("q", "a.add", {"x": "p", "y": "m"}, transport=DIRECT)
    drawing.task("f", "c.first", {"x": "q"}).task("s", "c.spread", {"x": "m"})
    with warnings.catch_warnings(record=True) as said:
        found = in_a_window(shared, drawing.graph("f", "s", "q"), 40, 4, lambda i: i)
    for i, values in enumerate(found):
        whole: Any = values[2]
        assert (
            values[:2] == [2.0 * i + 1, (i, i)] and whole.shape == (16, 16) and float(whole.sum()) == 256 * (2 * i + 1)
        )
    assert not [warning for warning in said if "RDT" in str(warning.message)]


def test_a_sender_may_change_what_it_sent(shared: Shared) -> None:
    drawing = three().task("m", "a.same", {"x": "inputs.x"}, transport=DIRECT).task("s", "b.spread", {"x": "m"})
    found = in_a_window(shared, drawing.graph("s"), 30, 6, lambda i: 1)
    assert found == [[(i + 1.0, i + 1.0)] for i in range(30)]


KINDS = ("tree", "number", "nothing", "turned", "scalar", "half", "wrapped", "complex")


def test_what_is_not_a_tensor_travels_beside(shared: Shared) -> None:
    """Trees and objects with tensors in them, views, empty ones, other dtypes, and no tensor at all."""
    drawing = three().task("t", "a.thing", {"kind": "inputs.x"}, transport=DIRECT).task("s", "b.tell", {"x": "t"})
    inputs = [[kind] for kind in KINDS]
    found = shared.run(drawing.graph("s"), inputs, options("direct"))
    assert found == run(drawing.graph("s"), inputs, options("local"))


def test_what_cannot_be_sent_is_told_and_the_next_iteration_goes_on(shared: Shared) -> None:
    drawing = three().task("t", "a.thing", {"kind": "inputs.x"}, transport=DIRECT).task("s", "b.tell", {"x": "t"})
    drawing.task("own", "a.tell", {"x": "t"})
    kinds = ("tree", "sparse", "thread", "number")
    found = in_a_window(shared, drawing.graph("s", "own"), len(kinds), 2, kinds.__getitem__)
    told = "the result of task t (a.thing) in iteration {} cannot be sent to another process: {}"
    assert found[1] == told.format(1, "gloo sends plain tensors, and one is torch.sparse_coo of torch.float32")
    assert found[2] == told.format(2, "TypeError: cannot pickle '_thread.lock' object")
    assert found[0] == ["{'a': [tensor([1., 1.]), 'b'], 'c': (1, None)}"] * 2 and found[3] == ["3", "3"]


def test_a_value_whose_class_is_not_there_is_told(shared: Shared) -> None:
    drawing = three().task("t", "a.thing", {"kind": "inputs.x"}, transport=DIRECT).task("s", "b.tell", {"x": "t"})
    said = "task s (b.tell) got a value in iteration {} that cannot be read in its process: ModuleNotFoundError: "
    found = in_a_window(shared, drawing.graph("s"), 2, 1, lambda i: "hidden")
    assert found == [said.format(i) + "No module named 'only_here'" for i in range(2)]


def test_a_task_that_raises_amid_tensors_spoils_its_own_iteration_alone(shared: Shared) -> None:
    drawing = three().task("m", "a.make", {"x": "inputs.x"}, transport=DIRECT)
    drawing.task("p", "b.add", {"x": "m"}, transport=DIRECT).task("f", "c.first", {"x": "p"})
    found = in_a_window(shared, drawing.graph("f"), 12, 4, lambda i: -i if i % 5 == 3 else i)
    said = "task m (a.make) raised in iteration {}: ValueError: negative: -{}"
    assert found == [said.format(i, i) if i % 5 == 3 else [i + 1.0] for i in range(12)]


def test_every_return_goes_its_own_way(shared: Shared) -> None:
    drawing = three().task("m", "a.two", {"x": "inputs.x"}, returns=("u", "v"), transport=DIRECT)
    drawing.task("f", "b.first", {"x": "m.u"}).task("g", "c.first", {"x": "m.v"})
    assert in_a_window(shared, drawing.graph("f", "g"), 5, 2, lambda i: i + 1) == [
        [i + 1.0, -i - 1.0] for i in range(5)
    ]


def test_actors_that_were_not_made_for_it_are_not_taken_over() -> None:
    plain = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    plain.task("s", "a.echo", {"x": "inputs.x"}).task("t", "b.echo", {"x": "s"})
    sending = Drawing().actor("a", COUNTER).actor("b", COUNTER).input("x")
    sending.task("s", "a.echo", {"x": "inputs.x"}, transport=DIRECT).task("t", "b.echo", {"x": "s"})
    with started(plain.graph("t"), options("direct")) as engine:
        assert one(engine, 1) == [1]
        assert not engine.renew(sending.graph("t"), options("direct")) and engine.renew(
            plain.graph("t"), options("direct")
        )


def test_an_actor_that_dies_among_tensors_is_named() -> None:
    drawing = Drawing().actor("a", POST).actor("b", TROUBLE).actor("c", TROUBLE).input("x")
    drawing.task("m", "a.add", {"x": "inputs.x"}, transport=DIRECT).task("s", "b.die", {"x": "m"}, transport=DIRECT)
    drawing.task("t", "c.keep", {"x": "s"})
    with started(drawing.graph("t"), options("direct", inflight=3)) as engine:
        assert one(engine, 1) == [1]
        for x in (1, -5, 1):
            engine.submit([x])
        assert engine.fetch().values == [2]
        with pytest.raises(Exception, match=r"actor b .*died") as caught:
            engine.fetch()
    assert caught.value.exit_code == 5  # type: ignore[attr-defined]


def test_the_users_own_process_group_is_left_alone(tmp_path: pathlib.Path) -> None:
    """Ray's own gloo transport takes the process's default group: of four members, two would be asked to reduce."""
    meeting = str(tmp_path / "meeting")
    drawing = Drawing().input("x").actor("u", "tensors.py:Peer", 0, meeting).actor("v", "tensors.py:Peer", 1, meeting)
    drawing.actor("c", POST).task("m", "u.make", {"x": "inputs.x"}, transport=DIRECT)
    drawing.task("r", "u.reduce", {"x": "inputs.x"}).task("s", "v.reduce", {"x": "m"}).task("f", "c.first", {"x": "m"})
    assert run(drawing.graph("r", "s", "f"), [[1], [2]], options("direct")) == [[2.0, 2.0, 1.0], [4.0, 4.0, 2.0]]
