"""The flight recorder keeps the latest iterations, knows their numbers, and costs next to nothing."""

from __future__ import annotations

import time

from cgspec.recorder import BUDGET, Recorder, capacity_for


def test_everything_is_held_while_the_ring_is_not_full() -> None:
    recorder = Recorder(slots=2, capacity=4)
    for n in range(3):
        recorder.mark(0, 10 * n + 1, 10 * n + 2)
    recorder.mark(1, 5, 6)
    first, starts, ends = recorder.read(0)
    assert (first, list(starts), list(ends)) == (0, [1, 11, 21], [2, 12, 22])
    assert [list(part) for part in recorder.read(1)[1:]] == [[5], [6]]
    assert recorder.counts == [3, 1]


def test_a_full_ring_holds_the_latest_in_order() -> None:
    recorder = Recorder(slots=1, capacity=3)
    for n in range(1, 9):
        recorder.mark(0, n, 100 + n)
    first, starts, ends = recorder.read(0)
    assert (first, list(starts), list(ends)) == (5, [6, 7, 8], [106, 107, 108])


def test_a_ring_that_is_exactly_full_starts_at_its_first() -> None:
    recorder = Recorder(slots=1, capacity=3)
    for n in range(1, 7):
        recorder.mark(0, n, n)
    first, starts, _ = recorder.read(0)
    assert (first, list(starts)) == (3, [4, 5, 6])


def test_skipped_iterations_are_zeros_and_do_not_move_the_latest_mark() -> None:
    recorder = Recorder(slots=1, capacity=3)
    recorder.mark(0, 1, 2)
    recorder.mark(0, 0, 0)
    assert list(recorder.read(0)[2]) == [2, 0]


def test_the_rings_stay_within_their_budget() -> None:
    assert capacity_for(100, 4) == 100
    assert capacity_for(10**9, 100) * 16 * 100 <= BUDGET
    assert capacity_for(0, 0) == 1


def test_a_mark_costs_about_a_microsecond() -> None:
    recorder = Recorder(slots=1, capacity=10_000)
    best = min(_time_marks(recorder) for _ in range(5))
    print(f"{best * 1e9:.0f} ns per mark")
    assert best < 5e-6


def _time_marks(recorder: Recorder) -> float:
    began = time.thread_time()
    for n in range(10_000):
        recorder.mark(0, n, n)
    return (time.thread_time() - began) / 10_000
