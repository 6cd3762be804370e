"""The short way through Ray's loop, and the driver's ends: who takes it, and what closed or late channels do.

That both give what Ray's own do is in test_engines and test_equivalence.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import ray
from engines_running import one, options, started
from graphs import Drawing
from ray.exceptions import RayChannelError, RayChannelTimeoutError, RayTaskError

from cgspec import raynames
from cgspec.engines import loops
from cgspec.engines.ends import Ends
from cgspec.errors import TaskRaised
from cgspec.steps import Run


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def _operations(actor: Any) -> tuple[list[str], bool]:
    """By task of the actor's loop, where what executes it is defined; and whether torch was imported."""
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


def test_rays_event_mode_takes_the_loop_from_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch of the environment, which Ray reads when it is imported: it is cgspec's profiler that is meant."""
    from ray.dag import constants

    monkeypatch.setattr(constants, "RAY_CGRAPH_ENABLE_PROFILING", True)
    with started(_two().graph("q"), options()) as engine:
        assert one(engine, 5) == [5]
        assert _asked(engine)[0] == ["cgspec.engines.loops"]


def test_the_short_way_can_be_left() -> None:
    with started(_two().graph("q"), options(engine={"short_loop": False})) as engine:
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


@pytest.mark.parametrize(
    ("method", "returns", "said"),
    [
        ("task_error", None, r"the result of task p .* in iteration 1 cannot be sent .*: a RayTaskError is no value"),
        ("task_errors", ("u", "v"), r"the result of task p .* in iteration 1 cannot be sent .*: a RayTaskError is no"),
        ("interrupts", None, r"task p \(a.interrupts\) raised in iteration 1: KeyboardInterrupt: mine"),
        ("stubborn", None, r"task q \(b.echo\) got a value in iteration 1 that cannot be read .*: leave me alone"),
    ],
)
def test_what_seems_to_be_rays_own_fails_one_iteration_of_one_task(
    method: str, returns: tuple[str, ...] | None, said: str
) -> None:
    """Ray raises some values where they arrive, and some cannot be freed from its buffers; neither ends a loop, nor
    does what is no ``Exception``."""
    drawing = Drawing().input("x").actor("a", "plain.py:Trouble").actor("b", "plain.py:Counter")
    drawing.task("p", f"a.{method}", {"x": "inputs.x"}, returns=returns)
    last = f"p.{returns[-1]}" if returns else "p"
    graph = drawing.task("q", "b.echo", {"x": last}).graph("q", unread=("p.u",) if returns else ())
    with started(graph, options()) as engine:
        assert one(engine, 1) == [[1]]
        with pytest.raises(TaskRaised, match=said):
            one(engine, -1)
        assert one(engine, 2) == [[2]]


class Channel:
    """Gives what it was made of, one per read, and takes one write; exceptions it raises.

    Attributes:
        seen: notes each read and write.
    """

    def __init__(self, name: str, seen: list[str], *answers: object, room: int = 1) -> None:
        self.name, self.seen, self.left, self.room = name, seen, list(answers), room

    def read(self, timeout: float) -> object:
        self.seen.append(self.name)
        answer = self.left.pop(0)
        if isinstance(answer, type) and issubclass(answer, Exception):
            raise answer("so")
        return answer

    def write(self, value: object, timeout: float | None = None) -> None:
        if not self.room:
            raise RayChannelTimeoutError("no room")
        self.room -= 1
        self.seen.append(f"{self.name} = {value}")


def _ends(monkeypatch: pytest.MonkeyPatch, writes: list[tuple[Channel, int | None]], reads: list[Channel]) -> Ends:
    monkeypatch.setattr(raynames, "driver_ends", lambda compiled: (writes, reads))
    return Ends(None)


def test_a_late_output_is_asked_for_in_turn_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    late = Channel("late", seen, RayChannelTimeoutError, RayChannelTimeoutError, "a")
    later = Channel("later", seen, RayChannelTimeoutError, "b")
    assert _ends(monkeypatch, [], [late, later]).read() == ["a", "b"]
    assert seen == ["late", "later", "late", "later", "late"]


def test_an_error_is_raised_though_another_output_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    never = Channel("never", seen, *[RayChannelTimeoutError] * 5)
    wrong = Channel("wrong", seen, RayChannelTimeoutError, RayTaskError("task", "a page of text", ValueError("no")))
    with pytest.raises(RayTaskError, match="a page of text"):
        _ends(monkeypatch, [], [never, wrong]).read()
    assert len(seen) == 4
    with pytest.raises(RayChannelError):
        _ends(monkeypatch, [], [Channel("closed", seen, RayChannelError)]).read()


def test_what_finds_no_room_goes_with_the_next_read_and_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    x, y = Channel("x", seen, room=2), Channel("y", seen, room=1)
    out = Channel("out", seen, RayChannelTimeoutError, "done")
    ends = _ends(monkeypatch, [(x, 0), (y, 1)], [out])
    ends.write([1, 2])
    ends.write([3, 4])
    assert seen == ["x = 1", "y = 2", "x = 3"]
    x.room = 1
    ends.write([5, 6])
    assert seen[3:] == [], "what has room waits for what was before it"
    y.room = 1
    assert ends.read() == ["done"] and seen[3:] == ["out", "y = 4", "x = 5", "out"]


def test_one_thread_writes_while_another_one_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a live graph does where calls overlap: a value that is being written is not written once more."""
    seen: list[str] = []
    writing, go_on = threading.Semaphore(0), threading.Event()

    class Busy(Channel):
        def write(self, value: object, timeout: float | None = None) -> None:
            writing.release()
            assert go_on.wait(30)
            super().write(value, timeout)

    busy, out = Busy("x", seen, room=2), Channel("out", seen, RayChannelTimeoutError, "done")
    ends = _ends(monkeypatch, [(busy, 0)], [out])
    with ThreadPoolExecutor(2) as threads:
        wrote = threads.submit(ends.write, [1])
        assert writing.acquire(timeout=30)
        read = threads.submit(ends.read)
        again = writing.acquire(timeout=0.5)
        go_on.set()
        assert (wrote.result(), read.result(), again) == (None, ["done"], False)
    assert seen.count("x = 1") == 1


def _operate(parts: raynames.Parts, calls: list[Run]) -> Callable[[str], bool]:
    execute, kinds = loops._shortened(parts, calls), dict(zip("rcw", raynames.operations(), strict=True))
    return lambda operation: execute(None, kinds[operation])


def test_a_shortened_task_reads_computes_and_writes() -> None:
    seen: list[str] = []
    one, two = Channel("one", seen, RayChannelTimeoutError, 3, RayChannelError), Channel("two", seen, 4)
    a, b = Channel("a", seen), Channel("b", seen, room=2)
    parts = raynames.Parts([one, two], [(None, 1), (1, two), (0, one)], [(a, 0), (b, 1), (b, None)])
    operate = _operate(parts, [lambda values: None, lambda values: values])
    assert [operate(operation) for operation in "rcw"] == [False, False, False]
    assert seen == ["one", "one", "two", "a = 4", "b = 3", "b = (4, 3)"]
    assert operate("r"), "a closed channel ends the loop"


def test_an_error_that_a_writer_sent_goes_on_to_every_reader() -> None:
    seen: list[str] = []
    wrong = RayTaskError("task", "a page of text", ValueError("no"))
    parts = raynames.Parts(
        [Channel("x", seen, wrong)], [(None, 0), (0, None)], [(Channel("a", seen), 0), (Channel("b", seen), 1)]
    )
    operate = _operate(parts, [lambda values: pytest.fail("called")])
    assert [operate(operation) for operation in "rcw"] == [False, False, False]
    assert seen == ["x", f"a = {wrong}", f"b = {wrong}"]
