"""The numbers: against numpy, published tables, and timelines worked out on paper."""

from __future__ import annotations

import random
from array import array

import numpy
import pytest
from jobs import actor, fan, graph, task

from cgspec.analysis import (
    Spans,
    distribution,
    percentile,
    percentile_interval,
    steadiness,
    throughput,
    under_way,
    utilisation,
)
from cgspec.graph import Collective, Group, InputRef, TaskRef
from cgspec.limits import advice, limits

SEED = random.Random(7)
NORMAL = [SEED.gauss(1000, 50) for _ in range(2000)]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101, 1000])
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_percentiles_are_those_of_numpy(count: int, share: float) -> None:
    values = sorted(NORMAL[:count])
    assert percentile(values, share) == pytest.approx(float(numpy.percentile(values, share * 100)))


def test_distribution_of_five_times() -> None:
    found = distribution([5, 1, 4, 2, 3])
    assert found is not None
    assert (found.count, found.p50, found.mean, found.min, found.max) == (5, 3, 3, 1, 5)
    assert found.p95 == pytest.approx(4.8)
    assert found.p50_ci is None and found.p95_ci is None
    assert distribution([]) is None


@pytest.mark.parametrize(
    "count, share, ranks",
    [
        (5, 0.5, None),
        (6, 0.5, (1, 6)),
        (10, 0.5, (2, 9)),
        (20, 0.5, (6, 15)),
        (100, 0.5, (40, 61)),
        (71, 0.95, None),
        (72, 0.95, (64, 72)),
    ],
)
def test_interval_of_a_percentile_has_the_ranks_of_the_binomial_tables(
    count: int, share: float, ranks: tuple[int, int] | None
) -> None:
    assert percentile_interval(range(1, count + 1), share) == ranks


def test_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    draw = random.Random(11)
    covered = 0
    for _ in range(1000):
        low, high = percentile_interval(sorted(draw.expovariate(1) for _ in range(50)), 0.5) or (0.0, 0.0)
        covered += low <= 0.6931471805599453 <= high
    assert 0.94 <= covered / 1000 <= 0.99


def test_interval_of_many_samples_is_narrow_and_quick() -> None:
    low, high = percentile_interval(range(1_000_000), 0.95) or (0, 0)
    assert 949_500 < low < 950_000 < high < 950_500


@pytest.mark.parametrize(
    "submitted, done, first, expected",
    [
        ([0, 10], [5, 15], 0, 10),
        ([0, 2], [5, 9], 0, 9),
        ([0, 2, 3], [9, 9, 9], 0, 9),
        ([0, 2, 20], [5, 9, 30], 1, 17),
        ([], [], 0, 0),
    ],
)
def test_time_under_way_is_the_union_of_the_iterations(
    submitted: list[int], done: list[int], first: int, expected: int
) -> None:
    assert under_way(submitted, done, first) == expected


def test_utilisation_is_busy_time_over_time_under_way() -> None:
    """Two iterations of 10 ns with a pause of 80 between them; 3 + 1 ns busy in each of them."""
    tasks = [Spans(0, [100, 200], [103, 203]), Spans(0, [104, 204], [105, 205])]
    found = utilisation(tasks, [100, 190], [110, 200])
    assert found is not None
    assert (found.busy, found.share) == (4.0, 0.4)


def test_utilisation_counts_only_iterations_that_the_recorder_holds() -> None:
    """Three iterations of 10 ns; of the first the recorder has lost the second task."""
    tasks = [Spans(0, [1, 11, 21], [6, 13, 23]), Spans(1, [14, 24], [17, 27])]
    found = utilisation(tasks, [1, 11, 21], [11, 21, 31])
    assert found is not None
    assert found.busy == 5.0
    assert found.share == 0.5


def test_a_skipped_task_is_not_busy() -> None:
    assert Spans(0, [0, 5, 9], [0, 8, 0]).busy() == [3]


def test_throughput_of_nothing_is_unknown() -> None:
    assert throughput(0, 1.0) is None
    assert throughput(5, 0.0) is None
    assert throughput(50, 2.0) == 25.0


MS = 1e6


def chain(*weights: float) -> tuple[dict[int, float], object]:
    count = len(weights)
    tasks = [task("t0", 0, "echo", {"x": InputRef(0)})]
    tasks += [task(f"t{n}", n, "echo", {"x": TaskRef(n - 1)}) for n in range(1, count)]
    actors = [actor(f"stage.{n}", (n,)) for n in range(count)]
    return dict(enumerate(weights)), graph({"x": 1}, actors, tasks, [("t", TaskRef(count - 1))])


def test_pipeline_of_2_5_and_3_ms_is_limited_to_10_ms_and_200_per_second() -> None:
    busy, pipeline = chain(2 * MS, 5 * MS, 3 * MS)
    found = limits(pipeline, busy, busy)
    assert found is not None
    assert found.critical_path == 10 * MS
    assert found.path == ("t0", "t1", "t2")
    assert (found.actor, 1e9 / found.busiest) == ("stage.1", 200.0)


def test_tasks_of_one_actor_follow_each_other_on_the_critical_path() -> None:
    """double 1, same 4; then left 2 and right 3 on one actor: left waits for double, right for both: max(3, 4) + 3."""
    busy = {0: 1.0, 1: 4.0, 2: 2.0, 3: 3.0}
    found = limits(fan(), busy, busy)
    assert found is not None
    assert (found.critical_path, found.path) == (7.0, ("same", "right"))
    assert (found.busiest, found.actor) == (5.0, "receiver")


def test_a_collective_weighs_what_its_last_member_spent_in_it() -> None:
    """fwd takes 2 and 6; the allreduce 5 where it waits for 4, and 1 where it does not."""
    tasks = [
        task("fwd.0", 0, "echo", {"x": InputRef(0)}),
        task("fwd.1", 1, "echo", {"x": InputRef(0)}),
        task("sum.0", 0, "", {0: TaskRef(0)}, collective=Collective("allreduce", "sum", 0, 0)),  # type: ignore[dict-item]
        task("sum.1", 1, "", {0: TaskRef(1)}, collective=Collective("allreduce", "sum", 0, 1)),  # type: ignore[dict-item]
    ]
    actors = [actor("a.0", (0, 2)), actor("a.1", (1, 3))]
    ring = graph({"x": 1}, actors, tasks, [("s", TaskRef(2))], groups=(Group("sum", (2, 3)),))
    busy = {0: 2.0, 1: 6.0, 2: 5.0, 3: 1.0}
    found = limits(ring, busy, busy)
    assert found is not None
    assert found.critical_path == 7.0
    assert found.path[0] == "fwd.1"
    assert (found.busiest, found.actor) == (7.0, "a.1")


def test_there_are_no_limits_without_times() -> None:
    assert limits(fan(), {}, {}) is None


def test_advice_names_the_actor_that_bounds_throughput() -> None:
    busy, pipeline = chain(2 * MS, 5 * MS, 3 * MS)
    found = limits(pipeline, busy, busy)
    assert found is not None
    said = advice(found, latency=30 * MS, throughput=186.0, inflight=8, share=0.93)
    assert said.startswith("stage.1 is busy 93% of the time: it bounds throughput at 200/s")
    said = advice(found, latency=10.5 * MS, throughput=95.0, inflight=1, share=0.5)
    assert "95% of the latency" in said and "stage.1 would allow up to 200/s" in said
    said = advice(found, latency=100 * MS, throughput=9.0, inflight=1, share=0.05)
    assert "10% of the latency" in said and "sending, waiting" in said


def noisy(scale: float = 1.0) -> list[float]:
    draw = random.Random(3)
    return [scale * draw.gauss(1000, 50) for _ in range(1000)]


@pytest.mark.parametrize(
    "latencies, verdict",
    [
        (noisy(), "steady"),
        (noisy()[:39], "too-few"),
        (noisy()[:500] + noisy(1.3)[:500], "drift"),
        ([value * (1 + n / 4000) for n, value in enumerate(noisy())], "drift"),
        ([value * (2 if n % 3 == 0 else 1) for n, value in enumerate(noisy())], "two-modes"),
        ([value * (9 if n % 50 == 0 else 1) for n, value in enumerate(noisy())], "outliers"),
        ([random.Random(n).uniform(500, 1500) for n in range(1000)], "steady"),
        ([500.0 + random.Random(n).expovariate(1 / 500) for n in range(1000)], "steady"),
        ([random.Random(n).expovariate(1 / 500) for n in range(1000)], "scattered"),
        ([100.0] * 100, "steady"),
        ([0.0] * 100, "steady"),
    ],
)
def test_steadiness_says_what_is_wrong(latencies: list[float], verdict: str) -> None:
    found = steadiness(latencies)
    assert found.verdict == verdict, found.reason


def test_drift_is_told_with_its_size() -> None:
    quarter = noisy()[:250]
    assert "30% higher" in steadiness(quarter * 2 + [1.3 * value for value in quarter] * 2).reason


def test_a_hundred_thousand_times_are_summarised_in_a_second() -> None:
    draw = random.Random(1)
    times = array("q", (int(draw.expovariate(1e-5)) for _ in range(100_000)))
    found = distribution(times)
    assert found is not None
    assert found.p99 == pytest.approx(float(numpy.percentile(numpy.array(times), 99)))
    assert steadiness(times).verdict == "scattered"
