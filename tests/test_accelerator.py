"""Accelerator channels and Ray's collectives on logical GPUs: the real channel code, Ray's mock of NCCL below it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
import ray
import torch
from engines_running import Shared, error_of, one, options, run, started
from graphs import Drawing
from ray.experimental.collective import get_collective_groups

from cgspec.errors import TaskRaised
from cgspec.graph import Transport

pytestmark = pytest.mark.slow

MOCKED = "mocked.py:Mocked"


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(
        address="local", num_cpus=4, num_gpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def _barrier() -> Iterator[None]:
    """Where the mock's senders and receivers meet; a graph's end takes it down."""
    from ray.experimental.channel.conftest import Barrier

    barrier = Barrier.options(name="barrier-0-1").remote()
    ray.get(barrier.__ray_ready__.remote())
    yield
    ray.kill(barrier)


def pair() -> Drawing:
    return Drawing().actor("a", MOCKED, num_gpus=1).actor("b", MOCKED, num_gpus=1).input("x")


def test_a_tensor_travels_by_accelerator_and_its_own_actor_reads_it_too() -> None:
    """One call with three readers: Ray's schedule breaks where the writer's own actor reads what it sends."""
    drawing = pair()
    drawing.task("p", "a.make", {"x": "inputs.x"}, transport=Transport("accelerator"))
    drawing.task("q", "b.total", {"t": "p"}).task("own", "a.total", {"t": "p"})
    assert run(drawing.graph("q", "own"), [[1], [2], [3]], options()) == [[4.0, 4.0], [8.0, 8.0], [12.0, 12.0]]


def test_the_last_of_a_chain_travels_by_accelerator() -> None:
    drawing = pair().task("p", "a.echo", {"x": "inputs.x"})
    drawing.task("q", "a.make", {"x": "p"}, transport=Transport("accelerator")).task("r", "b.total", {"t": "q"})
    with started(drawing.graph("r"), options()) as engine:
        assert engine.fused == ((0, 1),)
        assert [one(engine, x) for x in (1, 2)] == [[4.0], [8.0]]
        with pytest.raises(TaskRaised, match=r"task q .* raised in iteration 2: ValueError: negative: -1"):
            one(engine, -1)


def test_an_actor_with_a_gpu_keeps_rays_loop_which_enters_its_device() -> None:
    drawing = Drawing().actor("a", MOCKED, num_gpus=1).actor("b", "plain.py:Counter").input("x")
    drawing.task("p", "a.echo", {"x": "inputs.x"}).task("q", "b.echo", {"x": "p"})
    with started(drawing.graph("q"), options()) as engine:
        assert one(engine, 5) == [5]
        assert [engine._settings(actor).plain for actor in (0, 1)] == [False, True]  # type: ignore[attr-defined]


def test_a_tensor_travels_alone_and_in_one_shape() -> None:
    drawing = pair()
    drawing.task("p", "a.make", {"x": "inputs.x"}, transport=Transport("accelerator", "default", True, True))
    drawing.task("q", "b.total", {"t": "p"})
    assert run(drawing.graph("q"), [[1], [2], [3]], options()) == [[4.0], [8.0], [12.0]]


def test_each_return_travels_by_itself_and_the_driver_reads_one_too() -> None:
    """The driver's part goes through host memory; what the mock calls a GPU tensor cannot, so it reads a number."""
    drawing = pair()
    drawing.task("p", "a.two", {"x": "inputs.x"}, returns=("low", "high"), transport=Transport("accelerator"))
    drawing.task("q", "b.total", {"t": "p.low"}).task("r", "b.total", {"t": "p.high"})
    drawing.task("own", "a.total", {"t": "p.low"})
    assert run(drawing.graph("q", "r", "own", "p.high"), [[1], [2]], options()) == [[4.0, 2, 4.0, 2], [8.0, 3, 8.0, 3]]


def test_a_failure_travels_by_accelerator_and_the_graph_goes_on() -> None:
    drawing = pair()
    drawing.task("p", "a.make", {"x": "inputs.x"}, transport=Transport("accelerator"))
    drawing.task("q", "b.total", {"t": "p"})
    with started(drawing.graph("q"), options()) as engine:
        assert one(engine, 1) == [4.0]
        with pytest.raises(TaskRaised, match=r"task p .* raised in iteration 1: ValueError: negative: -1"):
            one(engine, -1)
        assert one(engine, 2) == [8.0]


def test_a_failure_where_only_tensors_travel_ends_the_graph_by_name() -> None:
    drawing = pair()
    drawing.task("p", "a.make", {"x": "inputs.x"}, transport=Transport("accelerator", "default", True, True))
    drawing.task("q", "b.total", {"t": "p"})
    with started(drawing.graph("q"), options()) as engine:
        assert one(engine, 1) == [4.0]
        with pytest.raises(TaskRaised, match=r"task p .* raised in iteration 1: ValueError: negative: -1"):
            one(engine, -1)


def test_collectives_bind_with_rays_own_communicator_where_there_are_gpus() -> None:
    drawing = pair()
    drawing.task("p.0", "a.make", {"x": "inputs.x"}).task("p.1", "b.make", {"x": "inputs.x"})
    drawing.collective("s", "allreduce", ["p.0", "p.1"], op="sum").collective(
        "m", "allreduce", ["p.0", "p.1"], op="max"
    )
    drawing.task("l", "a.total", {"t": "s.0"}).task("k", "b.total", {"t": "m.1"})
    # the mock's own arithmetic: twice each of four elements, and 100 times the number that ReduceOp gives to max
    found = run(drawing.graph("l", "k", unread=("s.1", "m.0")), [[1], [2]], options())
    assert found == [[8.0, 808.0], [16.0, 816.0]]


def test_tensors_of_the_direct_engine_go_by_rays_nccl_transport(tmp_path: pathlib.Path) -> None:
    """Gloo stands in for NCCL: the group is formed and released, also where the next graph has other members."""
    shared, given = Shared(), options("direct", inflight=4)

    def drawing() -> Drawing:
        found = Drawing().input("x")
        for name in "abc":
            found.actor(name, "nccl.py:Standing", num_gpus=1, env={"MEETING": str(tmp_path)})
        return found

    two = drawing().task("m", "a.make", {"x": "inputs.x"}, transport=Transport("accelerator"))
    two.task("p", "b.add", {"x": "m"}, transport=Transport("accelerator")).task("f", "a.first", {"x": "p"})
    three = drawing().task("m", "a.make", {"x": "inputs.x"}, transport=Transport("auto"))
    three.task("p", "b.add", {"x": "m"}, transport=Transport("accelerator")).task("q", "c.add", {"x": "p", "y": "m"})
    three.task("f", "b.first", {"x": "q"})
    try:
        for graph, members, outputs in (
            (two.graph("f", "p"), 2, lambda x: x + 1),
            (three.graph("q", "f"), 3, lambda x: 2 * x + 1),
            (two.graph("f", "p"), 2, lambda x: x + 1),
        ):
            with shared.started(graph, given) as engine:
                assert [len(group.actors) for group in get_collective_groups([])] == [members]
                for x in range(4):
                    engine.submit([x])
                for x in range(20):
                    values = engine.fetch().values
                    assert [float(torch.as_tensor(value).max()) for value in values] == [outputs(x)] * 2
                    if x < 16:
                        engine.submit([x + 4])
    finally:
        shared.end()
    assert get_collective_groups([]) == []


def test_an_nccl_group_that_cannot_be_formed_is_told(tmp_path: pathlib.Path) -> None:
    drawing = Drawing().input("x")
    for name in "ab":
        drawing.actor(name, "nccl.py:Standing", num_gpus=1, env={"MEETING": str(tmp_path / "nowhere")})
    drawing.task("m", "a.make", {"x": "inputs.x"}, transport=Transport("accelerator")).task("f", "b.first", {"x": "m"})
    error = error_of(drawing.graph("f"), [1], options("direct"))
    assert error.exit_code == 3
    assert error.failure.message.startswith("the actors cannot form an NCCL group: ")
    assert "nowhere" in error.failure.message and "cgspec doctor" in error.failure.message
