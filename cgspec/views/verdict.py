"""What a run amounts to, in plain words, from its record alone: for the report's top."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.quantities import show_duration
from cgspec.record import PhaseRecord, Record, Times
from cgspec.views.summary import WORDS

GOOD, FAIR, BAD = "good", "fair", "bad"


def mood(record: Record) -> str:
    """``good``, ``fair`` (not over, or not meant to be) or ``bad``."""
    state = record.state
    return GOOD if state == "passed" else FAIR if state in ("running", "interrupted") else BAD


def word(record: Record) -> str:
    """The status in words."""
    return WORDS.get(record.state, record.state)


def sentences(record: Record, *, saved: int = 0) -> Iterator[str]:
    """The verdict, the most important first; ``saved`` measured iterations are in ``samples.csv``."""
    measure = record.phase("measure")
    yield from _ended(record, measure, saved)
    yield from _expectations(record)
    if record.rehearsal:
        yield "This was a rehearsal on CPUs: it shows that the graph works, its times say nothing about GPUs."
    if measure is not None and measure.latency_us is not None:
        yield from _measured(record, measure, measure.latency_us)
    if record.limits is not None and record.limits.advice:
        yield _sentence(record.limits.advice, name=record.limits.busiest_actor)


def _sentence(text: str, *, name: str | None = None) -> str:
    """Text as a sentence; a name at its beginning stays as it is."""
    begun = text if name and text.startswith(name) else text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "?", "!")) else f"{begun}."


def _ended(record: Record, measure: PhaseRecord | None, saved: int) -> Iterator[str]:
    state = record.state
    if state == "killed":
        yield "The process was killed before it could close its record; what is shown was saved until then."
    elif state == "running":
        yield "The run is not over; what is shown was saved until now."
    elif record.failure is not None:
        yield _sentence(record.failure.message, name=record.failure.message)
    if measure is not None and measure.iterations < measure.asked:
        yield f"{measure.iterations:,} of {measure.asked:,} measured iterations were completed."
    elif measure is not None and measure.errors:
        yield f"{measure.errors:,} of {measure.iterations:,} measured iterations raised."
    elif measure is None:
        yield f"{saved:,} measured iterations were saved." if saved else "Nothing was measured."


def _expectations(record: Record) -> Iterator[str]:
    failed = [verdict for verdict in record.expect if verdict.passed is False]
    passed = [verdict for verdict in record.expect if verdict.passed]
    if failed:
        count = len(failed) + len(passed)
        yield "The expectation failed." if count == 1 else f"{len(failed)} of {count} expectations failed."
    elif passed:
        count = len(passed)
        yield {1: "The expectation held.", 2: "Both expectations held."}.get(count, f"All {count} expectations held.")


def _measured(record: Record, measure: PhaseRecord, times: Times) -> Iterator[str]:
    between = ""
    if times.p50_ci is not None:
        between = f" (95% confidence: {_us(times.p50_ci[0])} to {_us(times.p50_ci[1])})"
    yield f"Half of the iterations took at most {_us(times.p50)}{between}, 95 in 100 at most {_us(times.p95)}."
    if record.inflight > 1:
        yield f"That includes queueing: {record.inflight} iterations were under way at once."
    if measure.profiled:
        yield f"It was measured under {measure.profiled}, which costs time."
    if measure.steady not in ("", "steady", "too-few"):
        yield f"The latencies are not steady: {measure.steady_reason}."
    elif measure.steady == "too-few":
        yield f"Whether they are steady cannot be said: {measure.steady_reason}."


def _us(us: float) -> str:
    return show_duration(us / 1e6)
