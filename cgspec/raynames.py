"""Every private name of Ray that cgspec touches, each in one function that checks that it is still there.

A test per function fails when Ray moves the name. Nothing here imports ray at module level.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

READ_ERROR = "RaySystemError"
"""The class of what arrives in place of a value that could not be read; told by name, since the worker has no ray."""


class Moved(RuntimeError):
    """Ray has moved a private name that cgspec needs; the message names it."""


def _need(owner: Any, name: str) -> Any:
    if not hasattr(owner, name):
        raise Moved(f"Ray has moved {getattr(owner, '__name__', owner)}.{name}; this cgspec does not fit this Ray")
    return getattr(owner, name)


def plain_class(found: Any) -> Any:
    """The user's plain class behind ``@ray.remote``; anything else as it is."""
    metadata = getattr(found, "__ray_metadata__", None)
    if metadata is None:
        return found
    modified = _need(metadata, "modified_class")
    return getattr(modified, "__ray_actor_class__", modified)


def read_error(error: Any) -> str:
    """Why a value could not be read; lets go of the frames that hold its buffer.

    They would block the channel's next read, and end the process with a segmentation fault once Ray is gone.
    """
    cause = _need(error, "client_exc")
    if not isinstance(cause, BaseException):
        return str(cause)
    cause.__traceback__ = None
    return f"{type(cause).__name__}: {cause}".splitlines()[0]


def compile_options(*, inflight: int, buffered: int, overlap: bool) -> dict[str, Any]:
    """What ``experimental_compile`` is given."""
    return {
        "_max_inflight_executions": inflight,
        "_max_buffered_results": buffered,
        "_overlap_gpu_communication": overlap,
    }


def transport_options(*, static_shape: bool, direct_return: bool) -> dict[str, Any]:
    """What ``with_tensor_transport`` is given beside kind and device."""
    return {"_static_shape": static_shape, "_direct_return": direct_return}


def spare_half_made_graphs() -> None:
    """Lets a graph whose making was interrupted go without a word: Ray would take it down, and stumble over what it
    does not have yet."""
    from ray.dag.compiled_dag_node import CompiledDAG

    _need(CompiledDAG, "is_teardown")
    CompiledDAG._is_teardown = True  # one that is made says for itself that it is not


def loop_refs(compiled: Any) -> dict[Any, Any]:
    """Actor handle to the reference of its endless loop, which is ready only when the loop has ended."""
    found: dict[Any, Any] = _need(compiled, "worker_task_refs")
    return found


def driver_ends(compiled: Any) -> tuple[list[tuple[Any, int | None]], list[Any]]:
    """The driver's channels of a compiled graph.

    Returns:
        What it writes, each with the place of its argument (None: there is one), and what it reads, by output.
    """
    writer, reader = _need(compiled, "_dag_submitter"), _need(compiled, "_dag_output_fetcher")
    return _written(writer), _read(reader)


def _written(writer: Any) -> list[tuple[Any, int | None]]:
    """A writer's channels, each with the place of its value among those that are written (None: it is all of them).

    A channel that chooses by reader has several beneath where its readers are not all alike.
    """
    found: list[tuple[Any, int | None]] = []
    for channel, place in zip(_need(writer, "_output_channels"), _need(writer, "_output_idxs"), strict=True):
        beneath = [channel]
        if hasattr(channel, "_channel_dict"):
            channel.ensure_registered_as_writer()
            beneath = list(_need(channel, "_channels"))
        found.extend((each, place) for each in beneath)
    return found


def _read(reader: Any) -> list[Any]:
    """A reader's channels; of one that chooses by reader, that of this process."""
    found = []
    for channel in _need(reader, "_input_channels"):
        beneath = channel
        if hasattr(channel, "_channel_dict"):
            channel.ensure_registered_as_reader()
            beneath = channel._channel_dict[_need(channel, "_resolve_actor_id")()]
        found.append(beneath)
    return found


class _Loops:
    """Stands for one of Ray's loops while graphs are compiled; pickled, it is what the thread asked for, or Ray's."""

    def __init__(self, rays: Callable[..., None]) -> None:
        self.rays = rays
        self.asked: dict[int, Callable[..., None]] = {}

    def __reduce__(self) -> tuple[Any, tuple[Any, str]]:
        found = self.asked.get(threading.get_ident(), self.rays)
        return getattr, (sys.modules[found.__module__], found.__name__)


LOOPS = ("do_exec_tasks", "do_profile_tasks")
"""What Ray gives an actor to run; the second in its event mode, which is not used where cgspec runs a graph."""
_REPLACING = threading.Lock()


@contextlib.contextmanager
def loop_replaced(loop: Callable[..., None]) -> Iterator[None]:
    """A graph that this thread compiles meanwhile has its actors run ``loop`` instead of Ray's, in the same manner.

    Args:
        loop: a function of a module, which every actor imports.
    """
    from ray.dag import compiled_dag_node as module

    me = threading.get_ident()
    with _REPLACING:
        for name in LOOPS:
            there = _need(module, name)
            stand_in = there if isinstance(there, _Loops) else _Loops(there)
            stand_in.asked[me] = loop
            setattr(module, name, stand_in)
    try:
        yield
    finally:
        with _REPLACING:
            for name in LOOPS:
                stand_in = getattr(module, name)
                del stand_in.asked[me]
                if not stand_in.asked:
                    setattr(module, name, stand_in.rays)


def ray_loop() -> Callable[..., None]:
    """Ray's own loop."""
    from ray.dag import compiled_dag_node

    found: Callable[..., None] = _need(compiled_dag_node, "do_exec_tasks")
    return found


@dataclass(frozen=True)
class Parts:
    """What one task of the loop does in a round.

    Attributes:
        reads: the channels that it reads.
        arguments: of its method, in order: a place in ``reads``, or None and a constant.
        writes: the channels that it writes, each with the place of its value in what the method returns (None: all).
    """

    reads: list[Any]
    arguments: list[tuple[int | None, Any]]
    writes: list[tuple[Any, int | None]]


def parts_of(task: Any) -> Parts:
    """The parts of an ``ExecutableTask``, in the process that executes it."""
    arguments = [(_need(given, "channel_idx"), _need(given, "input_variant")) for given in _need(task, "task_inputs")]
    return Parts(_read(_need(task, "input_reader")), arguments, _written(_need(task, "output_writer")))


def replace_operation(task: Any, execute: Callable[..., bool]) -> None:
    """Has the loop of this process call ``execute`` for what it asks an ``ExecutableTask``; True ends the loop."""
    _need(task, "exec_operation")
    task.exec_operation = execute


def lost_while_growing(error: BaseException) -> bool:
    """Whether a write that found no room was a larger channel's first: its readers will never learn of that one."""
    from ray.experimental.channel.shared_memory_channel import Channel

    growing, at = _need(Channel, "_resize_channel_if_needed").__code__, error.__traceback__
    while at is not None and at.tb_frame.f_code is not growing:
        at = at.tb_next
    return at is not None


def operations() -> tuple[Any, Any, Any]:
    """What the loop asks a task for: to read, to compute, to write."""
    from ray.dag import dag_node_operation

    kinds = _need(dag_node_operation, "_DAGNodeOperationType")
    return kinds.READ, kinds.COMPUTE, kinds.WRITE


@dataclass(frozen=True)
class Loop:
    """The graph's loop of this process.

    Attributes:
        tasks: what it executes, in the order of binding.
        first: the place among them of the one that its round begins with.
        waits: whether it is at the beginning of a round.
    """

    tasks: list[Any]
    first: int
    waits: bool


def find_loop(frames: Iterable[types.FrameType]) -> Loop | None:
    """The graph's loop, found in the frame that executes it; None if there is none.

    The driver's copies know the channels as they were compiled. One that was outgrown since can only be closed here:
    otherwise its reader's loop never ends.
    """
    from ray.dag import compiled_dag_node

    code = _need(compiled_dag_node, "do_exec_tasks").__code__
    for frame in frames:
        at: types.FrameType | None = frame
        while at is not None:
            if at.f_code is code:
                schedule, now = at.f_locals["schedule"], at.f_locals.get("operation")
                return Loop(at.f_locals["tasks"], schedule[0].exec_task_idx, now is schedule[0])
            at = at.f_back
    return None


def time_operations(tasks: list[Any], marks: Mapping[str, Callable[[int, int, int], None]]) -> Callable[[], None]:
    """Times what the loop does with each of its tasks: READ, COMPUTE and WRITE.

    Args:
        tasks: those of a ``Loop``.
        marks: by operation, what is told the task's place, and start and end in ns of ``time.monotonic_ns``.

    Returns:
        What undoes it.
    """
    before = [vars(task).get("exec_operation") for task in tasks]
    for place, task in enumerate(tasks):
        replace_operation(task, _timed(task.exec_operation, place, marks))

    def undo() -> None:
        for task, replaced in zip(tasks, before, strict=True):
            del task.exec_operation
            if replaced is not None:
                replace_operation(task, replaced)

    return undo


def _timed(execute: Callable[..., bool], place: int, marks: Mapping[str, Callable[[int, int, int], None]]) -> Any:
    def timed(owner: Any, operation: Any, *more: Any) -> bool:
        start = time.monotonic_ns()
        done = execute(owner, operation, *more)
        marks[operation.value](place, start, time.monotonic_ns())
        return done

    return timed


def count_gpus() -> int:
    """GPUs that a local Ray would find on this machine."""
    from ray._private.accelerators import nvidia_gpu

    manager = _need(nvidia_gpu, "NvidiaGPUAcceleratorManager")
    visible = _need(manager, "get_current_process_visible_accelerator_ids")()
    present = int(_need(manager, "get_current_node_num_accelerators")())
    return present if visible is None else min(present, len(visible))


UNNEEDED = ("start_api_server", "start_monitor", "start_log_monitor")
"""What Ray's node starts for others: the dashboard's server, the autoscaler, the forwarding of logs to the driver."""
AGENT_PORTS = ("METRICS_AGENT_PORT_NAME", "METRICS_EXPORT_PORT_NAME", "DASHBOARD_AGENT_LISTEN_PORT_NAME")
"""What the raylet waits to be told by the dashboard's agent; -1 is its word for a service that there is not."""
PARTING = 5.0
"""Seconds that the workers of a Ray that was shut down get to be gone."""
BY_PIPE = "RAY_enable_pipe_based_agent_to_parent_health_check"
"""Environment that says how an agent learns of the raylet's end; by default its stdin is a pipe that closes then."""


@contextlib.contextmanager
def start_little(workers: int, *, port: int | None) -> Iterator[None]:
    """A local Ray that starts meanwhile starts what a run needs, and nothing that it would wait for in vain.

    That leaves out the dashboard, its agent, the autoscaler and the log monitor. Where Ray has moved one of these
    names, it starts the more: nothing else changes.

    Args:
        workers: processes that are started at once, before an actor asks for one.
        port: where the agent of runtime environments will listen: it comes up in the background, and whoever needs it
            waits for it. None: this run does, and Ray starts it as ever.
    """
    from ray._private import node, services

    with contextlib.ExitStack() as stack:
        for name in UNNEEDED:
            _swap(stack, node.Node, name, lambda *_, **__: None)
        start = getattr(services, "start_ray_process", None)

        def start_less(command: Sequence[str], *rest: Any, **more: Any) -> Any:
            assert start is not None
            return start(little_raylet(command, workers, port=port), *rest, **more)

        _swap(stack, services, "start_ray_process", start_less)
        yield


def _swap(stack: contextlib.ExitStack, owner: Any, name: str, new: Any) -> None:
    """Replaces a name while the stack is open, if it is there."""
    if hasattr(owner, name):
        stack.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, new)


def little_raylet(command: Sequence[str], workers: int, *, port: int | None) -> list[str]:
    """The raylet's command, so that it starts little; any other command as it is."""
    flags = dict(item.split("=", 1) for item in command if item.startswith("--") and "=" in item)
    before = dict(flags)
    if "--num_prestart_python_workers" in flags and "--maximum_startup_concurrency" in flags:
        flags["--num_prestart_python_workers"] = str(workers)
        flags["--maximum_startup_concurrency"] = str(max(1, min(workers, 2 * (os.cpu_count() or 1))))
    if "--dashboard_agent_command" in flags and _told_there_is_no_agent(flags):
        flags["--dashboard_agent_command"] = "cat"
    agent, own = flags.get("--runtime_env_agent_command", ""), "--runtime-env-agent-port=0"
    if port is not None and own in agent and flags.get("--runtime_env_agent_port") == "0":
        politely = "nice -n 19 " if shutil.which("nice") else ""
        flags["--runtime_env_agent_command"] = politely + agent.replace(own, f"--runtime-env-agent-port={port}")
        flags["--runtime_env_agent_port"] = str(port)
    return [_changed(item, before, flags) for item in command]


def _changed(item: str, before: dict[str, str], after: dict[str, str]) -> str:
    name = item.partition("=")[0]
    return item if before.get(name) == after.get(name) else f"{name}={after[name]}"


def _told_there_is_no_agent(flags: dict[str, str]) -> bool:
    """Writes down that the dashboard's agent serves nothing, as the agent of a minimal Ray does; False: Ray has moved.

    The raylet ends with its agent, and the agent with the raylet: a process is still needed, and ``cat`` ends when its
    stdin does.
    """
    from ray import _raylet

    owner: Any = _raylet
    there = all(hasattr(owner, name) for name in (*AGENT_PORTS, "persist_port"))
    if not there or BY_PIPE in os.environ or not {"--session_dir", "--node_id"} <= flags.keys():
        return False
    for name in AGENT_PORTS:
        owner.persist_port(flags["--session_dir"], flags["--node_id"], getattr(owner, name), -1)
    return True


def hold_port() -> socket.socket:
    """A free port that stays free for a server which binds it later: it is bound here as well, but not listened on."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    return held


def session_folder() -> pathlib.Path:
    """The folder of this driver's Ray session, not ``session_latest``."""
    from ray._private import worker

    node = _need(worker, "_global_node")
    return pathlib.Path(_need(node, "get_session_dir_path")())


def upload_folder(folder: pathlib.Path, excludes: Sequence[str]) -> str:
    """Packs a folder, without what ``excludes`` and its ``.gitignore`` and ``.rayignore`` name, and hands it to Ray.

    ``ray.init`` does so with the job's ``py_modules``; an actor's may only say where a package is. The package has an
    address of its own: a job whose ``working_dir`` is the same folder has it packed otherwise, under the usual one.

    Returns:
        The package's address.

    Raises:
        ValueError: it is larger than Ray takes.
    """
    from ray._private.runtime_env import packaging

    ignores = os.environ.get("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "0") != "1"
    how: dict[str, Any] = {"include_gitignore": ignores, "excludes": list(excludes)}
    usual = _need(packaging, "get_uri_for_directory")(str(folder), **how)
    address = f"{usual.removesuffix('.zip')}_cgspec.zip"
    with tempfile.TemporaryDirectory() as scratch:
        _need(packaging, "upload_package_if_needed")(address, scratch, str(folder), include_parent_dir=True, **how)
    return str(address)


def raylet_pid() -> int | None:
    """The process of this driver's own raylet; None where Ray was not started here."""
    from ray._private import worker

    started = _need(_need(worker, "_global_node"), "all_processes").get("raylet", ())
    return int(started[0].process.pid) if started else None


def started_by(raylet: int) -> list[Any]:
    """The processes below a raylet, by the psutil that Ray brings along and puts on the path."""
    import psutil

    try:
        return list(psutil.Process(raylet).children(recursive=True))
    except psutil.Error:
        return []


def see_off(processes: list[Any]) -> None:
    """Waits until they have ended: a worker may need a moment longer than the raylet that ended it."""
    deadline = time.monotonic() + PARTING
    while (left := [process for process in processes if lives(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in left:
        _end(process)


def _end(process: Any) -> None:
    import psutil

    with contextlib.suppress(psutil.Error):
        process.kill()


def lives(process: Any) -> bool:
    """Whether a process of ``started_by`` still runs; one that only waits for init to take note of its end does not."""
    import psutil

    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def remove_semaphores(raylet: int) -> None:
    """Removes what a raylet that has ended left in shared memory: two named semaphores per channel of a dead actor."""
    for kind in ("hdr", "obj"):
        for path in pathlib.Path("/dev/shm").glob(f"sem.{kind}{raylet}-*"):
            path.unlink(missing_ok=True)


def remove_session(folder: pathlib.Path) -> None:
    """Removes the folder of a Ray that has ended, and the link to the latest one where it led there."""
    if not folder.name.startswith("session_"):
        raise Moved(f"Ray has moved its session's folder: {folder}; this cgspec does not fit this Ray")
    shutil.rmtree(folder, ignore_errors=True)
    latest = folder.parent / "session_latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink(missing_ok=True)


MONITOR = "CompiledGraphMonitorThread"
"""Ray's thread that takes a graph down whose loops end; it fails where one ends before the graph is all made."""


def redirect_raylet(say: Callable[[str], object]) -> Callable[[], None]:
    """Sends what Ray's listener would print on the driver's stdout (deaths, a page each), and what ends a monitor, to
    ``say``.

    Returns:
        What undoes it.
    """
    from ray._private import worker

    original, hook = _need(worker, "print_to_stdstream"), threading.excepthook

    def listen(data: Any, ignore_prefix: bool) -> None:
        say("\n".join(data.get("lines", ())))

    def ended(error: threading.ExceptHookArgs) -> None:
        if error.thread is not None and error.thread.name == MONITOR:
            say(f"{MONITOR}: {error.exc_value!r}")
        else:
            hook(error)

    worker.print_to_stdstream, threading.excepthook = listen, ended

    def undo() -> None:
        worker.print_to_stdstream, threading.excepthook = original, hook

    return undo


def wait_for_tensors(seconds: float) -> Callable[[], None]:
    """Sets how long Ray Direct Transport waits for a tensor, in this process; then it gives the transfer up.

    Returns:
        What undoes it.
    """
    from ray._private import ray_constants

    before = _need(ray_constants, "RDT_FETCH_FAIL_TIMEOUT_SECONDS")
    ray_constants.RDT_FETCH_FAIL_TIMEOUT_SECONDS = seconds
    return lambda: setattr(ray_constants, "RDT_FETCH_FAIL_TIMEOUT_SECONDS", before)


NOISY = ("ray.dag.compiled_dag_node", "ray._private.serialization", "ray._private.worker")
"""Loggers that print tracebacks of what cgspec reports itself."""

CLEANUP = "RAY_process_group_cleanup_enabled"
"""Environment of a local Ray: ``0`` lets the process group of a worker live on after it (for nsys)."""

BREAKPOINT = "PYTHONBREAKPOINT"
"""Environment that ``ray.init`` sets to its own debugger, for good: the terminal's would be gone from this process."""

SWITCHES = {
    "RAY_CGRAPH_ENABLE_TORCH_PROFILING": "torch",
    "RAY_CGRAPH_ENABLE_NVTX_PROFILING": "nvtx",
    "RAY_CGRAPH_ENABLE_PROFILING": "timeline",
}
"""Environment that makes the graph's loops profile themselves, from their start to the teardown, and the profilers of
cgspec that mean the same."""


def profilers_of_switches(overrides: Iterable[str]) -> list[str]:
    """The profilers that the user's environment chooses; none where an override says ``profile`` itself.

    Args:
        overrides: dotted paths, with or without ``=value``.
    """
    if any(said.partition("=")[0].partition(".")[0].strip() == "profile" for said in overrides):
        return []
    return [kind for name, kind in SWITCHES.items() if os.environ.get(name) == "1"]
