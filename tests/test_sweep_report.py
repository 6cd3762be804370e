"""The page of a sweep: medians, places and links were worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cgspec.errors import UsageError
from cgspec.views import curves, sweep_report


def turn(
    point: int, repeat: int = 0, p50: float | None = 1000.0, status: str = "passed", **values: Any
) -> dict[str, Any]:
    return {
        "point": point,
        "repeat": repeat,
        "values": values,
        "run_dir": f"points/{point:03}/run-{repeat} #1",
        "status": status,
        "exit_code": 0,
        "p50_us": p50,
        "p95_us": p50,
        "throughput_per_s": 1e6 / p50 if p50 else None,
        "metrics": {"cost": 3.0} if p50 else {},
    }


def sweep(folder: Path, turns: list[dict[str, Any]], *, name: str = "matrix", planned: int | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    told = {"name": name, "fingerprint": "x", "planned": planned or len(turns), "turns": turns}
    (folder / "sweep.json").write_text(json.dumps(told))
    return folder


def drawn(turns: list[dict[str, Any]]) -> curves.Curves:
    found = curves.draw("p50", turns, lambda each: each["p50_us"], str)
    assert found is not None
    return found


def test_the_axis_with_the_most_numbers_goes_to_the_right() -> None:
    found = drawn([turn(n, kind=kind, rows=rows) for n, (kind, rows) in enumerate([("a", 1), ("b", 2), ("a", 3)])])
    assert found.axis == "rows"
    assert [line.name for line in found.lines] == ["kind=a", "kind=b"]


def test_lines_go_through_the_medians_of_repeats() -> None:
    found = drawn([turn(0, 0, 100, n=1), turn(0, 1, 300, n=1), turn(0, 2, 200, n=1), turn(1, 0, 300 / 1.06, n=2)])
    top = 300 * 1.06
    assert found.lines[0].path == f"M50.0 {1000 - 200 / top * 1000:.1f}L950.0 {1000 - 300 / 1.06 / top * 1000:.1f}"
    assert found.lines[0].dots.count("M") == 4


def test_numbers_far_apart_are_set_apart_by_ratios_and_others_side_by_side() -> None:
    assert [round(curves.Scale([1, 10, 100]).place(n), 3) for n in (1, 10, 100)] == [0.05, 0.5, 0.95]
    assert [round(curves.Scale([1, 2, 5]).place(n), 3) for n in (1, 2, 5)] == [0.05, 0.275, 0.95]
    assert [round(curves.Scale(["x", "y", True]).place(n), 3) for n in ("x", "y", True)] == [0.05, 0.5, 0.95]
    assert curves.Scale([7]).place(7) == 0.5


def test_one_value_on_every_axis_is_no_curve() -> None:
    assert curves.draw("p50", [turn(0, n=1), turn(0, 1, n=1)], lambda each: each["p50_us"], str) is None


def test_the_table_has_medians_and_links_to_the_reports_that_there_are(tmp_path: Path) -> None:
    made = sweep(tmp_path / "s", [turn(0, 0, 1000, n=1), turn(0, 1, 3000, n=1), turn(1, 0, None, "task-raised", n=2)])
    report = made / "points" / "000" / "run-0 #1" / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("x")
    page = sweep_report.write(made).read_text()
    assert 'href="points/000/run-0%20%231/report.html"' in page and page.count("<a href") == 1
    assert "2 ms" in page and "100.0%" in page  # the median, and how far the repeats lie apart
    assert "1 of 3 did not pass" in page and "task-raised" in page


def test_it_loads_nothing_and_texts_are_escaped(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>"
    wrong = turn(1, n=2) | {"faults": [nasty, "]]> --> %7B{{ 7 * 7 }}"]}
    page = sweep_report.page(sweep(tmp_path / "s", [turn(0, n=nasty), wrong], name="<b>&"))
    assert "]]&gt; --&gt; %7B{{ 7 * 7 }}" in page
    assert "<script" not in page and "<b>&" not in page and "&lt;b&gt;&amp;" in page
    assert "http://" not in page and "https://" not in page


def test_a_sweep_of_many_points_stays_small(tmp_path: Path) -> None:
    turns = [turn(n, 0, 1000 + n, a=n, b=n % 9) for n in range(3000)]
    page = sweep_report.page(sweep(tmp_path / "s", turns))
    assert len(page) < 2_000_000 and "2500 more points are in sweep.json" in page and "more lines are not drawn" in page


def test_an_interrupted_sweep_without_a_run_has_a_page(tmp_path: Path) -> None:
    assert "0 of 4 runs" in sweep_report.page(sweep(tmp_path / "s", [], planned=4))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"turns": 3}'])
def test_what_is_no_sweep_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(UsageError, match="no sweep"):
        sweep_report.page(tmp_path)
