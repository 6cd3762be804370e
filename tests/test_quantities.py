"""Durations and sizes carry their units, and a bare number shows both readings."""

from __future__ import annotations

import pytest

from cgspec.quantities import duration, show_duration, show_rate, show_size, size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("5ms", 0.005),
        ("1.5h", 5400.0),
        ("2m", 120.0),
        ("2 min", 120.0),
        ("250us", 250e-6),
        ("3µs", 3e-6),
        ("7ns", 7e-9),
        (".5s", 0.5),
        ("0s", 0.0),
    ],
)
def test_a_duration_is_seconds(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("12B", 12),
        ("1kB", 1000),
        ("1KB", 1000),
        ("64MiB", 64 * 2**20),
        ("100MB", 10**8),
        ("1.5KiB", 1536),
        ("2GB", 2 * 10**9),
        ("1 GiB", 2**30),
    ],
)
def test_a_size_is_bytes(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize(("value", "readings"), [(30, ("30s", "30ms")), (0.5, ("0.5s", "0.5ms"))])
def test_a_bare_number_shows_both_readings_of_a_duration(value: float, readings: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="needs a unit") as caught:
        duration(value)
    assert all(reading in str(caught.value) for reading in readings)


def test_a_bare_number_shows_both_readings_of_a_size() -> None:
    with pytest.raises(ValueError, match=r"64MiB or 64B"):
        size(64)


@pytest.mark.parametrize(
    "value",
    ["", "s", "30", "30 parsecs", "-3s", "1e3s", "3s ago", "64MiB", None, True, [], {}, "9" * 100 + "s", "1.2.3s"],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration(value)


@pytest.mark.parametrize("value", ["", "MB", "64", "64 mb", "30s", "-1B", None, False])
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="size"):
        size(value)


def test_an_unknown_unit_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="ns, us, µs, ms, s, m, min, h"):
        duration("3 weeks")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1.24e-3, "1.24 ms"), (2.0, "2 s"), (5400, "5400 s"), (3.2e-6, "3.2 µs"), (5e-9, "5 ns"), (0.0, "0 ns")],
)
def test_durations_are_shown_with_three_digits(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(64 * 2**20, "64 MiB"), (1536, "1.5 KiB"), (12, "12 B"), (3 * 2**30, "3 GiB")]
)
def test_sizes_are_shown_in_binary_units(count: int, shown: str) -> None:
    assert show_size(count) == shown


@pytest.mark.parametrize(
    ("rate", "shown"), [(16_559.4, "16,559/s"), (82.11, "82.1/s"), (0.0314, "0.0314/s"), (1e6, "1,000,000/s")]
)
def test_rates_are_shown_without_exponents(rate: float, shown: str) -> None:
    assert show_rate(rate) == shown
