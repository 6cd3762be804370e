"""The table of profilers, and what a profiler does inside a worker: a watch over one phase.

Every actor imports this package: it loads neither torch, nvtx, ray nor pydantic.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from cgspec.spec import ProfileSpec


@dataclass(frozen=True)
class WatchJob:
    """What a worker is asked to watch in one phase; the fields are those of ``ProfileSpec``.

    ``rank`` is the actor's number, of ``world_size``: by it tools tell the traces of a run apart. ``gpu`` says whether
    it has one.
    """

    kind: str
    actor: str
    warmup: int
    iterations: int
    shapes: bool = False
    memory: bool = False
    stacks: bool = False
    flops: bool = False
    nvtx: bool = False
    gpu: bool = False
    rank: int = 0
    world_size: int = 1


class Watch(Protocol):
    """A profiler of one phase in one worker; all but making and ``finish`` happens on the graph's thread."""

    def before(self, iteration: int) -> None:
        """An iteration begins on this actor."""

    def after(self, iteration: int) -> None:
        """It ended."""

    def enter(self, name: str) -> None:
        """A task begins."""

    def leave(self) -> None:
        """It ended."""

    def cut(self) -> None:
        """The phase ends before its last iteration."""

    def finish(self) -> tuple[Mapping[str, bytes], Sequence[str]]:
        """Ends the watch after the phase: files by name, and notes."""


class Ranges:
    """The part of a watch that concerns tasks only, for workers that share one process and one watch."""

    def __init__(self, watch: Watch) -> None:
        self.enter, self.leave = watch.enter, watch.leave

    def before(self, iteration: int) -> None:
        pass

    def after(self, iteration: int) -> None:
        pass

    def cut(self) -> None:
        pass

    def finish(self) -> tuple[Mapping[str, bytes], Sequence[str]]:
        return {}, ()


@dataclass(frozen=True)
class Profiler:
    """One profiler.

    Attributes:
        module: the submodule whose ``make(job)`` makes its watch.
        watches: whether a profile of this kind needs a watch in the workers.
    """

    module: str
    watches: Callable[[ProfileSpec], bool]


PROFILERS: dict[str, Profiler] = {
    "none": Profiler("", lambda profile: False),
    "timeline": Profiler("", lambda profile: False),
    "torch": Profiler("torch", lambda profile: True),
    "nvtx": Profiler("nvtx", lambda profile: True),
    "nsight": Profiler("capture", lambda profile: True),
}
"""Profiler kinds, as in ``profile.kind``; ``timeline`` is what the flight recorder does anyway."""


def make_watch(job: WatchJob) -> Watch:
    """The watch of a job; imports what it needs."""
    module = importlib.import_module(f"cgspec.profilers.{PROFILERS[job.kind].module}")
    return cast(Watch, module.make(job))
