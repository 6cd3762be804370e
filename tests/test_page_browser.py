"""The page of ``viz`` in a real browser: search, click, both schemes, laptop and phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Browser
from finished import CHAIN, finish
from test_report_browser import CONTRASTS

from cgspec.reopening import checked_of
from cgspec.views import of_run, picture

pytestmark = pytest.mark.browser

CLICK = """(name => {
    const id = Object.keys(things).find(id => things[id].name === name && things[id].kind !== 'output');
    const box = named(id).querySelector('text').getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
})(%s)"""

INSIDE = """(() => {
    const panel = document.getElementById('panel').getBoundingClientRect();
    const stage = document.getElementById('stage').getBoundingClientRect();
    const tools = document.getElementById('shade').getBoundingClientRect();
    return [panel, stage, tools].every(it => it.right <= %d) && panel.bottom <= innerHeight + 1
        && document.documentElement.scrollWidth <= %d && stage.height > 150;
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = finish(tmp_path_factory.mktemp("chain"), CHAIN).run_dir
    checked = checked_of(run_dir)
    assert checked.graph is not None
    file = run_dir / "page.html"
    scene = of_run.dress(checked, run_dir, detailed=True)(picture.compose(checked.graph))
    file.write_bytes(picture.write(scene, "html"))
    return file


def click(browser: Browser, name: str) -> str:
    """Clicks the middle of a thing's name, and says what the panel then shows."""
    x, y = browser.ask(CLICK % json.dumps(name))
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    return str(browser.ask("document.getElementById('panel').innerText"))


def test_clicking_a_task_shows_its_lines_signature_edges_and_times(browser: Browser, page: Path) -> None:
    browser.open(page, width=1280)
    told = click(browser, "b")
    assert "spec.resolved.yaml:" in told and "call: second.forward" in told
    assert "forward(self, x" in told and "busy p95" in told
    assert "reads" in told and "shm" in told and "read by" in told
    assert browser.ask("document.querySelectorAll('.picked').length") == 1


def test_clicking_an_actor_shows_its_lines_and_tasks(browser: Browser, page: Path) -> None:
    browser.open(page, width=1280)
    told = click(browser, "first")
    assert "class: model.py:Stage" in told and "tasks, in order" in told and "of the time" in told


def test_searching_counts_and_picks_what_is_found(browser: Browser, page: Path) -> None:
    browser.open(page, width=1280)
    browser.ask("document.getElementById('search').focus()")
    browser.call("Input.insertText", text="second")
    assert browser.ask("document.getElementById('count').textContent") == "1 found"
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)
    assert browser.ask("document.querySelector('#panel h2').textContent") == "second"
    assert browser.ask("document.querySelectorAll('.found').length") == 1


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_can_be_read_and_loads_nothing(dark: bool, width: int, browser: Browser, page: Path) -> None:
    browser.open(page, width=width, dark=dark)
    click(browser, "b")
    assert browser.ask(INSIDE % (width, width))
    assert browser.ask(CONTRASTS) == []
    assert browser.requests == [] and browser.complaints == []


def test_two_fingers_zoom_and_a_phone_begins_legible(browser: Browser, page: Path) -> None:
    browser.open(page, width=390)
    zoom = browser.ask("view.zoom")
    assert zoom >= browser.ask("LEGIBLE") or browser.ask("size.width * view.zoom") <= 390
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    for kind, half in (("touchStart", 20), ("touchMove", 30), ("touchMove", 60), ("touchEnd", 0)):
        points = [{"x": 195 + side * half, "y": 300, "id": number} for number, side in enumerate((-1, 1))]
        browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points if half else [])
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    assert browser.ask("view.zoom") == pytest.approx(3 * zoom, rel=0.35)
    assert browser.ask("held.size") == 0
