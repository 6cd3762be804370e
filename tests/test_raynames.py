"""Each private name of Ray that cgspec touches is still where it was; those of a running Ray are in test_engines."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import pathlib
import pickle
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import ray
from ray.exceptions import RaySystemError
from ray.experimental.channel.intra_process_channel import IntraProcessChannel

from cgspec import raynames


def test_the_plain_class_behind_an_actor_class() -> None:
    class Plain:
        k = 3

    assert raynames.plain_class(ray.remote(Plain)) is Plain
    assert raynames.plain_class(ray.remote(num_cpus=2)(Plain)) is Plain
    assert raynames.plain_class(Plain) is Plain and raynames.plain_class(len) is len


def test_a_value_that_could_not_be_read_lets_go_of_its_frames() -> None:
    assert RaySystemError.__name__ == raynames.READ_ERROR
    try:
        pickle.loads(b"cnowhere_at_all\nThing\n.")
    except ImportError as error:
        found = RaySystemError(error, "a page of text")
        assert error.__traceback__ is not None
        said = raynames.read_error(found)
        assert said == "ModuleNotFoundError: No module named 'nowhere_at_all'" and error.__traceback__ is None


def test_options_with_private_names_are_still_taken() -> None:
    from ray.dag import DAGNode

    compile_takes = inspect.signature(DAGNode.experimental_compile).parameters
    assert raynames.compile_options(inflight=1, buffered=1, overlap=False).keys() <= compile_takes.keys()
    transport_takes = inspect.signature(DAGNode.with_tensor_transport).parameters
    assert raynames.transport_options(static_shape=True, direct_return=True).keys() <= transport_takes.keys()


def test_the_loops_frame_holds_what_it_executes() -> None:
    from ray.dag import compiled_dag_node

    found: list[object] = []

    class Once:
        def prepare(self, overlap_gpu_communication: bool) -> None:
            pass

        def exec_operation(self, *_: object) -> bool:
            loop = raynames.find_loop([inspect.currentframe()])  # type: ignore[list-item]
            assert loop is not None and (loop.first, loop.waits) == (0, len(found) == 0)
            found.extend(loop.tasks)
            return len(found) > 1

    class Operation:
        exec_task_idx, type = 0, None

    only = Once()
    compiled_dag_node.do_exec_tasks(None, [only], [Operation(), Operation()])
    assert found == [only, only] and raynames.find_loop([inspect.currentframe()]) is None  # type: ignore[list-item]
    assert callable(compiled_dag_node.ExecutableTask.cancel)


def test_the_loop_asks_its_tasks_for_each_operation_and_can_be_timed() -> None:
    """As Ray's own event mode does it, whose records name the same three operations."""
    from ray.dag import compiled_dag_node
    from ray.dag.dag_node_operation import _DAGNodeOperationType as Operation

    class Task(compiled_dag_node.ExecutableTask):
        def __init__(self) -> None:
            self.done: list[object] = []

        def _read(self, *_: object) -> bool:
            self.done.append("read")
            return False

        def _compute(self, *_: object) -> bool:
            return False

    source = inspect.getsource(compiled_dag_node.do_exec_tasks)
    assert "tasks[operation.exec_task_idx].exec_operation(" in source
    assert "do_profile_tasks" in inspect.getsource(compiled_dag_node.CompiledDAG._get_or_compile)
    assert [each.value for each in Operation] == ["READ", "COMPUTE", "WRITE"]
    seen: list[tuple[str, int]] = []
    marks = {each.value: lambda place, start, end, name=each.value: seen.append((name, place)) for each in Operation}
    tasks = [Task(), Task()]
    undo = raynames.time_operations(tasks, marks)
    assert tasks[1].exec_operation(None, Operation.COMPUTE, False) is False
    undo()
    tasks[1].exec_operation(None, Operation.COMPUTE, False)
    assert seen == [("COMPUTE", 1)] and "exec_operation" not in vars(tasks[1])
    raynames.replace_operation(tasks[0], lambda *_: True)
    raynames.time_operations(tasks, marks)()
    assert tasks[0].exec_operation() is True
    assert list(raynames.operations()) == list(Operation)


def _loop_of_ours(*_: object) -> None:
    """Stands in for a loop."""


def _another_loop(*_: object) -> None:
    """Stands in for a loop."""


def test_a_graph_that_is_compiled_takes_another_loop() -> None:
    from ray.dag import compiled_dag_node

    source = inspect.getsource(compiled_dag_node.CompiledDAG._get_or_compile)
    for name in raynames.LOOPS:
        assert f"exec_task_func = {name}" in source
    rays = [getattr(compiled_dag_node, name) for name in raynames.LOOPS]
    with raynames.loop_replaced(_loop_of_ours):
        assert _arrived(_sent()) == [_loop_of_ours] * 2
    assert [getattr(compiled_dag_node, name) for name in raynames.LOOPS] == rays
    assert raynames.ray_loop() is rays[0]


def _sent() -> list[bytes]:
    """Each loop as an actor gets it, in a graph that this thread compiles now."""
    from ray.dag import compiled_dag_node

    return [ray.cloudpickle.dumps(getattr(compiled_dag_node, name)) for name in raynames.LOOPS]


def _arrived(sent: list[bytes]) -> list[Any]:
    """In a process that compiles nothing meanwhile."""
    return [ray.cloudpickle.loads(loop) for loop in sent]


def test_a_graph_that_another_thread_compiles_meanwhile_keeps_its_own_loop() -> None:
    rays, ours, another = _arrived(_sent()), [_loop_of_ours] * 2, [_another_loop] * 2
    theirs = raynames.loop_replaced(_another_loop)
    with ThreadPoolExecutor(1) as other:
        with raynames.loop_replaced(_loop_of_ours):
            sent = [_sent(), other.submit(_sent).result()]
            other.submit(theirs.__enter__).result()
            sent += [_sent(), other.submit(_sent).result()]
        sent += [_sent(), other.submit(_sent).result()]
        other.submit(theirs.__exit__, None, None, None).result()
    assert [_arrived(each) for each in sent] == [ours, rays, ours, another, rays, another]
    assert raynames.ray_loop() is rays[0]


def test_the_parts_of_a_task_are_where_its_channels_are() -> None:
    from ray.dag import compiled_dag_node
    from ray.experimental.channel import common

    source = inspect.getsource(compiled_dag_node.ExecutableTask)
    for name in ("self.input_reader.read()", "self.output_writer.write(", "task_input.resolve(", "self.task_inputs"):
        assert name in source
    resolve = inspect.getsource(compiled_dag_node._ExecutableTaskInput)
    assert "channel_results[self.channel_idx]" in resolve and "self.input_variant" in resolve
    task: Any = types.SimpleNamespace()
    task.input_reader = common.SynchronousReader([one := IntraProcessChannel(1), two := IntraProcessChannel(1)])
    task.output_writer = common.SynchronousWriter([three := IntraProcessChannel(1)], [4])
    task.task_inputs = [compiled_dag_node._ExecutableTaskInput(*given) for given in ((7, None), (two, 1), (one, 0))]
    parts = raynames.parts_of(task)
    assert (parts.reads, parts.arguments) == ([one, two], [(None, 7), (1, two), (0, one)])
    assert parts.writes == [(three, 4)]


def test_the_drivers_ends_are_the_channels_beneath_those_that_choose_by_reader() -> None:
    """It writes to all of them, and reads the one that is its own."""
    from ray.experimental.channel import common
    from ray.experimental.channel.shared_memory_channel import CompositeChannel

    here, there = IntraProcessChannel(1), IntraProcessChannel(1)
    x = CompositeChannel(None, [], 1, None, {"a": here, "b": there}, {here, there})
    out = CompositeChannel(None, [], 1, None, {"driver": here, "b": there}, {here, there})
    out._resolve_actor_id = lambda: "driver"
    graph = types.SimpleNamespace(
        _dag_submitter=common.SynchronousWriter([x, there], [0, 1], is_input=True),
        _dag_output_fetcher=common.SynchronousReader([out, there]),
    )
    writes, reads = raynames.driver_ends(graph)
    assert {writes[0], writes[1]} == {(here, 0), (there, 0)} and writes[2:] == [(there, 1)]
    assert reads == [here, there]


def test_an_operation_is_replaced_where_there_is_one() -> None:
    task = types.SimpleNamespace(exec_operation=lambda: False)
    raynames.replace_operation(task, lambda: True)
    assert task.exec_operation()
    with pytest.raises(raynames.Moved, match="exec_operation"):
        raynames.replace_operation(types.SimpleNamespace(), lambda: True)


def test_a_write_that_outgrew_its_buffer_is_told_from_one_that_found_no_room() -> None:
    from ray.experimental.channel.shared_memory_channel import Channel

    grown = types.SimpleNamespace(total_bytes=9, metadata=b"")
    small = types.SimpleNamespace(_typ=types.SimpleNamespace(buffer_size_bytes=1))  # it has not even a writer's name
    with pytest.raises(AttributeError) as told:
        Channel._resize_channel_if_needed(small, grown, 0)
    assert raynames.lost_while_growing(told.value)
    with pytest.raises(AttributeError) as other:
        Channel.read(small)
    assert not raynames.lost_while_growing(other.value)
    assert "self._resize_channel_if_needed(serialized_value, timeout_ms)" in inspect.getsource(Channel.write)


def test_folders_are_packed_as_the_jobs_own_modules_are() -> None:
    from ray._private.runtime_env import packaging, py_modules

    source = inspect.getsource(py_modules.upload_py_modules_if_needed)
    for name, given in (
        ("get_uri_for_directory", {"include_gitignore", "excludes"}),
        ("upload_package_if_needed", {"pkg_uri", "base_directory", "module_path", "include_parent_dir", "excludes"}),
    ):
        assert name in source and given <= set(inspect.signature(getattr(packaging, name)).parameters)


def test_gpus_are_counted_as_ray_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    there = raynames.count_gpus()
    assert isinstance(there, int) and there >= 0
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert raynames.count_gpus() == 0


def test_what_the_raylet_says_can_be_redirected() -> None:
    from ray._private import worker

    said: list[str] = []
    original = worker.print_to_stdstream
    undo = raynames.redirect_raylet(said.append)
    worker.print_to_stdstream({"lines": ["a worker died"], "pid": "raylet", "is_err": False}, ignore_prefix=False)
    undo()
    assert said == ["a worker died"] and worker.print_to_stdstream is original
    assert "print_to_stdstream" in inspect.getsource(worker.listen_error_messages)


def test_what_ends_a_graphs_monitor_is_told_elsewhere() -> None:
    """An actor that dies while a graph is being made ends the monitor's thread with a traceback."""
    from ray.dag import compiled_dag_node

    assert f'self.name = "{raynames.MONITOR}"' in inspect.getsource(compiled_dag_node.CompiledDAG._monitor_failures)
    said: list[str] = []
    others: list[object] = []
    hook, threading.excepthook = threading.excepthook, lambda error: others.append(error.exc_value)
    try:
        undo = raynames.redirect_raylet(said.append)
        for name in (raynames.MONITOR, "mine"):
            thread = threading.Thread(target=lambda: None.close(), name=name)  # type: ignore[attr-defined]
            thread.start()
            thread.join()
        undo()
        assert threading.excepthook(types.SimpleNamespace(exc_value="later")) is None  # type: ignore[arg-type]
    finally:
        threading.excepthook = hook
    assert said == [f"{raynames.MONITOR}: AttributeError(\"'NoneType' object has no attribute 'close'\")"]
    assert [str(other) for other in others] == ["'NoneType' object has no attribute 'close'", "later"]


def test_the_noisy_loggers_and_the_switches_are_still_used() -> None:
    assert all(importlib.util.find_spec(name) for name in raynames.NOISY)
    from ray.dag import constants

    source = inspect.getsource(constants)
    assert all(f'"{switch}"' in source for switch in raynames.SWITCHES)
    with open(importlib.util.find_spec("ray._raylet").origin, "rb") as file:  # type: ignore[union-attr, arg-type]
        assert raynames.CLEANUP.removeprefix("RAY_").encode() in file.read()


def test_what_a_local_ray_starts_is_still_started_in_the_same_way() -> None:
    from ray import _raylet
    from ray._private import node, services

    assert all(f"self.{name}(" in inspect.getsource(node.Node) for name in raynames.UNNEEDED)
    assert all(isinstance(getattr(_raylet, name), str) for name in raynames.AGENT_PORTS)
    assert callable(_raylet.persist_port)
    raylet = inspect.getsource(services.start_raylet)
    said = ("session_dir", "node_id", "maximum_startup_concurrency", "num_prestart_python_workers")
    said += ("dashboard_agent_command", "runtime_env_agent_command", "runtime_env_agent_port", "runtime-env-agent-port")
    assert [name for name in said if f"--{name}=" not in raylet] == [] and "start_ray_process(" in raylet


def test_a_port_that_is_held_is_still_there_for_a_server() -> None:
    async def listen(port: int) -> int:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", port)
        server.close()
        return port

    with raynames.hold_port() as held:
        port = held.getsockname()[1]
        assert asyncio.run(listen(port)) == port


def test_a_name_that_moved_is_named() -> None:
    with pytest.raises(raynames.Moved, match=r"Ray has moved .*worker_task_refs"):
        raynames.loop_refs(object())


def test_the_wait_for_a_tensor_can_be_set() -> None:
    from ray._private import ray_constants
    from ray.experimental.rdt import rdt_manager

    before = ray_constants.RDT_FETCH_FAIL_TIMEOUT_SECONDS
    undo = raynames.wait_for_tensors(7.0)
    try:
        assert ray_constants.RDT_FETCH_FAIL_TIMEOUT_SECONDS == 7.0
        manager = rdt_manager.RDTManager
        reads = getattr(manager, "get_rdt_objects", None) or manager.get_rdt_object  # one by one in older Rays
        assert "ray_constants.RDT_FETCH_FAIL_TIMEOUT_SECONDS" in inspect.getsource(reads)
    finally:
        undo()
    assert before == ray_constants.RDT_FETCH_FAIL_TIMEOUT_SECONDS


def test_a_sessions_folder_is_removed_and_no_other(tmp_path: pathlib.Path) -> None:
    session, other = tmp_path / "session_1", tmp_path / "mine"
    latest = tmp_path / "session_latest"
    for folder in (session / "logs", other):
        folder.mkdir(parents=True)
    latest.symlink_to(session)
    raynames.remove_session(session)
    assert not session.exists() and not latest.is_symlink()
    latest.symlink_to(other)
    for folder in (other, pathlib.Path()):
        with pytest.raises(raynames.Moved):
            raynames.remove_session(folder)
    assert other.exists() and latest.is_symlink()


def test_a_graph_that_was_not_made_goes_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.dag.compiled_dag_node import CompiledDAG

    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    raynames.spare_half_made_graphs()
    half = object.__new__(CompiledDAG)
    del half
    assert said == [] and "self._is_teardown = False" in inspect.getsource(CompiledDAG.__init__)
