"""The short way through Ray's loop, and the driver's ends: who takes it, and what closed or late channels do.

That both give what Ray's own do is in test_engines and test_equivalence.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import ray
from engines_running import one, options, started
from graphs import Drawing
from ray.exceptions import RayChannelError, RayChannelTimeoutError, RayTaskError

from cgspec.engines.ends import take


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def _operations(actor: Any) -> tuple[list[str], bool]:
    """By task of the actor's loop, where what executes it is defined; and whether torch was imported."""
    from cgspec import raynames

    loop = raynames.find_loop(sys._current_frames().values())
    return [task.exec_operation.__module__ for task in loop.tasks] if loop else [], "torch" in sys.modules


def _asked(engine: Any, actor: int = 0) -> tuple[list[str], bool]:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    found: tuple[list[str], bool] = ray.get(engine.actors.handles[actor].__ray_call__.remote(_operations))
    return found


def _two() -> Drawing:
    drawing = Drawing().input("x").actor("a", "plain.py:Counter").actor("b", "plain.py:Counter")
    return drawing.task("p", "a.echo", {"x": "inputs.x"}).task("q", "b.echo", {"x": "p"})


def test_actors_of_a_plain_graph_go_the_short_way_and_import_no_torch() -> None:
    with started(_two().graph("p", "q"), options()) as engine:
        assert one(engine, 5) == [5, 5]
        assert [_asked(engine, actor) for actor in (0, 1)] == [(["cgspec.engines.loops"], False)] * 2


def test_shortcuts_can_be_left_out() -> None:
    with started(_two().graph("q"), options(engine={"shortcuts": False})) as engine:
        assert one(engine, 5) == [5]
        assert _asked(engine)[0] == ["ray.dag.compiled_dag_node"]


def test_a_graph_that_communicates_keeps_rays_loop() -> None:
    drawing = Drawing().input("x")
    for rank in range(2):
        drawing.actor(f"m.{rank}", "ranks.py:Member", rank).task(f"p.{rank}", f"m.{rank}.make", {"x": "inputs.x"})
    drawing.collective("r", "allreduce", ["p.0", "p.1"]).task("l", "m.0.listed", {"t": "r.0"})
    with started(drawing.graph("l", unread=("r.1",)), options(rehearse=True)) as engine:
        assert one(engine, 5) == [[[11.0 + 20 * row] * 2 for row in range(4)]]
        names, torch = _asked(engine)
        assert set(names) == {"ray.dag.compiled_dag_node"} and torch


def _reads(*answers: object) -> Callable[[float], object]:
    """A channel that gives these, one per read; exceptions it raises."""
    left = list(answers)

    def read(timeout: float) -> object:
        answer = left.pop(0)
        if isinstance(answer, type) and issubclass(answer, Exception):
            raise answer("so")
        return answer

    return read


def test_a_late_value_is_waited_for_while_others_are_taken() -> None:
    late, early = _reads(RayChannelTimeoutError, RayChannelTimeoutError, "a"), _reads("b")
    assert take([late, early]) == ["a", "b"]
    assert take([]) == []


def test_an_error_is_raised_though_another_value_never_comes() -> None:
    never = _reads(*[RayChannelTimeoutError] * 5)
    made = RayTaskError("task", "a page of text", ValueError("no"))
    with pytest.raises(RayTaskError, match="a page of text"):
        take([never, _reads(RayChannelTimeoutError, made)])
    with pytest.raises(RayChannelError):
        take([_reads(RayChannelError)])
