"""torch.profiler, started and stopped on the graph's own thread at iteration boundaries: a window, one file per actor.

A profiler that is started from an ordinary actor call can miss the graph thread's events
(https://github.com/ray-project/ray/issues/56366).
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from cgspec.profilers import WatchJob


def _activities() -> list[ProfilerActivity]:
    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]


STEP = "ProfilerStep#{}"
"""The name of a range around each recorded iteration, by which Holistic Trace Analysis tells them apart."""


class TorchWatch:
    """Records ``job.iterations`` iterations after ``job.warmup`` others."""

    def __init__(self, job: WatchJob) -> None:
        self.job = job
        self.ranges: list[record_function] = []
        self.step: record_function | None = None
        self.running = False
        self.recorded = 0
        self.notes: list[str] = []
        self.profiler = profile(
            activities=_activities(),
            record_shapes=job.shapes,
            profile_memory=job.memory,
            with_stack=job.stacks,
            with_flops=job.flops,
        )
        _warm_up()

    def before(self, iteration: int) -> None:
        if iteration == 0:
            self.profiler.prepare_trace()
            self.running = True
        if iteration == self.job.warmup:
            self.profiler.start_trace()
            for key, value in _about(self.job).items():
                self.profiler.add_metadata_json(key, json.dumps(value))
        if self.running and iteration >= self.job.warmup:
            self.step = _entered(STEP.format(iteration - self.job.warmup))

    def after(self, iteration: int) -> None:
        if not self.running:
            return
        self._end_step()
        self.recorded += iteration >= self.job.warmup
        if iteration + 1 >= self.job.warmup + self.job.iterations:
            self._stop()

    def enter(self, name: str) -> None:
        self.ranges.append(_entered(name))

    def leave(self) -> None:
        self.ranges.pop().__exit__(None, None, None)

    def cut(self) -> None:
        if self.running:
            self._stop()

    def _stop(self) -> None:
        """On the graph's thread: from any other, torch ends the process with a segmentation fault."""
        self.running = False
        self._end_step()
        if self.recorded:
            self.profiler.stop_trace()

    def _end_step(self) -> None:
        step, self.step = self.step, None
        if step is not None:
            step.__exit__(None, None, None)

    def finish(self) -> tuple[Mapping[str, bytes], Sequence[str]]:
        """The trace; what was not recorded because the phase ended early is said."""
        if self.running:
            return {}, ("the graph ended before the torch profiler had recorded its iterations",)
        if not self.recorded:
            return {}, ("the phase ended before the torch profiler recorded an iteration",)
        if self.recorded < self.job.iterations:
            self.notes.append(f"the torch profiler recorded {self.recorded} of {self.job.iterations} iterations")
        with tempfile.TemporaryDirectory(prefix="cgspec-trace-") as folder:
            path = os.path.join(folder, "trace.json.gz")
            self.profiler.export_chrome_trace(path)
            with open(path, "rb") as file:
                return {f"{self.job.actor}.pt.trace.json.gz": file.read()}, self.notes


def _entered(name: str) -> record_function:
    scope = record_function(name)
    scope.__enter__()  # type: ignore[no-untyped-call]
    return scope


def _about(job: WatchJob) -> dict[str, dict[str, object]]:
    """What the head of a trace says of its actor.

    ``distributedInfo`` is what Holistic Trace Analysis tells traces apart by: each actor is a rank. A rank of
    torch.distributed, which several actors may share, is beside it.
    """
    group = torch.distributed if torch.distributed.is_available() and torch.distributed.is_initialized() else None
    backend = group.get_backend() if group is not None else "none"
    actor: dict[str, object] = {"actor": job.actor, "node": platform.node(), "gpu": _gpu()}
    actor["process_group"] = {"rank": group.get_rank(), "world_size": group.get_world_size()} if group else None
    return {
        "distributedInfo": {"backend": backend, "rank": job.rank, "world_size": job.world_size},
        "cgspec": actor,
    }


def _gpu() -> str | None:
    """The GPU that this process uses; None where it has none, or has not used one yet."""
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return None
    number = torch.cuda.current_device()
    return f"{number}: {torch.cuda.get_device_name(number)}"


def _warm_up() -> None:
    """The process's first start loads Kineto, which takes seconds; here nothing is timed."""
    with profile(activities=_activities()):
        time.sleep(0)


def make(job: WatchJob) -> TorchWatch:
    return TorchWatch(job)
