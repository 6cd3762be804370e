"""torch.profiler, started and stopped on the graph's own thread at iteration boundaries: a window, one file per actor.

A profiler that is started from an ordinary actor call can miss the graph thread's events
(https://github.com/ray-project/ray/issues/56366).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from cgspec.profilers import WatchJob


def _activities() -> list[ProfilerActivity]:
    return [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]


class TorchWatch:
    """Records ``job.iterations`` iterations after ``job.warmup`` others."""

    def __init__(self, job: WatchJob) -> None:
        self.job = job
        self.ranges: list[record_function] = []
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

    def after(self, iteration: int) -> None:
        if not self.running:
            return
        self.recorded += iteration >= self.job.warmup
        if iteration + 1 >= self.job.warmup + self.job.iterations:
            self._stop()

    def enter(self, name: str) -> None:
        scope = record_function(name)
        scope.__enter__()  # type: ignore[no-untyped-call]
        self.ranges.append(scope)

    def leave(self) -> None:
        self.ranges.pop().__exit__(None, None, None)

    def cut(self) -> None:
        if self.running:
            self._stop()

    def _stop(self) -> None:
        """On the graph's thread: from any other, torch ends the process with a segmentation fault."""
        self.running = False
        if self.recorded:
            self.profiler.stop_trace()

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


def _warm_up() -> None:
    """The process's first start loads Kineto, which takes seconds; here nothing is timed."""
    with profile(activities=_activities()):
        time.sleep(0)


def make(job: WatchJob) -> TorchWatch:
    return TorchWatch(job)
