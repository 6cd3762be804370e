"""Compares two finished runs, number by number: how much each differs, and whether that can be chance.

**Method.** Of every percentile the change is the ratio after / before - 1. Its 95% interval comes from the intervals of
the two percentiles by order statistics, which assume no distribution (ranks n p -+ z sqrt(n p (1 - p)), rounded up:
Conover, "Practical Nonparametric Statistics", 3.2), combined on the scale of logarithms by MOVER (Zou and Donner,
"Construction of confidence limits about effect measures", 2008). Two corrections make it honest: iterations that depend
on their neighbours count for less (``widening``), and where many tasks are compared, z is that of intervals that hold
with 95% all together (Bonferroni). A change is
*significant* where its interval excludes zero. The *effect size* beside it is Cliff's delta: the probability that an
iteration of the second run took longer than one of the first, minus that it was shorter, from -1 to 1; below 0.147 in
size it is negligible (Romano et al., 2006). Throughput is compared by the rates of 20 parts of the run.

What no statistics of two runs can see is what differs from start to start of the same spec: only repeated runs show it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import mul
from pathlib import Path
from statistics import NormalDist
from typing import Literal

from cgspec.analysis import CONFIDENCE, percentile, percentile_interval, under_way
from cgspec.differing import Difference, differences, refuse_others
from cgspec.errors import UsageError
from cgspec.record import Record, TaskRecord, Times, load
from cgspec.spec import TASK_METRICS
from cgspec.timeline import Rows, Segment, folder_of, read_phase

SWEEP = "sweep.json"
PARTS = 20
"""Parts of a run whose rates are compared."""
MOST_LAGS = 50
ENOUGH = 4
"""Repeats of a sweep's point, in both sweeps, from which on a change can be told from chance."""
NEGLIGIBLE = 0.147
SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
BUSY = {"busy.p50": 0.50, "busy.p95": 0.95}


@dataclass(frozen=True)
class Change:
    """How one number differs; in seconds, iterations per second, or (the spec's own metrics) in no unit.

    Attributes:
        change: after / before - 1.
        between: its interval; None where there are too few samples, or only one number for each run.
        effect: Cliff's delta, where there are samples.
        task: whose number it is; None: the run's.
        own: whether it is one of the spec's own metrics, of which nobody knows which way is worse.
    """

    metric: str
    before: float
    after: float
    between: tuple[float, float] | None = None
    effect: float | None = None
    task: str | None = None
    own: bool = False

    @property
    def name(self) -> str:
        return self.metric if self.task is None else f"{self.task}.{self.metric}"

    @property
    def change(self) -> float:
        return self.after / self.before - 1 if self.before else (math.inf if self.after else 0.0)

    @property
    def for_the_worse(self) -> float:
        """The change, positive where the second run is worse: of a throughput how much less, of an own metric any."""
        if self.own:
            return abs(self.change)
        return -self.change if self.metric == "throughput" else self.change

    @property
    def significant(self) -> bool | None:
        """Whether it is more than chance; None where that cannot be said."""
        return None if self.between is None else not self.between[0] <= 0.0 <= self.between[1]


@dataclass(frozen=True)
class Compared:
    """Two runs beside each other, or two sweeps.

    Attributes:
        differences: of what was run, and where.
        tasks: what was measured of each task; of sweeps, of each point.
        noun: what ``tasks`` holds.
    """

    before: Record
    after: Record
    differences: tuple[Difference, ...]
    run: tuple[Change, ...]
    tasks: tuple[Change, ...]
    noun: Literal["task", "point"] = "task"

    @property
    def key(self) -> str:
        """The metric that stands for a task, or a point."""
        return "busy.p50" if self.noun == "task" else "latency.p50"

    @property
    def all(self) -> tuple[Change, ...]:
        return self.run + self.tasks

    @property
    def culprits(self) -> list[Change]:
        """The tasks, or points, whose median changed significantly, the greatest change in seconds first."""
        changed = [each for each in self.tasks if each.metric == self.key and each.significant]
        return sorted(changed, key=lambda each: -abs(each.after - each.before))


def compare(before: str | Path, after: str | Path) -> Compared:
    """Compares the measure phases of two runs, or the points of two sweeps.

    Raises:
        UsageError: one is no run, has not measured anything, or they run different graphs.
    """
    if any((folder_of(each) / SWEEP).exists() for each in (before, after)):
        from cgspec.comparing_sweeps import compare_sweeps

        return compare_sweeps(folder_of(before), folder_of(after))
    one, two = _Measured(before), _Measured(after)
    refuse_others(one.record, two.record)
    return Compared(
        before=one.record,
        after=two.record,
        differences=tuple(differences(one.record, one.run_dir, two.record, two.run_dir)),
        run=tuple(_run_changes(one, two)),
        tasks=tuple(_task_changes(one, two)),
    )


class _Measured:
    """One run and its samples."""

    def __init__(self, run: str | Path) -> None:
        self.record, self.run_dir = load(run), folder_of(run)
        segment = read_phase(self.run_dir, "measure")
        phase = self.record.phase("measure")
        if phase is None or not (phase.latency_us or (segment is not None and segment.driver.lengths())):
            raise UsageError(f"{run} cannot be compared: it measured nothing (it is {self.record.state})")
        self.segment = segment or Segment("measure")
        self.phase = phase

    def busy(self, task: str) -> list[int]:
        rows = self.segment.busy.get(task)
        return rows.lengths() if rows is not None else []


def _run_changes(one: _Measured, two: _Measured) -> list[Change]:
    first, second = one.segment.driver.lengths(), two.segment.driver.lengths()
    found = []
    for name, share in SHARES.items():
        recorded = (_recorded(one.phase.latency_us, name), _recorded(two.phase.latency_us, name))
        found.append(_change(f"latency.{name}", first, second, share, recorded))
    found.append(_throughput(one, two))
    for metric, read in SINGLE.items():
        pair = read(one.record), read(two.record)
        if pair[0] is not None and pair[1] is not None:
            found.append(Change(metric, pair[0], pair[1]))
    for metric, value in one.record.metrics.items():
        other = two.record.metrics.get(metric)
        if value is not None and other is not None:
            found.append(Change(metric, value, other, own=True))
    return [change for change in found if change is not None]


def _limit(name: str) -> Callable[[Record], float | None]:
    return lambda record: None if record.limits is None else getattr(record.limits, f"{name}_us") / 1e6


SINGLE: Mapping[str, Callable[[Record], float | None]] = {
    "first_result": lambda record: record.first_result_s,
    "critical_path": _limit("critical_path"),
    "busiest_actor": _limit("busiest_actor"),
}
"""Metrics of which a run has one value only."""


def _task_changes(one: _Measured, two: _Measured) -> list[Change]:
    found = []
    for task, record in one.record.tasks.items():
        other = two.record.tasks.get(task, TaskRecord())
        for metric, share in BUSY.items():
            assert metric in TASK_METRICS
            recorded = tuple(_recorded(each.busy_us, metric.removeprefix("busy.")) for each in (record, other))
            samples = one.busy(task), two.busy(task)
            tests = len(one.record.tasks)
            found.append(_change(metric, *samples, share, (recorded[0], recorded[1]), task=task, tests=tests))
    return [change for change in found if change is not None]


Known = tuple[float, tuple[float, float] | None] | None
"""A percentile in seconds and its interval, from the record."""


def _recorded(times: Times | None, name: str) -> Known:
    if times is None:
        return None
    interval = getattr(times, f"{name}_ci", None)
    return getattr(times, name) / 1e6, interval and (interval[0] / 1e6, interval[1] / 1e6)


def _change(
    metric: str,
    first: Sequence[int],
    second: Sequence[int],
    share: float,
    recorded: tuple[Known, Known],
    *,
    task: str | None = None,
    tests: int = 1,
) -> Change | None:
    """The change of a percentile, from the samples, or from the record where a run has none."""
    one = _estimate(first, share, tests) or recorded[0]
    two = _estimate(second, share, tests) or recorded[1]
    if one is None or two is None:
        return None
    effect = cliffs_delta(first, second) if share == 0.5 and first and second else None
    return Change(metric, one[0], two[0], _ratio_interval(one, two), effect, task)


def _estimate(samples: Sequence[int], share: float, tests: int) -> Known:
    """A percentile of samples in ns, with its widened interval, both in seconds."""
    if not samples:
        return None
    ordered = sorted(samples)
    value = percentile(ordered, share)
    factor = _normal_bound(tests) * widening(samples, value)
    half = factor * math.sqrt(share * (1 - share) * len(ordered))
    low, high = math.ceil(len(ordered) * share - half), math.ceil(len(ordered) * share + half)
    if low < 1 or high > len(ordered):
        return value / 1e9, None
    return value / 1e9, (ordered[low - 1] / 1e9, ordered[high - 1] / 1e9)


def _normal_bound(tests: int) -> float:
    """How many standard deviations an interval reaches to each side where it is one of so many that hold together."""
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / tests)


def widening(samples: Sequence[int], bound: float) -> float:
    """By how much dependence widens the interval of the percentile at ``bound``: sqrt(1 + 2 (r1 + r2 + ..)) or 1.

    r1, r2, .. are the autocorrelations of "above the bound", summed in pairs as long as a pair is positive (Geyer,
    "Practical Markov Chain Monte Carlo", 1992), over at most ``MOST_LAGS``.
    """
    mean = sum(sample > bound for sample in samples) / len(samples)
    above = [(sample > bound) - mean for sample in samples]
    variance = mean * (1 - mean) * len(samples)
    if len(samples) < 10 or variance <= 0:
        return 1.0
    total = _lag(above, 1) / variance
    for lag in range(2, min(MOST_LAGS, len(above) // 4), 2):
        pair = (_lag(above, lag) + _lag(above, lag + 1)) / variance
        if pair <= 0:
            break
        total += pair
    return math.sqrt(max(1.0, 1 + 2 * total))


def _lag(values: Sequence[float], lag: int) -> float:
    return math.fsum(map(mul, values, islice(values, lag, None)))


def _ratio_interval(one: Known, two: Known) -> tuple[float, float] | None:
    """The interval of two/one - 1, from those of both, by MOVER on logarithms."""
    if one is None or two is None or one[1] is None or two[1] is None:
        return None
    (a, (a_low, a_high)), (b, (b_low, b_high)) = (one[0], one[1]), (two[0], two[1])
    if min(a_low, b_low, a, b) <= 0:
        return None
    centre = math.log(b / a)
    below = math.hypot(math.log(b / b_low), math.log(a_high / a))
    above = math.hypot(math.log(b_high / b), math.log(a / a_low))
    return math.expm1(centre - below), math.expm1(centre + above)


def _throughput(one: _Measured, two: _Measured) -> Change | None:
    before, after = one.phase.throughput_per_s, two.phase.throughput_per_s
    if not before or not after:
        return None
    known = [_rates(measured.segment.driver, rate) for measured, rate in ((one, before), (two, after))]
    return Change("throughput", before, after, _ratio_interval(known[0], known[1]))


def _rates(rows: Rows, rate: float) -> Known:
    """The rate with the interval of the median of the rates of ``PARTS`` parts, moved to it."""
    size = len(rows) // PARTS
    if size == 0:
        return rate, None
    ends = [end or start for start, end in zip(rows.start, rows.end, strict=True)]
    starts = range(0, size * PARTS, size)
    times = [under_way(rows.start[at : at + size], ends[at : at + size]) for at in starts]
    if not all(times):
        return rate, None
    ordered = sorted(size / time for time in times)
    middle, interval = percentile(ordered, 0.5), percentile_interval(ordered, 0.5)
    return rate, interval and (rate * interval[0] / middle, rate * interval[1] / middle)


def cliffs_delta(first: Sequence[int], second: Sequence[int]) -> float:
    """P(a value of the second is greater than one of the first) - P(it is less), over all pairs."""
    ordered = sorted(first)
    total = sum(bisect_left(ordered, value) - (len(ordered) - bisect_right(ordered, value)) for value in second)
    return total / (len(first) * len(second))
