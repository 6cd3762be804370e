"""By which clock a run's tasks were timed, in a sentence; none where there was no choice."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.quantities import show_duration
from cgspec.record import ActorRecord, Record

MOST = 6
"""Actors that are named."""


def clocks(record: Record) -> Iterator[str]:
    """What is said beside busy times where actors have GPUs."""
    on_cpus = record.rehearsal or record.engine == "local"
    able = [actor for actor in record.actors if actor.num_gpus and actor.busy_us is not None and not on_cpus]
    timed = [actor for actor in able if actor.device_error_us is not None]
    if timed:
        error = max(actor.device_error_us or 0.0 for actor in timed)
        yield (
            f"busy times of {_names(timed)} are by the GPU's clock (CUDA events around each task), "
            f"on the host's to ±{show_duration(error / 1e6)}"
        )
    if missing := [actor for actor in able if actor not in timed]:
        yield (
            f"busy times of {_names(missing)} are by the host's clock, which charges kernels to whoever waits for them"
        )


def _names(actors: list[ActorRecord]) -> str:
    more = f" and {len(actors) - MOST} more" if len(actors) > MOST else ""
    return ", ".join(actor.name for actor in actors[:MOST]) + more
