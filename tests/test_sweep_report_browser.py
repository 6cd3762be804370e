"""The page of a sweep in a real browser: nothing is fetched, nothing sticks out, and text can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Browser
from test_report_browser import CONTRASTS
from test_sweep_report import sweep, turn

from cgspec.views import sweep_report

pytestmark = pytest.mark.browser

OVERLAPPING = """[...document.querySelectorAll('.plot')].flatMap(plot => {
    const boxes = [...plot.querySelectorAll('.at')].map(it => it.getBoundingClientRect());
    boxes.sort((a, b) => a.left - b.left);
    return boxes.filter((box, at) => at && box.left < boxes[at - 1].right);
}).length"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two axes, one with long values, three repeats; one point failed."""
    points = [
        (rows, kind) for rows in (64, 1024, 65536, 1048576) for kind in ("accelerator", "a-rather-long-name " * 6)
    ]
    turns = [
        turn(number, repeat, 100.0 * (number + 1) + repeat, **{"vars.rows": rows, "tasks.send.transport": kind})
        for number, (rows, kind) in enumerate(points)
        for repeat in range(3)
    ]
    turns[-1] |= {"status": "task-raised", "p50_us": None}
    return sweep_report.write(sweep(tmp_path_factory.mktemp("sweep"), turns))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_can_be_read_and_loads_nothing(dark: bool, width: int, browser: Browser, page: Path) -> None:
    browser.open(page, width=width, dark=dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(CONTRASTS) == []
    assert browser.ask(OVERLAPPING) == 0
    assert browser.requests == [] and browser.complaints == []
