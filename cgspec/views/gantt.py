"""A few iterations as they happened: a row for the driver and for each actor, a bar for each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgspec.alignment import on_the_drivers_clock
from cgspec.analysis import percentile
from cgspec.quantities import show_duration
from cgspec.record import Record
from cgspec.timeline import Segment
from cgspec.views.charts import Tick, steps
from cgspec.views.palette import fill

MOST_BARS = 1_500
MOST_ROWS = 24


@dataclass(frozen=True)
class Bar:
    """One task in one iteration; places in percent of the window. ``critical``: on the critical path."""

    left: float
    width: float
    text: str
    tip: str
    colour: str
    critical: bool = False


@dataclass(frozen=True)
class Row:
    """The driver, or one actor."""

    name: str
    note: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Gantt:
    """The window: ``about`` says which iterations, ``remark`` what is left out."""

    about: str
    rows: tuple[Row, ...]
    across: tuple[Tick, ...]
    remark: str = ""


def draw(record: Record, segment: Segment) -> Gantt | None:
    """Iterations around the one whose latency is nearest to the median; None where the recorder holds none."""
    segment, moved = on_the_drivers_clock(segment, record)
    chosen = _choose(record, segment)
    if not chosen:
        return None
    window = _Window(record, segment, chosen)
    rows, left_out = _rows(record, window)
    first, last = chosen[0], chosen[-1]
    which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    about = f"{which} of the {segment.label} phase, around the median latency"
    remarks = [f"{left_out} more actors are not shown; they were busy for less"] * bool(left_out)
    remarks += [f"the clock of {node} is right to ±{show_duration(each.error / 1e9)}" for node, each in moved.items()]
    return Gantt(about, tuple(rows), tuple(window.ticks()), "; ".join(remarks))


def _choose(record: Record, segment: Segment) -> list[int]:
    """Consecutive iterations that driver and tasks both still hold."""
    held = set.intersection(*(set(rows.iteration) for rows in segment.busy.values())) if segment.busy else set()
    known = {i: end - start for i, (start, end) in segment.driver.by_iteration().items() if end and i in held}
    if not known:
        return []
    most = max(1, MOST_BARS // max(1, len(segment.tasks)))
    count = min(most, 3 if record.inflight == 1 else min(6, record.inflight + 2))
    middle = percentile(sorted(known.values()), 0.5)
    nearest = min(known, key=lambda i: (abs(known[i] - middle), i))
    ordered = sorted(known)
    start = max(0, min(ordered.index(nearest) - count // 2, len(ordered) - count))
    return ordered[start : start + count]


class _Window:
    """The time from the first submission to the last result of the chosen iterations."""

    def __init__(self, record: Record, segment: Segment, chosen: Sequence[int]) -> None:
        self.driver = segment.driver.by_iteration()
        self.chosen = set(chosen)
        self.tasks = {name: rows.by_iteration() for name, rows in segment.busy.items()}
        self.critical = set(record.limits.critical_path) if record.limits else set()
        self.inflight = record.inflight
        self.begin = min(self.driver[i][0] for i in chosen)
        self.span = max(1, max(self.driver[i][1] for i in chosen) - self.begin)

    def bar(self, start: int, end: int, text: str, tip: str, colour: str, *, critical: bool = False) -> Bar:
        left, width = (start - self.begin) / self.span * 100, max(0.1, (end - start) / self.span * 100)
        return Bar(
            round(left, 3), round(width, 3), text, f"{tip}: {show_duration((end - start) / 1e9)}", colour, critical
        )

    def ticks(self) -> list[Tick]:
        return [Tick(at / self.span * 100, show_duration(at / 1e9) if at else "0") for at in steps(0, self.span, 4)]


def _rows(record: Record, window: _Window) -> tuple[list[Row], int]:
    actors = [(actor, _hue(record, actor.name)) for actor in record.actors if actor.tasks]
    kept = actors
    if len(actors) > MOST_ROWS:
        names = sorted((actor.name for actor, _ in actors), key=lambda name: -_busy(record, name))[:MOST_ROWS]
        kept = [(actor, hue) for actor, hue in actors if actor.name in names]
    rows = _driver_rows(window)
    for actor, hue in kept:
        share = "" if actor.utilisation is None else f"busy {actor.utilisation * 100:.0f}%"
        bars = [bar for task in actor.tasks for bar in _bars(window, task, fill(hue))]
        rows.append(Row(actor.name, share, tuple(sorted(bars, key=lambda bar: bar.left))))
    return rows, len(actors) - len(kept)


def _bars(window: _Window, task: str, colour: str) -> list[Bar]:
    held, critical = window.tasks.get(task, {}), task in window.critical
    return [
        window.bar(start, end, task, f"{task}, iteration {i}", colour, critical=critical)
        for i, (start, end) in held.items()
        if i in window.chosen
    ]


def _driver_rows(window: _Window) -> list[Row]:
    """One row, or as many as iterations overlap."""
    lanes: list[list[Bar]] = []
    free: list[int] = []
    for i in sorted(window.chosen):
        start, end = window.driver[i]
        lane = next((number for number, at in enumerate(free) if at <= start), len(free))
        if lane == len(free):
            free.append(0)
            lanes.append([])
        free[lane] = end
        lanes[lane].append(window.bar(start, end, f"{i}", f"iteration {i}", ""))
    return [Row("driver" if number == 0 else "", "", tuple(bars)) for number, bars in enumerate(lanes)]


def _hue(record: Record, name: str) -> int:
    families = list(dict.fromkeys(actor.name.split(".")[0] for actor in record.actors))
    return families.index(name.split(".")[0])


def _busy(record: Record, name: str) -> float:
    return next((actor.busy_us or 0.0 for actor in record.actors if actor.name == name), 0.0)
