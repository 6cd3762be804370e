"""Compares two sweeps point by point: medians over repeats, and whether the repeats lie apart.

The change of a point is that of the median of its repeats' p50. Repeats are runs of their own, so their range shows
what differs from start to start: the interval of a change goes from the least of the one over the greatest of the other
to the greatest over the least. It excludes zero only where the two ranges do not overlap; if nothing had changed, that
would happen with a probability of 2 / C(n + m, n), below 3% for 4 repeats in both. With fewer no interval is given, nor
where a value is not positive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from cgspec.comparing import ENOUGH, SWEEP, Change, Compared
from cgspec.differing import Difference, differences
from cgspec.errors import UsageError
from cgspec.record import Record, load

METRICS: dict[str, tuple[str, float]] = {"latency.p50": ("p50_us", 1e-6), "throughput": ("throughput_per_s", 1.0)}
"""Metric → its key in ``sweep.json`` and what it is multiplied with to be in seconds, or per second."""


@dataclass
class _Sweep:
    """One sweep: its turns by point, and the record of its first run that is still there."""

    path: Path
    name: str
    points: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def record(self) -> Record | None:
        """What its runs have in common, as the first of them says it."""
        for turns in self.points.values():
            for turn in turns:
                try:
                    return load(self.path / turn["run_dir"])
                except UsageError:
                    continue
        return None


def compare_sweeps(before: Path, after: Path) -> Compared:
    """Compares the points that both sweeps have.

    Raises:
        UsageError: one is no sweep, or they have no point in common.
    """
    one, two = _read(before), _read(after)
    common = [label for label in one.points if label in two.points]
    if not common:
        raise UsageError(f"these sweeps cannot be compared: no point of {before} is one of {after}")
    changes = [change for label in common for change in _changes(label, one.points[label], two.points[label])]
    if not changes:
        raise UsageError("these sweeps cannot be compared: no point was measured in both")
    return Compared(_title(one), _title(two), tuple(_differences(one, two)), (), tuple(changes), noun="point")


def _read(path: Path) -> _Sweep:
    try:
        told = json.loads((path / SWEEP).read_bytes())
        sweep = _Sweep(path, str(told["name"]))
        for turn in told["turns"]:
            label = ", ".join(f"{name}={value}" for name, value in turn["values"].items()) or f"point {turn['point']}"
            sweep.points.setdefault(label, []).append(turn)
    except FileNotFoundError:
        raise UsageError(f"{path} is no sweep, and a sweep can be compared with another only") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path / SWEEP} cannot be read: {error}") from None
    return sweep


def _title(sweep: _Sweep) -> Record:
    return Record(id=sweep.path.name, name=sweep.name, status="sweep", started="", run_dir=str(sweep.path))


def _differences(one: _Sweep, two: _Sweep) -> Iterator[Difference]:
    for label in dict.fromkeys([*one.points, *two.points]):
        counts = len(one.points.get(label, ())), len(two.points.get(label, ()))
        if 0 in counts:
            yield Difference(f"point {label}", *("not run" if count == 0 else f"{count} runs" for count in counts))
        elif (ended := (_ended(one.points[label]), _ended(two.points[label])))[0] != ended[1]:
            yield Difference(f"point {label}", *ended)
    first, second = one.record(), two.record()
    if first is not None and second is not None:
        found = differences(first, Path(first.run_dir), second, Path(second.run_dir))
        yield from (each for each in found if not each.what.startswith(("iterations", "outputs", "machine")))


def _ended(turns: Sequence[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(turn["status"]) for turn in turns))


def _changes(label: str, one: Sequence[dict[str, Any]], two: Sequence[dict[str, Any]]) -> Iterator[Change]:
    for metric, (key, scale) in METRICS.items():
        first, second = _values(one, key, scale), _values(two, key, scale)
        if first and second:
            yield Change(metric, median(first), median(second), _between(first, second), task=label)
    for metric in dict.fromkeys(name for turn in one for name in turn.get("metrics") or {}):
        first, second = _own(one, metric), _own(two, metric)
        if first and second:
            yield Change(metric, median(first), median(second), _between(first, second), task=label, own=True)


def _own(turns: Sequence[dict[str, Any]], metric: str) -> list[float]:
    """One of the spec's own metrics, in the runs in which it has a value."""
    found = [(turn.get("metrics") or {}).get(metric) for turn in turns]
    return [value for value in found if value is not None]


def _values(turns: Sequence[dict[str, Any]], key: str, scale: float) -> list[float]:
    return [turn[key] * scale for turn in turns if turn.get(key)]


def _between(one: Sequence[float], two: Sequence[float]) -> tuple[float, float] | None:
    if min(len(one), len(two)) < ENOUGH or min(*one, *two) <= 0:
        return None
    return min(two) / max(one) - 1, max(two) / min(one) - 1
