"""The worker's side of Nsight: opens and closes the capture on the graph's own thread, with NVTX ranges if wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cgspec.profilers import Watch, WatchJob

NO_CUDA = "torch has no CUDA in its process, so that nothing told nsys to record it: its report may be empty or missing"


def cuda_profiler() -> Any:
    """Has ``start`` and ``stop`` (cudaProfilerStart, cudaProfilerStop); None where torch has no CUDA."""
    import torch

    return torch.cuda.profiler if torch.cuda.is_available() else None


class CaptureWatch:
    """Lets nsys record ``job.iterations`` iterations after ``job.warmup`` others, where the actor has a GPU.

    Without one there is nobody to tell nsys by CUDA: it records such an actor from its start to its end.
    """

    def __init__(self, job: WatchJob) -> None:
        self.job = job
        self.profiler = cuda_profiler() if job.gpu else None
        self.ranges = _ranges(job) if job.nvtx else None
        self.running = False
        self.notes = [NO_CUDA] if job.gpu and self.profiler is None else []

    def before(self, iteration: int) -> None:
        if iteration == self.job.warmup and self.profiler is not None:
            self.running = True
            self._tell(self.profiler.start)
        if self.ranges is not None:
            self.ranges.before(iteration)

    def after(self, iteration: int) -> None:
        if self.ranges is not None:
            self.ranges.after(iteration)
        if iteration + 1 >= self.job.warmup + self.job.iterations:
            self.cut()

    def enter(self, name: str) -> None:
        if self.ranges is not None:
            self.ranges.enter(name)

    def leave(self) -> None:
        if self.ranges is not None:
            self.ranges.leave()

    def cut(self) -> None:
        if self.running and self.profiler is not None:
            self.running = False
            self._tell(self.profiler.stop)

    def _tell(self, what: Callable[[], object]) -> None:
        """What CUDA raises costs the report, not the run."""
        try:
            what()
        except Exception as error:
            self.notes.append(f"nsys could not be told when to record: {type(error).__name__}: {error}")

    def finish(self) -> tuple[Mapping[str, bytes], Sequence[str]]:
        return {}, self.notes


def _ranges(job: WatchJob) -> Watch:
    from cgspec.profilers import nvtx

    return nvtx.make(job)


def make(job: WatchJob) -> CaptureWatch:
    return CaptureWatch(job)
