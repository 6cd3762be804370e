"""The report in a real browser: nothing is fetched, nothing sticks out, and text can be read in both schemes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import Browser
from finished import CHAIN, by_hand, finish

from cgspec.views import report

pytestmark = pytest.mark.browser

WIDTHS = (1280, 390)

STICKING_OUT = """[...document.querySelectorAll('body *')].filter(it => {
    if (it.closest('.graph, .scroll, pre')) return false;
    const box = it.getBoundingClientRect();
    return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).map(it => it.outerHTML.slice(0, 120))"""

CONTRASTS = """(() => {
    const channels = text => text.match(/[0-9.]+/g).map(Number);
    const light = colour => channels(colour).slice(0, 3).map(c => c / 255)
        .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = it => {
        for (; it; it = it.parentElement) {
            const colour = getComputedStyle(it).backgroundColor;
            if ((channels(colour)[3] ?? 1) > 0) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const found = [];
    for (const it of document.querySelectorAll('body *:not(svg *)')) {
        const own = [...it.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        if (!own) continue;
        const [one, two] = [light(getComputedStyle(it).color), light(ground(it))];
        const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
        if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${it.outerHTML.slice(0, 100)}`);
    }
    return found;
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of a small run, of a run that raised, and of one with many tasks, long names and many iterations."""
    folder = tmp_path_factory.mktemp("pages")
    failing = CHAIN.replace("{call: second.forward, in: {x: a}}", "{call: second.fail_at, in: {x: a}, with: {at: 7}}")
    names = [f"a-task-with-a-rather-long-name-that-goes-on.{number}" for number in range(60)]
    large = by_hand(folder / "large", {name: (lambda draw: draw.gauss(100, 10)) for name in names}, iterations=900)
    return {
        "small": finish(folder / "small", CHAIN).run_dir / "report.html",
        "raised": finish(folder / "raised", failing).run_dir / "report.html",
        "large": report.write(large),
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["small", "raised", "large"])
def test_nothing_sticks_out(which: str, width: int, browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages[which], width=width)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(STICKING_OUT) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("which", ["small", "raised", "large"])
def test_text_can_be_read(which: str, dark: bool, browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages[which], width=1280, dark=dark)
    ground = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(23, 25, 27)") is dark
    assert browser.ask(CONTRASTS) == []


@pytest.mark.parametrize("which", ["small", "raised", "large"])
def test_nothing_is_fetched_and_nothing_is_complained_about(
    which: str, browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages[which], width=1280)
    assert browser.requests == [] and browser.complaints == []


def test_the_charts_have_their_size(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["small"], width=1280)
    boxes = browser.ask("[...document.querySelectorAll('.room svg')].map(it => it.getBoundingClientRect().width)")
    assert len(boxes) == 2 and all(width > 300 for width in boxes)
    bars = browser.ask("[...document.querySelectorAll('.track .bar')].map(it => it.getBoundingClientRect().width)")
    assert len(bars) == 3 * 3 and all(width >= 2 for width in bars)  # driver and two actors, three iterations
