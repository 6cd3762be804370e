"""The report: one page that stands alone, says what happened, and shows hostile text as text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from finished import CHAIN, by_hand, edit, finish

from cgspec.errors import UsageError
from cgspec.record import Record, load
from cgspec.timeline import read_phase
from cgspec.views import charts, gantt, report, verdict

DATA = Path(__file__).parent / "data"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x07${7*7}{{7*7}} `$(rm)`"
HOSTED = re.compile(r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org)""")


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("chain"), CHAIN).run_dir


def test_every_run_leaves_a_small_page_that_needs_nothing_from_elsewhere(chain: Path) -> None:
    text = (chain / "report.html").read_text()
    assert len(text) < 200_000
    assert not HOSTED.findall(text.replace("https://ui.perfetto.dev", ""))
    assert not {"script", "link", "iframe", "img"} & set(Page(text).tags)
    assert "default-src 'none'" in text


def test_the_page_says_what_was_measured(chain: Path) -> None:
    page, record = Page((chain / "report.html").read_text()), load(chain)
    measure = record.phase("measure")
    assert measure is not None and measure.latency_us is not None
    for expected in (
        "chain passed",
        "The expectation held.",
        f"Half of the iterations took at most {report._us(measure.latency_us.p50)}",
        "Latency of each iteration",
        "How many iterations took how long",
        "How close it came to its limits",
        "takes " + report._us(record.tasks["a"].busy_us.p50),  # type: ignore[union-attr]
        "on the critical path",
        "A few iterations",
        "cgspec run " + str(chain / "spec.resolved.yaml"),
        f"python {record.machine.versions['python']}",
    ):
        assert expected in page.text, expected


def test_a_run_that_raised_says_what_ended_it(tmp_path: Path) -> None:
    failing = CHAIN.replace("{call: second.forward, in: {x: a}}", "{call: second.fail_at, in: {x: a}, with: {at: 7}}")
    result = finish(tmp_path, failing)
    text = (result.run_dir / "report.html").read_text()
    page = Page(text)
    assert "script" not in page.tags  # its message is one
    for expected in ("a task raised", "What ended it", "in iteration 7", "8 of 60 measured iterations"):
        assert expected in page.text, expected
    assert "ValueError: <script>alert('no')</script>" in page.text
    assert "--only 7 --engine local" in page.text


@pytest.mark.parametrize(
    ("changes", "word", "sentence"),
    [
        ({"status": "running", "pid": 2**22 + 1, "machine": {}}, "killed", "The process was killed before it could"),
        ({"status": "interrupted"}, "interrupted", "40 of 100 measured iterations were completed."),
        ({"rehearsal": True}, "passed", "a rehearsal on CPUs"),
        ({"status": "not-able", "phases": []}, "cannot be run here", "40 measured iterations were saved."),
    ],
)
def test_runs_that_are_no_clean_success_say_so(
    changes: dict[str, object], word: str, sentence: str, tmp_path: Path
) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 100.0}, iterations=40)
    phases = [{"name": "measure", "iterations": 40, "asked": 100}]
    edit(run_dir, **({"phases": phases} | changes))
    page = Page(report.report(run_dir))
    assert word in page.text and sentence in page.text


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 100.0}, iterations=40)
    data = json.loads((run_dir / "run.json").read_text())
    _poison(data)
    data |= {"status": "task-raised", "outputs": {"first": {HOSTILE: HOSTILE}}, "overrides": {HOSTILE: HOSTILE}}
    data["failure"] = dict.fromkeys(("kind", "message", "task", "traceback", "file", "actor"), HOSTILE)
    data["expect"] = [{"what": HOSTILE, "passed": False, "expected": HOSTILE, "found": HOSTILE, "file": HOSTILE}]
    data["findings"] = [{"severity": HOSTILE, "message": HOSTILE, "fix": HOSTILE, "file": HOSTILE, "line": 1}]
    (run_dir / "run.json").write_text(json.dumps(data))
    text = report.report(run_dir)
    page = Page(text)
    assert not {"script", "img"} & set(page.tags) and not any(name.startswith("on") for name in page.names)
    assert "\u202e" not in text and "\x07" not in text and "{{7*7}}" in page.text
    assert page.text.count("<script>alert(1)</script>") > 10


def _poison(data: dict[str, object]) -> None:
    """Replaces every text that a user chose."""
    data |= {"name": HOSTILE, "engine": HOSTILE, "spec_file": HOSTILE, "notes": [HOSTILE], "id": HOSTILE}
    data["machine"] = {"host": HOSTILE, "gpus": [HOSTILE], "versions": {HOSTILE: HOSTILE}}
    actors = data["actors"]
    assert isinstance(actors, list)
    actors[0] |= {"name": HOSTILE, "class": HOSTILE, "node": HOSTILE}


def test_a_run_of_an_older_cgspec_has_a_page_too() -> None:
    page = Page(report.report(DATA / "run-v1"))
    assert "small passed" in page.text and "there are no times on it" in page.text


def test_a_large_run_has_a_page_of_bounded_size(tmp_path: Path) -> None:
    busy = {f"task.{number}": (lambda draw: draw.gauss(100, 10)) for number in range(300)}
    run_dir = by_hand(tmp_path / "run", busy, iterations=300)
    text = report.report(run_dir)
    assert len(text) < 2_000_000
    assert "200 of 300 tasks" not in text  # no busy times in this record
    assert "276 more actors are not shown" in Page(text).text


def test_no_such_run_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run folder"):
        report.report(tmp_path)


def test_dots_are_where_the_latencies_are() -> None:
    chart = charts.over_time([0, 1, 2], [100, 200, 0])
    assert chart is not None  # the chart's top is 5% above the greatest
    assert chart.dots == "M0.0 523.8h0M500.0 47.6h0" and chart.errors == "M1000.0 1000V940"


def test_a_few_outliers_do_not_press_the_others_to_the_ground() -> None:
    chart = charts.over_time(range(200), [100] * 199 + [10**6])
    assert chart is not None and chart.marks[0].place == 50.0
    assert chart.remark == "1 of 200 are above the chart, up to 1 ms"


def test_of_many_iterations_the_chart_shows_median_and_extremes() -> None:
    chart = charts.over_time(range(10_000), [100 + i % 3 for i in range(10_000)])
    assert chart is not None and not chart.dots and chart.line.count("L") == 238 and len(chart.area) < 10_000


def test_the_distribution_counts_every_iteration_once() -> None:
    chart = charts.distribution([100] * 30 + [200] * 10)
    assert chart is not None
    bars = re.findall(r"M[\d.]+ 1000V([\d.]+)h", chart.area)
    assert bars == ["0.0", "666.7"]  # the lower one is a third of the higher
    assert [mark.text for mark in chart.marks] == ["p50", "p95", "p99"]


def test_the_gantt_shows_iterations_around_the_median(tmp_path: Path) -> None:
    times = iter([100.0, 100.0, 300.0, 500.0, 500.0, 300.0, 100.0, 500.0, 100.0])
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: next(times)}, iterations=9)
    segment = read_phase(run_dir, "measure")
    assert segment is not None
    drawn = gantt.draw(load(run_dir), segment)
    assert drawn is not None and drawn.about.startswith("iterations 1 to 3 of the measure phase")
    driver, actor = drawn.rows
    assert [bar.text for bar in driver.bars] == ["1", "2", "3"]
    assert [(bar.left, bar.width) for bar in actor.bars] == [(0.0, 9.524), (14.286, 28.571), (47.619, 47.619)]


def test_the_verdict_begins_with_what_matters_most() -> None:
    record = Record(id="", name="x", status="passed", started="", expect=[], rehearsal=True)
    assert list(verdict.sentences(record)) == [
        "Nothing was measured.",
        "This was a rehearsal on CPUs: it shows that the graph works, its times say nothing about GPUs.",
    ]
    assert verdict.mood(record) == "good"


def test_secrets_are_not_on_the_page(tmp_path: Path) -> None:
    secret = CHAIN.replace(
        "{call: first.forward, in: {x: inputs.x}}",
        "{call: first.keep, in: {x: inputs.x}, with: {api_key: hunter2hunter2}}",
    )
    run_dir = finish(tmp_path, secret).run_dir
    for name in ("report.html", "plan.json", "run.json"):
        assert "hunter2" not in (run_dir / name).read_text(), name
    assert "api_key" in (run_dir / "report.html").read_text()
    assert "hunter2" not in report.report(run_dir)


def test_what_to_do_next_is_to_open_the_merged_trace(chain: Path) -> None:
    assert "trace/merged.json.gz" in Page((chain / "report.html").read_text()).text.split("what to do next")[1]


def test_the_specs_own_metrics_are_shown(tmp_path: Path) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 100.0}, iterations=40)
    edit(run_dir, metrics={"tokens_per_s": 1234.5678, "loss": None})
    assert "The spec's own metrics tokens_per_s 1234.57 loss no value" in Page(report.report(run_dir)).text
