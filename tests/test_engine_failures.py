"""What goes wrong in actors ends in time, with the cause by name, and leaves nothing behind."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import ray
from engines_running import ROOT, error_of, one, options, run, started
from graphs import Drawing

from cgspec.engines import ENGINES, Engine, Phase
from cgspec.errors import ActorDied, NotAble, Stalled, TaskRaised

COUNTER = "plain.py:Counter"
TROUBLE = "plain.py:Trouble"


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    deadline = time.monotonic() + 20
    while (free := ray.available_resources()) != ray.cluster_resources():  # of actors and placement groups
        assert time.monotonic() < deadline, free
        time.sleep(0.1)
    ray.shutdown()


def pair(method: str) -> Drawing:
    """``a`` does something, ``b`` reads it."""
    drawing = Drawing().actor("a", TROUBLE).actor("b", COUNTER).input("x")
    return drawing.task("t", f"a.{method}", {"x": "inputs.x"}).task("u", "b.echo", {"x": "t"})


def pid_of(engine: Engine, actor: int) -> int:
    return int(engine.actors.homes[actor].pid)  # type: ignore[attr-defined]


def test_a_result_that_cannot_be_pickled_names_its_task_and_the_graph_goes_on() -> None:
    with started(pair("lock").graph("u"), options()) as engine:
        for i in range(2):
            with pytest.raises(TaskRaised, match=r"the result of task t .* cannot pickle '_thread\.lock'") as caught:
                one(engine, 1)
            assert (caught.value.failure.kind, caught.value.failure.iteration) == ("unserialisable", i)


@pytest.mark.parametrize(
    ("output", "task", "said"),
    [
        ("t", "t", "the result of task t .* cannot be read in the driver: ModuleNotFoundError: .* 'only_here'"),
        ("u", "u", "task u .* got a value .* cannot be read in its process: ModuleNotFoundError: .* 'only_here'"),
    ],
)
def test_a_result_that_the_other_side_cannot_import_is_said(output: str, task: str, said: str) -> None:
    drawing = pair("hidden")
    graph = drawing.graph("t", unread=("u",)) if output == "t" else drawing.graph("u")
    with started(graph, options()) as engine:
        for i in range(5):  # more than there are buffers
            with pytest.raises(TaskRaised, match=said) as caught:
                one(engine, 1)
            failure = caught.value.failure
            assert (failure.kind, failure.task, failure.iteration) == ("unreadable", task, i)


def test_constructors_and_imports_that_fail_are_told_with_the_users_frames() -> None:
    drawing = Drawing().actor("ok", COUNTER).actor("bad", "plain.py:BadConstructor").input("x")
    drawing.task("t", "bad.echo", {"x": "inputs.x"}).task("u", "ok.echo", {"x": "t"})
    failure = error_of(drawing.graph("u"), [1], options()).failure
    assert failure.kind == "constructor" and failure.actor == "bad" and failure.path == ("actors", "bad")
    assert "RuntimeError: no such checkpoint" in failure.message and "in helper" in failure.traceback
    assert "worker.py" not in failure.traceback


def test_an_import_that_fails_in_the_actor_only_is_told() -> None:
    drawing = Drawing().actor("a", "only_driver.py:Shy").input("x").task("t", "a.echo", {"x": "inputs.x"})
    failure = error_of(drawing.graph("t"), [1], options()).failure
    assert failure.kind == "import" and "not in an actor" in failure.message and "only_driver.py" in failure.traceback


def test_a_constructor_that_hangs_is_told_with_its_stack_and_so_is_a_call_outside_the_graph() -> None:
    drawing = Drawing().actor("a", "plain.py:Slow", 0).actor("b", "plain.py:Slow", 60).input("x")
    drawing.task("t", "a.sleep", {"x": "inputs.x"}).task("u", "b.sleep", {"x": "t"})
    began = time.monotonic()
    error = error_of(drawing.graph("u"), [0], options(timeouts={"start": 2.0}))
    assert isinstance(error, Stalled) and time.monotonic() - began < 15
    failure = error.failure
    assert (failure.actor, failure.path, failure.phase) == ("b", ("actors", "b"), "startup") and failure.node
    assert failure.message.startswith("actor b: its constructor did not return within 2 s; it is at ")
    assert failure.traceback.endswith("in __init__: time.sleep(seconds)")
    said = r"actor a: its call of sleep did not return within 2 s; it is at .* in sleep"
    given = options(timeouts={"start": 2.0})
    with started(pair("sleep").graph("u"), given) as engine, pytest.raises(Stalled, match=said):
        engine.call(0, "sleep", {"x": 60})


@pytest.mark.parametrize("when", ["in a task", "between iterations", "before compile"])
def test_a_killed_actor_is_named_at_once(when: str, tmp_path: pathlib.Path) -> None:
    engine = ENGINES["compiled"](pair("die").graph("u"), options(log_dir=tmp_path))
    try:
        engine.place()
        if when == "before compile":
            os.kill(pid_of(engine, 0), signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(ActorDied, match=r"actor a \(pid \d+ on .*\) died: .*; its log is .*a\.log") as caught:
            engine.compile()
            engine.begin(Phase("measure", 10))
            one(engine, 1)
            if when == "between iterations":
                os.kill(pid_of(engine, 0), signal.SIGKILL)
                time.sleep(0.5)
            one(engine, 1 if when == "between iterations" else -1)
        assert time.monotonic() - began < 10 and caught.value.failure.actor == "a"
        if when != "before compile":
            with pytest.raises(ActorDied, match="actor a"):
                one(engine, 1)
    finally:
        began = time.monotonic()
        engine.teardown()
        assert time.monotonic() - began < 10


def kill_soon(engine: Engine) -> threading.Timer:
    timer = threading.Timer(0.3, os.kill, (pid_of(engine, 0), signal.SIGKILL))
    timer.start()
    return timer


def test_an_actor_that_is_killed_while_the_graph_is_compiled_is_named() -> None:
    """Its buffers are so large that compiling takes seconds."""
    engine = ENGINES["compiled"](pair("die").graph("u"), options(engine={"buffer": 128 * 2**20}, inflight=8))
    try:
        engine.place()
        timer, began = kill_soon(engine), time.monotonic()
        with pytest.raises(ActorDied, match=r"actor a \(pid \d+ on .*\) died"):
            engine.compile()
        assert time.monotonic() - began < 15
        timer.join()
    finally:
        engine.teardown()


def test_an_actor_that_is_killed_while_it_is_taken_down_keeps_nobody_waiting() -> None:
    with started(pair("linger").graph("u"), options()) as engine:
        assert one(engine, 60) == [60]
        pids = [pid_of(engine, actor) for actor in (0, 1)]
        timer, began = kill_soon(engine), time.monotonic()
        engine.teardown()
        assert time.monotonic() - began < 8
        timer.join()
    assert_gone(pids)


def test_a_large_payload_arrives() -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", TROUBLE).input("n")
    drawing.task("t", "a.large", {"n": "inputs.n"}).task("u", "b.length", {"x": "t"})
    assert run(drawing.graph("u"), [[300_000_000]] * 2, options()) == [[300_000_000]] * 2


def test_two_tasks_that_wait_for_each_other_are_both_named(tmp_path: pathlib.Path) -> None:
    drawing = Drawing().actor("a", TROUBLE).actor("b", TROUBLE).input("x")
    files = {"mine": str(tmp_path / "1"), "other": str(tmp_path / "2")}
    drawing.task("t", "a.meet", {"x": "inputs.x"}, consts=files)
    drawing.task("u", "b.meet", {"x": "inputs.x"}, consts={"mine": files["other"], "other": files["mine"]})
    graph = drawing.graph("t", "u")
    with started(graph, options(timeouts={"stall": 2.0})) as engine:
        assert one(engine, 0) == [0, 0]
        for file in tmp_path.iterdir():
            file.unlink()
        with pytest.raises(Stalled, match="no task began or ended in 2 s") as caught:
            one(engine, 1)
    first, second = caught.value.failure.waiting
    assert "is in t, iteration 1, for" in first and "in meet: time.sleep(0.01)" in first
    assert "is in u, iteration 1, for" in second and "in meet: time.sleep(0.01)" in second


def test_a_task_that_hangs_ends_in_a_stall_with_its_stack_and_who_waits_for_it() -> None:
    with started(pair("sleep").graph("u"), options(timeouts={"stall": 2.0})) as engine:
        assert one(engine, 0) == [0]
        began = time.monotonic()
        with pytest.raises(
            Stalled, match=r"no task began or ended in 2 s: actor a has been in task t \(a\.sleep\)"
        ) as e:
            one(engine, 60)
        assert 2 <= time.monotonic() - began < 8
        failure = e.value.failure
        assert (failure.kind, failure.task, failure.iteration, failure.actor) == ("stall", "t", 1, "a")
        assert "in sleep: time.sleep(x)" in failure.traceback
        assert failure.waiting[0].startswith("a (pid ") and "is in t, iteration 1" in failure.waiting[0]
        assert "waits to run u, iteration 1, for t on a" in failure.waiting[1]
        saved = engine.rescue()
        assert saved is not None and [len(each.start) for each in saved.times] == [1, 1]
        assert saved.times[0].end[0] <= saved.times[1].start[0] and set(saved.peaks) == {"a", "b"}


def test_the_first_iteration_has_its_own_deadline() -> None:
    error = error_of(pair("sleep").graph("u"), [60], options(timeouts={"first": 2.0}))
    assert isinstance(error, Stalled) and "the first iteration is not done in 2 s" in error.failure.message


def test_a_task_with_a_timeout_of_its_own_may_be_slow() -> None:
    drawing = Drawing().actor("a", TROUBLE).input("x")
    drawing.task("t", "a.sleep", {"x": "inputs.x"}, timeout=6.0)
    with started(drawing.graph("t"), options(timeouts={"stall": 1.0})) as engine:
        assert one(engine, 0) == [0] and one(engine, 3) == [3]
        with pytest.raises(Stalled, match="has been in task t"):
            one(engine, 60)


def test_a_long_run_of_short_tasks_is_no_stall() -> None:
    drawing = Drawing().actor("a", TROUBLE).input("x")
    for n in range(8):
        drawing.task(f"t{n}", "a.sleep", {"x": f"t{n - 1}" if n else "inputs.x"})
    with started(drawing.graph("t7"), options(timeouts={"stall": 1.0})) as engine:
        assert one(engine, 0) == [0] and one(engine, 0.4) == [0.4]


def test_where_tells_tasks_and_stacks_while_the_driver_waits() -> None:
    with started(pair("sleep").graph("u"), options()) as engine:
        engine.submit([1.5])
        time.sleep(0.7)
        began = time.monotonic()
        a, b = engine.where()
        assert time.monotonic() - began < 1
        assert (a.task, a.iteration, b.task, b.upcoming) == (0, 0, None, 1) and 0.2 < a.seconds < 1.5
        assert a.stack[-1].endswith("in sleep: time.sleep(x)") and a.pid == pid_of(engine, 0)
        assert engine.fetch().values == [1.5]


def test_more_cpus_than_there_are_is_refused_with_both_numbers() -> None:
    drawing = Drawing().actor("a", COUNTER, num_cpus=99).input("x").task("t", "a.echo", {"x": "inputs.x"})
    began = time.monotonic()
    error = error_of(drawing.graph("t"), [1], options())
    assert isinstance(error, NotAble) and "asked for are 99 CPU, this Ray has 4 CPU" in error.failure.message
    assert time.monotonic() - began < 5


def test_cpus_that_others_hold_are_waited_for_until_the_deadline() -> None:
    holder = Drawing().actor("a", COUNTER, num_cpus=3).input("x").task("t", "a.echo", {"x": "inputs.x"})
    with started(holder.graph("t"), options()):
        error = error_of(holder.graph("t"), [1], options(timeouts={"place": 1.0}))
        assert isinstance(error, NotAble) and "free are 1 CPU" in error.failure.message
        assert "waited 1 s" in error.failure.message


def test_gpus_are_looked_for_before_anything_starts_and_a_rehearsal_needs_none() -> None:
    drawing = Drawing().actor("g", COUNTER, num_gpus=1).input("x").task("t", "g.echo", {"x": "inputs.x"})
    error = error_of(drawing.graph("t"), [1], options())
    assert isinstance(error, NotAble) and error.failure.path == ("actors", "g")
    assert "ask for 1 GPUs (g (1)), and this machine has 0; --rehearse" in error.failure.message
    with started(drawing.graph("t"), options(rehearse=True)) as engine:
        assert one(engine, 1) == [1]


def test_options_and_environments_that_ray_refuses_are_told() -> None:
    drawing = Drawing().actor("a", COUNTER, options={"runtime_env": {"working_dir": "/nowhere"}}).input("x")
    drawing.task("t", "a.echo", {"x": "inputs.x"})
    error = error_of(drawing.graph("t"), [1], options())
    assert isinstance(error, NotAble) and "actor a: Ray refuses its options: /nowhere" in error.failure.message


def test_teardown_ends_an_actor_that_hangs_and_can_be_called_twice() -> None:
    with started(pair("sleep").graph("u"), options(timeouts={"teardown": 8.0})) as engine:
        engine.submit([60])
        time.sleep(0.3)
        pids = [pid_of(engine, actor) for actor in (0, 1)]
        began = time.monotonic()
        engine.teardown()
        engine.teardown()
        assert time.monotonic() - began < 8
    assert_gone(pids)


def assert_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") and not is_zombie(pid) for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.1)


def is_zombie(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from engines_running import one, options, started
from graphs import Drawing
from cgspec import raynames
from cgspec.errors import RunError
drawing = Drawing().actor("a", "plain.py:Trouble").input("x").task("t", "a.{method}", {{"x": "inputs.x"}})
try:
    with started(drawing.graph("t"), options()) as engine:
        print("notes", engine.notes, flush=True)
        print("raylet", raynames.raylet_pid(), flush=True)
        print("pids", engine.actors.homes[0].pid, flush=True)
        one(engine, {value})
except RunError as error:
    print(error.failure.kind, flush=True)
    sys.exit(error.exit_code)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def process(method: str, value: str, **environ: str) -> subprocess.Popen[str]:
    script = SCRIPT.format(tests=str(ROOT.parent), method=method, value=value)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environ},
    )


def test_an_unreadable_result_ends_the_process_with_its_code_and_not_a_crash() -> None:
    child = process("hidden", "1")
    out, err = child.communicate(timeout=90)
    assert (child.returncode, out.splitlines()[0], out.split()[-1], err) == (4, "notes []", "unreadable", "")


def test_a_death_is_not_spilled_and_what_the_environment_says_is_not_followed(tmp_path: pathlib.Path) -> None:
    child = process("die", "-1", RAY_ADDRESS="127.0.0.1:9", RAY_CGRAPH_ENABLE_TORCH_PROFILING="1")
    out, err = child.communicate(timeout=90)
    assert (child.returncode, out.split()[-1], err) == (5, "actor-died", "")
    assert "RAY_ADDRESS=127.0.0.1:9 is not followed" in out.splitlines()[0]
    assert not list(pathlib.Path("/dev/shm").glob(f"sem.*{out.splitlines()[1].split()[1]}-*"))


def test_ctrl_c_ends_a_hanging_run_and_all_of_its_processes() -> None:
    child = process("sleep", "60")
    assert child.stdout is not None
    raylet, pid = (int(line.split()[1]) for line in [child.stdout.readline() for _ in range(3)][1:])
    time.sleep(0.5)
    began = time.monotonic()
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out.strip(), err) == (130, "interrupted", "")
    assert time.monotonic() - began < 15
    assert_gone([pid, raylet])
