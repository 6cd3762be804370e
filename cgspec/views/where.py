"""``cgspec where``: where a live run is, or that it is over, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cgspec.quantities import show_duration
from cgspec.record import Record
from cgspec.views.summary import WORDS


def text(record: Record, told: dict[str, Any] | None) -> str:
    """For people; ``told`` is what the run says of itself, None where it is over."""
    return "\n".join(_live(record, told) if told is not None else _over(record))


def _live(record: Record, told: dict[str, Any]) -> Iterator[str]:
    yield f"{record.name}: {_progress(told)} (pid {record.pid})"
    for actor, line in zip(told["actors"], told["chain"], strict=True):
        yield line
        if len(actor["stack"]) > 1:
            yield from (f"    {frame}" for frame in actor["stack"])


def _progress(told: dict[str, Any]) -> str:
    if told["phase"] == "startup":
        steps = ", ".join(f"{step} {show_duration(seconds)}" for step, seconds in told["startup"].items())
        return f"starting for {show_duration(told['seconds'])}" + (f"; done: {steps}" if steps else "")
    since = show_duration(told["seconds"])
    since = f"the last one {since} ago" if told["done"] else f"since {since}"
    return f"{told['phase']}, {told['done']:,} of {told['asked']:,} iterations done, {since}"


def _over(record: Record) -> Iterator[str]:
    done = [f"{phase.iterations:,} of {phase.asked:,} iterations of {phase.name}" for phase in record.phases]
    when = f" at {record.ended}" if record.ended else ""
    state = record.state
    yield f"{record.name} is over: {WORDS.get(state, state)}{when}" + (f", after {', '.join(done)}" if done else "")
    if record.failure is not None:
        yield record.failure.message
        yield from record.failure.waiting


def as_data(record: Record, told: dict[str, Any] | None) -> dict[str, Any]:
    """The name, status and pid; of a live run also phase, done, asked, seconds, actors and chain."""
    return {"name": record.name, "status": record.state, "pid": record.pid, **(told or {})}
