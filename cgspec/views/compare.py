"""A comparison of two runs as text, Markdown and JSON, and the conditions of ``--fail-if``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cgspec.comparing import ENOUGH, NEGLIGIBLE, Change, Compared
from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.quantities import show_duration, show_rate

MOST_TASKS = 20
"""Tasks that text shows: those that changed significantly, then the largest changes."""
CAUTION = (
    "Two starts of the same spec differ too, by more than these intervals say: "
    "repeat both runs, alternating, before you rely on a small change."
)
MANY = 9.0
"""A change from this on is told in times, not in percent."""
SMALL = 0.2
"""Below this the caution is said."""

_CONDITION = re.compile(r"(?P<metric>[^:]+):\s*(?P<percent>[0-9]+(?:\.[0-9]+)?)\s*%")


def failing(compared: Compared, conditions: Sequence[str]) -> list[str]:
    """Those of ``METRIC:PERCENT%`` that the second run breaks, in words.

    A condition is broken where the number is worse by more than so many percent (a throughput: less; one of the spec's
    own metrics: different), and that is not chance as far as it can be told. METRIC is one of the run's
    (``latency.p50``; of sweeps, that of any point), a task's (``stage.0.busy.p50``), or ``busy.p50`` for any task's.

    Raises:
        UsageError: a condition cannot be read, or names what was not measured.
    """
    return [text for condition in conditions for text in _broken(compared, condition)]


def _broken(compared: Compared, condition: str) -> Iterator[str]:
    found = _CONDITION.fullmatch(condition.strip())
    if found is None:
        raise UsageError(f"--fail-if {condition}: say a metric and a percentage, e.g. latency.p50:5%")
    metric, bound = found["metric"].strip(), float(found["percent"]) / 100
    named = [change for change in compared.all if metric in (change.name, change.metric)]
    if not named:
        names = list(dict.fromkeys(name for change in compared.all for name in (change.metric, change.name)))
        raise UsageError(f"--fail-if {condition}: {metric} was not compared; {suggest(metric, names, noun='metrics')}")
    for change in named:
        if change.for_the_worse > bound and change.significant is not False:
            worse = "away" if change.own else "worse"
            yield f"{change.name} is {_percent(change.change)}: more than {found['percent']}% {worse}"


def text(compared: Compared, broken: Sequence[str] = ()) -> str:
    """For a terminal."""
    lines = [f"before  {_title(compared, 0)}", f"after   {_title(compared, 1)}"]
    if compared.differences:
        width = max(len(each.what) for each in compared.differences)
        lines += ["", "these differ to begin with"]
        lines += [f"  {each.what:{width}}  {each.before}  →  {each.after}" for each in compared.differences]
    lines += ["", *_table(_rows(compared))]
    if (left := len(_task_names(compared)) - MOST_TASKS) > 0:
        lines.append(f"… {left} more {compared.noun}s; --json has them all")
    lines += ["", *verdict(compared)]
    lines += [f"✗ {each}" for each in broken]
    return "\n".join(lines)


def markdown(compared: Compared, broken: Sequence[str] = ()) -> str:
    """For a pull request."""
    lines = [f"**{_cell(each)}**" if number == 0 else _cell(each) for number, each in enumerate(verdict(compared))]
    lines = ["  \n".join(lines), ""]
    lines += [f"- before: {_cell(_title(compared, 0))}", f"- after: {_cell(_title(compared, 1))}"]
    lines += [f"- ❌ {_cell(each)}" for each in broken]
    if compared.differences:
        lines += ["", "| differs to begin with | before | after |", "| --- | --- | --- |"]
        lines += [
            f"| {_cell(each.what)} | {_cell(each.before)} | {_cell(each.after)} |" for each in compared.differences
        ]
    head, *rows = _rows(compared)
    lines += ["", f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 2)} --- |"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text that Markdown takes as text."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text.replace("\n", " "))


def as_data(compared: Compared, broken: Sequence[str] = ()) -> dict[str, Any]:
    """For programs; seconds and iterations per second, changes as fractions."""
    return {
        "before": {"id": compared.before.id, "run_dir": compared.before.run_dir, "name": compared.before.name},
        "after": {"id": compared.after.id, "run_dir": compared.after.run_dir, "name": compared.after.name},
        "differences": [
            {"what": each.what, "before": each.before, "after": each.after} for each in compared.differences
        ],
        "metrics": [_change_data(change) for change in compared.run],
        f"{compared.noun}s": [_change_data(change) for change in compared.tasks],
        "verdict": verdict(compared),
        "failing": list(broken),
    }


def _change_data(change: Change) -> dict[str, Any]:
    finite = math.isfinite(change.change)
    return {
        "metric": change.metric,
        "task": change.task,
        "own": change.own,
        "before": change.before,
        "after": change.after,
        "change": change.change if finite else None,
        "between": list(change.between) if change.between is not None else None,
        "significant": change.significant,
        "effect": change.effect,
    }


FORMATS: dict[str, Callable[[Compared, Sequence[str]], str | dict[str, Any]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_data,
}
"""Format → what makes it; JSON is data that is still to be written."""


def verdict(compared: Compared) -> list[str]:
    """What it amounts to, in sentences."""
    latency = next((change for change in compared.run if change.metric == "latency.p50"), None)
    said = [_headline(latency)] if latency is not None else []
    changed = [each for each in compared.run if each.significant and each is not latency]
    said += [f"{each.metric} is {_percent(each.change)}{_range(each)}." for each in changed]
    culprits = compared.culprits
    if culprits:
        said.append(_blame(culprits[0], compared.noun))
        if more := len(culprits) - 1:
            said.append(f"{more} more {compared.noun}{'s' * (more > 1)} changed as well.")
    elif compared.noun == "point":
        said.append(_no_point(compared))
    elif compared.tasks and (latency is None or latency.significant):
        said.append("No task takes significantly longer or shorter: look at sending, waiting, and the machine.")
    small = [each for each in (latency, *changed, *culprits) if each is not None and each.significant]
    caution = compared.noun == "task" and small and all(abs(each.change) < SMALL for each in small)
    return said + [CAUTION] * bool(caution)


def _headline(latency: Change) -> str:
    if latency.significant is None:
        return f"latency.p50 is {_percent(latency.change)}; there are too few iterations to tell it from chance."
    if not latency.significant:
        return f"No difference in latency.p50 that could not be chance: {_percent(latency.change)}{_range(latency)}."
    size = ""
    if latency.effect is not None:
        size = (
            " (a negligible effect)" if abs(latency.effect) < NEGLIGIBLE else f" (Cliff's delta {latency.effect:+.2f})"
        )
    return f"latency.p50 is {_percent(latency.change)}{_range(latency)}{size}."


def _no_point(compared: Compared) -> str:
    tested = [change for change in compared.tasks if change.significant is not None]
    if not tested:
        return f"Too few repeats to tell a change from chance: it takes {ENOUGH} of each point in both sweeps."
    return "No point changed by more than its repeats differ."


def _blame(change: Change, noun: str) -> str:
    direction = "longer" if change.change > 0 else "less"
    amount = f"{_size(change.change)} {direction}" if change.change < MANY else f"{_size(change.change)} as long"
    times = f"{show_duration(change.before)} → {show_duration(change.after)}"
    return f"{noun.capitalize()} {change.task} takes {amount}: {times}; no other {noun} changed by as much time."


def _range(change: Change) -> str:
    if change.between is None:
        return ""
    return f" (95%: {_signed(change.between[0])} to {_signed(change.between[1])})"


def _percent(change: float) -> str:
    """``4.2% higher``."""
    if not math.isfinite(change):
        return "no longer zero"
    if change >= MANY:
        return f"{_size(change)} as high"
    return "the same" if change == 0 else f"{_size(change)} higher" if change > 0 else f"{_size(change)} lower"


def _size(change: float) -> str:
    """``4.2%``, or ``145 times``."""
    return f"{abs(change) * 100:.3g}%" if change < MANY else f"{1 + change:.3g} times"


def _signed(change: float) -> str:
    return f"{change * 100:+.1f}%" if change < MANY else _size(change)


def _title(compared: Compared, which: int) -> str:
    record = (compared.before, compared.after)[which]
    return f"{record.name} {record.id} ({record.run_dir})"


def _task_names(compared: Compared) -> list[str]:
    """Significant changes first, then by size in seconds."""
    medians = [each for each in compared.tasks if each.metric == compared.key]
    medians.sort(key=lambda each: (not each.significant, -abs(each.after - each.before)))
    return [each.task or "" for each in medians]


def _rows(compared: Compared) -> list[tuple[str, ...]]:
    shown = set(_task_names(compared)[:MOST_TASKS])
    tasks = [each for each in compared.tasks if each.task in shown and (each.metric == compared.key or each.own)]
    head = ("metric", "before", "after", "change", "95%", "effect", "")
    return [head, *map(_row, (*compared.run, *tasks))]


def _row(change: Change) -> tuple[str, ...]:
    show = _number if change.own else show_rate if change.metric == "throughput" else show_duration
    between = "" if change.between is None else f"{_signed(change.between[0])} to {_signed(change.between[1])}"
    effect = "" if change.effect is None else f"{change.effect:+.2f}"
    moved = _signed(change.change) if math.isfinite(change.change) else "new"
    return change.name, show(change.before), show(change.after), moved, between, effect, _word(change)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _word(change: Change) -> str:
    if change.significant is None:
        return "not tested"
    if not change.significant:
        return "no difference"
    return "different" if change.own else "worse" if change.for_the_worse > 0 else "better"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *middle, last = (
            cell.ljust(width) if place in (0, len(row) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *middle, last)).rstrip()
