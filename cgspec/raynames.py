"""Every private name of Ray that cgspec touches, each in one function that checks that it is still there.

A test per function fails when Ray moves the name. Nothing here imports ray at module level.
"""

from __future__ import annotations

import pathlib
import time
import types
from collections.abc import Callable, Iterable, Mapping
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


def skip_torch_import() -> None:
    """Keeps the graph's loop in this process from importing torch.

    The loop asks ``torch_available``, which imports torch (seconds), to enter a device's context around reads and
    writes; where the process has no GPU there is none to enter. Only for processes without GPU and communicator.
    """
    from ray.experimental.channel import ChannelContext

    context = ChannelContext.get_current()
    _need(context, "_torch_available")
    context._torch_available = False


def loop_refs(compiled: Any) -> dict[Any, Any]:
    """Actor handle to the reference of its endless loop, which is ready only when the loop has ended."""
    found: dict[Any, Any] = _need(compiled, "worker_task_refs")
    return found


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
    from ray.dag import compiled_dag_node

    _need(_need(compiled_dag_node, "ExecutableTask"), "exec_operation")
    for place, task in enumerate(tasks):
        task.exec_operation = _timed(task.exec_operation, place, marks)

    def undo() -> None:
        for task in tasks:
            del task.exec_operation

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


def session_folder() -> pathlib.Path:
    """The folder of this driver's Ray session, not ``session_latest``."""
    from ray._private import worker

    node = _need(worker, "_global_node")
    return pathlib.Path(_need(node, "get_session_dir_path")())


def raylet_pid() -> int | None:
    """The process of this driver's own raylet; None where Ray was not started here."""
    from ray._private import worker

    started = _need(_need(worker, "_global_node"), "all_processes").get("raylet", ())
    return int(started[0].process.pid) if started else None


def remove_semaphores(raylet: int) -> None:
    """Removes what a raylet that has ended left in shared memory: two named semaphores per channel of a dead actor."""
    for kind in ("hdr", "obj"):
        for path in pathlib.Path("/dev/shm").glob(f"sem.{kind}{raylet}-*"):
            path.unlink(missing_ok=True)


def redirect_raylet(say: Callable[[str], object]) -> Callable[[], None]:
    """Sends what Ray's listener would print on the driver's stdout (deaths, a page each) to ``say``.

    Returns:
        What undoes it.
    """
    from ray._private import worker

    original = _need(worker, "print_to_stdstream")

    def listen(data: Any, ignore_prefix: bool) -> None:
        say("\n".join(data.get("lines", ())))

    worker.print_to_stdstream = listen
    return lambda: setattr(worker, "print_to_stdstream", original)


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

SWITCHES = ("RAY_CGRAPH_ENABLE_TORCH_PROFILING", "RAY_CGRAPH_ENABLE_NVTX_PROFILING", "RAY_CGRAPH_ENABLE_PROFILING")
"""Environment that makes the graph's loops profile themselves, from their start to the teardown."""
