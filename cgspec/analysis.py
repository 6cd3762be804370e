"""The numbers of a run: percentiles with confidence intervals, throughput and what actors did, from raw times in ns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
"""The confidence level of every interval."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What is said of a set of times, in the unit of the times; an interval is None where there are too few of them.

    Attributes:
        p50_ci, p95_ci: confidence intervals of the two percentiles (``percentile_interval``).
    """

    count: int
    p50: float
    p95: float
    p99: float
    mean: float
    min: float
    max: float
    p50_ci: tuple[float, float] | None
    p95_ci: tuple[float, float] | None


def distribution(times: Iterable[float]) -> Distribution | None:
    """Percentiles, mean and extremes; None where there is nothing to look at."""
    ordered = sorted(times)
    if not ordered:
        return None
    return Distribution(
        count=len(ordered),
        p50=percentile(ordered, 0.50),
        p95=percentile(ordered, 0.95),
        p99=percentile(ordered, 0.99),
        mean=math.fsum(ordered) / len(ordered),
        min=ordered[0],
        max=ordered[-1],
        p50_ci=percentile_interval(ordered, 0.50),
        p95_ci=percentile_interval(ordered, 0.95),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The percentile of sorted values by linear interpolation.

    This is type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996), as in numpy's default.
    """
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def percentile_interval(ordered: Sequence[float], share: float) -> tuple[float, float] | None:
    """A confidence interval of a percentile by order statistics, without any assumption about the distribution.

    The number of samples below the true percentile is Binomial(n, share), so P(x_(l) <= percentile <= x_(u)) is the
    binomial probability of l .. u-1; l and u are chosen with at most half of the remaining probability in each tail
    (Conover, "Practical Nonparametric Statistics", 3.2; Hahn and Meeker, "Statistical Intervals", 5.2). Samples are
    taken to be independent; where iterations depend on each other the true interval is wider.

    Returns:
        None where no order statistic is far enough out: below 6 samples for p50, below 72 for p95.
    """
    count, tail = len(ordered), (1 - CONFIDENCE) / 2
    lower = _binomial_rank(count, share, tail)
    upper = count + 1 - _binomial_rank(count, 1 - share, tail)
    if lower < 1 or upper > count:
        return None
    return ordered[lower - 1], ordered[upper - 1]


@lru_cache(maxsize=1024)
def _binomial_rank(count: int, share: float, tail: float) -> int:
    """The largest l with P(Binomial(count, share) < l) <= tail, summed exactly; 0 where even l = 1 is too much."""
    spread = 10 * math.sqrt(count * share * (1 - share)) + 10
    start = max(0, math.floor(count * share - spread))
    total, rank = 0.0, start
    for successes in range(start, count + 1):
        total += _binomial(count, successes, share)
        if total > tail:
            break
        rank = successes + 1
    return rank


def _binomial(count: int, successes: int, share: float) -> float:
    ways = math.lgamma(count + 1) - math.lgamma(successes + 1) - math.lgamma(count - successes + 1)
    return math.exp(ways + successes * math.log(share) + (count - successes) * math.log1p(-share))


def under_way(submitted: Sequence[int], done: Sequence[int], first: int = 0) -> int:
    """The ns in which at least one iteration was under way: the union of the intervals, from iteration ``first`` on.

    Both are by iteration, in the order of submission; pauses for making inputs and looking at results are outside.
    """
    total, reached = 0, 0
    for start, end in zip(submitted[first:], done[first:], strict=True):
        if end > reached:
            total += end - max(start, reached)
            reached = end
    return total


@dataclass(frozen=True)
class Spans:
    """When one task ran: ns by iteration, ``start[0]`` in iteration ``first``; 0 in both where it was skipped."""

    first: int
    start: Sequence[int]
    end: Sequence[int]

    def busy(self) -> list[int]:
        """The ns of every iteration in which it ran to its end."""
        return [end - start for start, end in zip(self.start, self.end, strict=False) if start and end >= start]


@dataclass(frozen=True)
class Utilisation:
    """What one actor did of the time in which iterations were under way.

    Attributes:
        busy: ns per iteration that its tasks took, mean.
        share: busy time over the time under way, 0 to 1 (a collective's waiting for its peers counts as busy).
    """

    busy: float
    share: float


def utilisation(tasks: Iterable[Spans], submitted: Sequence[int], done: Sequence[int]) -> Utilisation | None:
    """An actor's busy time, over the iterations that the recorder still holds of all its tasks.

    share = sum of (end - start) over its tasks and those iterations / ns under way in those iterations.
    """
    held = [spans for spans in tasks if len(spans.start)]
    first = max((spans.first for spans in held), default=0)
    iterations = len(done) - first
    elapsed = under_way(submitted, done, first) if iterations > 0 else 0
    if not held or elapsed <= 0:
        return None
    total = sum(sum(Spans(first, s.start[first - s.first :], s.end[first - s.first :]).busy()) for s in held)
    return Utilisation(busy=total / iterations, share=min(1.0, total / elapsed))


@dataclass(frozen=True)
class Steadiness:
    """Whether the latencies are those of one steady process; ``verdict`` is one word, ``reason`` a sentence."""

    verdict: str
    reason: str


def steadiness(latencies: Sequence[float]) -> Steadiness:
    """Looks for drift, two modes, outliers and scatter, in that order, in latencies by iteration.

    - drift: the medians of the first and the last quarter differ by more than a tenth, and their intervals
      (``percentile_interval``) do not overlap;
    - two modes: Otsu's split ("A Threshold Selection Method from Gray-Level Histograms", 1979) of the middle 98% leaves
      at least a tenth on both sides, means at least a fifth apart, and more than 4.5 apart in Ashman's D
      (sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2)); one normal gives 2.7 there, one uniform distribution 3.5;
    - outliers: more than 1 in 100 above p50 + 10 (p75 - p25), and above twice p50;
    - scatter: p95 above three times p50.
    """
    if len(latencies) < 40:
        return Steadiness("too-few", f"{len(latencies)} iterations are too few to tell; 40 are needed")
    ordered = sorted(latencies)
    return _drift(latencies) or _two_modes(ordered) or _outliers(ordered) or _scatter(ordered) or _STEADY


_STEADY = Steadiness("steady", "no drift, one mode, few outliers")


def _drift(latencies: Sequence[float]) -> Steadiness | None:
    quarter = len(latencies) // 4
    early, late = sorted(latencies[:quarter]), sorted(latencies[-quarter:])
    before, after = percentile(early, 0.5), percentile(late, 0.5)
    one, other = percentile_interval(early, 0.5), percentile_interval(late, 0.5)
    apart = one and other and (one[1] < other[0] or other[1] < one[0])
    if not apart or before <= 0 or abs(after / before - 1) <= 0.1:
        return None
    change = (after / before - 1) * 100
    return Steadiness("drift", f"the last quarter's median is {abs(change):.0f}% {_direction(change)} than the first's")


def _direction(change: float) -> str:
    return "higher" if change > 0 else "lower"


def _two_modes(ordered: Sequence[float]) -> Steadiness | None:
    cut = len(ordered) // 100
    middle = ordered[cut : len(ordered) - cut]
    place = _otsu(middle)
    low, high = middle[:place], middle[place:]
    share = min(len(low), len(high)) / len(middle)
    if share < 0.1:
        return None
    (below, s_below), (above, s_above) = _mean_and_sd(low), _mean_and_sd(high)
    spread = math.hypot(s_below, s_above)
    if above < 1.2 * below or math.sqrt(2) * (above - below) <= 4.5 * spread:
        return None
    part, times = len(high) / len(middle) * 100, above / below
    return Steadiness("two-modes", f"two modes: {part:.0f}% of the iterations take {times:.1f} times the others")


def _otsu(ordered: Sequence[float]) -> int:
    """Where to split sorted values so that the variance between the two parts is the greatest."""
    total, count = math.fsum(ordered), len(ordered)
    best, place, running = -1.0, 1, 0.0
    for number in range(1, count):
        running += ordered[number - 1]
        difference = running / number - (total - running) / (count - number)
        between = number * (count - number) * difference * difference
        if between > best:
            best, place = between, number
    return place


def _mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _outliers(ordered: Sequence[float]) -> Steadiness | None:
    middle = percentile(ordered, 0.5)
    bound = max(middle + 10 * (percentile(ordered, 0.75) - percentile(ordered, 0.25)), 2 * middle)
    count = sum(1 for value in ordered if value > bound)
    if count * 100 <= len(ordered):
        return None
    times = ordered[-1] / middle
    return Steadiness("outliers", f"{count} of {len(ordered)} iterations are outliers, up to {times:.0f} times p50")


def _scatter(ordered: Sequence[float]) -> Steadiness | None:
    middle, high = percentile(ordered, 0.5), percentile(ordered, 0.95)
    if high <= 3 * middle or not middle:
        return None
    return Steadiness("scattered", f"1 in 20 iterations takes more than {high / middle:.1f} times p50")


def throughput(done: int, seconds: float) -> float | None:
    """Iterations per second; None where nothing was measured."""
    return done / seconds if done and seconds > 0 else None


def medians(times: Mapping[str, Spans]) -> dict[str, float]:
    """The median busy ns of every task that ran."""
    return {name: percentile(sorted(busy), 0.5) for name, spans in times.items() if (busy := spans.busy())}
