"""NVTX ranges named after tasks; Nsight Systems and other tools record them, nothing here does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nvtx import nvtx

from cgspec.profilers import WatchJob

DOMAIN = "cgspec"


class NvtxWatch:
    """A range around every task and every iteration."""

    def before(self, iteration: int) -> None:
        nvtx.push_range(f"iteration {iteration}", domain=DOMAIN)

    def after(self, iteration: int) -> None:
        nvtx.pop_range(domain=DOMAIN)

    def enter(self, name: str) -> None:
        nvtx.push_range(name, domain=DOMAIN)

    def leave(self) -> None:
        nvtx.pop_range(domain=DOMAIN)

    def cut(self) -> None:
        pass

    def finish(self) -> tuple[Mapping[str, bytes], Sequence[str]]:
        return {}, ()


def make(job: WatchJob) -> NvtxWatch:
    return NvtxWatch()
