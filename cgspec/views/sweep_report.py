"""One HTML page about a whole sweep: a table, curves over its matrix, and links to the reports of its runs.

It is made from ``sweep.json`` alone, loads nothing, runs no script and needs no network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from cgspec.comparing import SWEEP
from cgspec.errors import UsageError
from cgspec.quantities import show_duration, show_rate
from cgspec.views import curves, report
from cgspec.views.curves import Turn, tell

TEMPLATE = "sweep_report.html"
MOST_METRICS = 6
"""Of the spec's own metrics, as many have curves."""
MOST_ROWS = 500


def write(folder: Path, *, output: Path | None = None) -> Path:
    """Writes the page, by default to ``report.html`` in the sweep's folder.

    Raises:
        UsageError: there is no such sweep, or the file cannot be written.
    """
    target = output or folder / report.FILE
    text = page(folder)
    new = target.with_name(f".{target.name}.new")
    try:
        new.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(new, target)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def page(folder: Path) -> str:
    """The page of a sweep.

    Raises:
        UsageError: there is no such sweep.
    """
    from jinja2 import Environment

    sweep = _read(folder)
    source = resources.files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=report.harmless)
    return environment.from_string(source).render(_about(sweep, folder))


def _read(folder: Path) -> Mapping[str, Any]:
    try:
        sweep = json.loads((folder / SWEEP).read_bytes())
        assert isinstance(sweep["turns"], list)
        return dict(sweep)
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        raise UsageError(f"{folder} is no sweep: it has no {SWEEP} that can be read") from None


def _about(sweep: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    turns: list[Turn] = sweep["turns"]
    axes = list(dict.fromkeys(name for turn in turns for name in turn["values"]))
    metrics = list(dict.fromkeys(name for turn in turns for name in turn.get("metrics", {})))
    rows = list(_rows(turns, axes, metrics, folder))
    bad = sum(turn["status"] != "passed" for turn in turns)
    return {
        "name": sweep["name"],
        "done": len(turns),
        "planned": sweep["planned"],
        "bad": bad,
        "mood": "bad" if bad else "good" if len(turns) == sweep["planned"] else "fair",
        "axes": axes,
        "metrics": metrics,
        "rows": rows[:MOST_ROWS],
        "left_out": len(rows) - len(rows[:MOST_ROWS]),
        "best": list(_best(turns)),
        "charts": list(_charts(turns, metrics)),
        "faults": [(_point(turn), turn["repeat"] + 1, fault) for turn in turns for fault in turn.get("faults", [])][
            :MOST_ROWS
        ],
    }


def _rows(turns: Sequence[Turn], axes: Sequence[str], metrics: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """One for each point: medians over its repeats, and how far these lie apart."""
    points = _points(turns)
    middles = {number: _middle(turn.get("p50_us") for turn in found) for number, found in points.items()}
    least = min((us for us in middles.values() if us is not None), default=None)
    for number, found in sorted(points.items()):
        statuses = list(dict.fromkeys(turn["status"] for turn in found))
        yield {
            "values": ["" if name not in found[0]["values"] else tell(found[0]["values"][name]) for name in axes],
            "status": ", ".join(statuses),
            "mood": "good" if statuses == ["passed"] else "bad",
            "p50": _us(middles[number]),
            "fastest": middles[number] is not None and middles[number] == least,
            "spread": _spread([turn["p50_us"] for turn in found if turn.get("p50_us") is not None]),
            "p95": _us(_middle(turn.get("p95_us") for turn in found)),
            "throughput": _rate(_middle(turn.get("throughput_per_s") for turn in found)),
            "metrics": [_number(_middle(turn.get("metrics", {}).get(name) for turn in found)) for name in metrics],
            "runs": [_link(turn, folder) for turn in found],
        }


def _link(turn: Turn, folder: Path) -> tuple[str, str]:
    """The number of the repeat, and where its report is; empty where there is none."""
    place = f"{turn['run_dir']}/{report.FILE}"
    return str(turn["repeat"] + 1), quote(place) if (folder / place).is_file() else ""


def _best(turns: Sequence[Turn]) -> Iterator[tuple[str, str, str]]:
    """(what, how much, at which point) of the least latency and the greatest throughput, by medians over repeats."""
    points = _points(turns).values()
    p50s = [(us, found) for found in points if (us := _middle(turn.get("p50_us") for turn in found)) is not None]
    rates = [(of, found) for found in points if (of := _middle(turn.get("throughput_per_s") for turn in found))]
    if p50s:
        us, found = min(p50s, key=lambda pair: pair[0])
        yield "least latency (p50)", _us(us), _point(found[0])
    if rates:
        rate, found = max(rates, key=lambda pair: pair[0])
        yield "greatest throughput", _rate(rate), _point(found[0])


def _points(turns: Sequence[Turn]) -> dict[int, list[Turn]]:
    """The repeats of each point."""
    points: dict[int, list[Turn]] = {}
    for turn in turns:
        points.setdefault(turn["point"], []).append(turn)
    return points


def _point(turn: Turn) -> str:
    return " ".join(f"{name}={tell(value)}" for name, value in turn["values"].items())


def _charts(turns: Sequence[Turn], metrics: Sequence[str]) -> Iterator[Any]:
    drawn = [
        curves.draw("Latency, p50", turns, lambda turn: turn.get("p50_us"), _us),
        curves.draw("Throughput", turns, lambda turn: turn.get("throughput_per_s"), _rate),
    ]
    drawn += [curves.draw(name, turns, _metric(name), _number) for name in metrics[:MOST_METRICS]]
    yield from (each for each in drawn if each is not None)


def _metric(name: str) -> Callable[[Turn], float | None]:
    return lambda turn: turn.get("metrics", {}).get(name)


def _middle(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _spread(p50s: Sequence[float]) -> str:
    return f"{(max(p50s) - min(p50s)) / median(p50s):.1%}" if len(p50s) > 1 and median(p50s) else ""


def _us(us: float | None) -> str:
    return "" if us is None else show_duration(us / 1e6)


def _rate(rate: float | None) -> str:
    return "" if rate is None else show_rate(rate)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
