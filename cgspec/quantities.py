"""Durations and sizes with their units: ``30s``, ``5ms``, ``64MiB``."""

from __future__ import annotations

import re

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-zµ]+)\s*\Z")


def duration(value: object) -> float:
    """Seconds of a duration such as ``30s``, ``5ms`` or ``1.5h``.

    Raises:
        ValueError: it has no unit, an unknown unit, or is no duration; a bare number's message
            shows both readings.
    """
    return _read(value, SECONDS, "a duration", ("s", "ms"))


def size(value: object) -> int:
    """Bytes of a size such as ``64MiB`` or ``100MB``.

    Raises:
        ValueError: as for ``duration``.
    """
    return round(_read(value, BYTES, "a size", ("MiB", "B")))


def _read(value: object, units: dict[str, float] | dict[str, int], noun: str, readings: tuple[str, str]) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(f"{noun} needs a unit: {value}{readings[0]} or {value}{readings[1]}?")
    match = _QUANTITY.match(value) if isinstance(value, str) and len(value) < 40 else None
    if match is None:
        raise ValueError(f"{noun} is a number with a unit, e.g. {'30s' if noun == 'a duration' else '64MiB'}")
    number, unit = match.groups()
    if unit not in units:
        raise ValueError(f"{noun} has no unit {unit}; its units are {', '.join(units)}")
    return float(number) * units[unit]


def show_duration(seconds: float) -> str:
    """Seconds for people, three digits and a unit: ``1.24 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e9:.0f} ns"


def show_rate(per_second: float) -> str:
    """A rate for people: ``16,559/s``, ``82.1/s``."""
    return f"{per_second:,.0f}/s" if per_second >= 100 else f"{per_second:.3g}/s"


def show_size(count: float) -> str:
    """Bytes for people: ``64 MiB``, ``1.5 KiB``, ``12 B``."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= BYTES[unit]:
            return f"{count / BYTES[unit]:.3g} {unit}"
    return f"{count:.0f} B"
