"""The list of runs: newest first, with those that were killed or broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from finished import CHAIN, by_hand, edit, finish

from cgspec.errors import UsageError
from cgspec.views.runs import as_data, runs, text


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Runs of two specs, of every kind."""
    above = tmp_path / "runs"
    busy = {"a": lambda draw: 100.0}
    times = {"count": 9, "p50": 1500.0, "p95": 2.0, "p99": 2.0, "mean": 1.0, "min": 1.0, "max": 2.0}
    phases = [{"name": "measure", "iterations": 9, "asked": 9, "latency_us": times, "throughput_per_s": 666.6}]
    by_hand(above / "one" / "2026-11-30T08-00-00Z-aaaaaa", busy, name="one", phases=phases)
    killed = by_hand(above / "one" / "2026-11-30T09-00-00Z-bbbbbb", busy, name="one", status="running")
    edit(killed, pid=2**22 + 1, machine={}, phases=[])
    broken = by_hand(above / "two" / "2026-11-30T08-30-00Z-cccccc", busy)
    (broken / "run.json").write_text('{"id": "x", "na')
    (above / "two" / "2026-11-30T10-00-00Z-dddddd").mkdir()
    (above / "two" / "latest").symlink_to("2026-11-30T10-00-00Z-dddddd")
    (above / "notes.txt").write_text("not a run")
    return above


def test_runs_come_newest_first_with_how_they_ended(out: Path) -> None:
    found = [(entry.name, entry.id[-6:], entry.status) for entry in runs(out)]
    assert found == [
        ("two", "dddddd", "unreadable"),
        ("one", "bbbbbb", "killed"),
        ("two", "cccccc", "unreadable"),
        ("one", "aaaaaa", "passed"),
    ]


def test_the_table_says_what_is_known(out: Path) -> None:
    lines = text(runs(out)).splitlines()
    assert lines[0].split() == ["when", "(UTC)", "name", "how", "it", "ended", "p50", "throughput", "folder"]
    assert lines[4].split()[:7] == ["2026-11-30", "08:00:00", "one", "passed", "1.5", "ms", "667/s"]
    assert "killed" in lines[2]
    assert lines[5].startswith("  2026-11-30T10-00-00Z-dddddd: ") and "it has no run.json" in lines[5]
    assert "is no record of a run" in lines[6]


def test_one_name_can_be_asked_for(out: Path) -> None:
    assert {entry.name for entry in runs(out, name="one")} == {"one"}


def test_a_sweep_is_one_entry(out: Path) -> None:
    folder = out / "swept" / "2026-11-30T11-00-00Z-eeeeee"
    (folder / "points" / "0" / "2026-11-30T11-00-01Z-ffffff").mkdir(parents=True)
    turns = [{"exit_code": 0}, {"exit_code": 4}]
    (folder / "sweep.json").write_text(json.dumps({"name": "swept", "planned": 6, "turns": turns}))
    first = runs(out)[0]
    assert (first.name, first.status, first.remark) == ("swept", "sweep", "2 of 6 runs, 1 did not pass")
    (folder / "sweep.json").write_text("{")
    assert runs(out)[0].status == "unreadable"


def test_real_runs_are_listed(tmp_path: Path) -> None:
    result = finish(tmp_path, CHAIN)
    (entry,) = runs(tmp_path / "runs")
    assert entry.path == str(result.run_dir) and entry.status == "passed" and entry.p50_us
    assert json.loads(json.dumps(as_data([entry])))[0]["id"] == result.run_dir.name


def test_no_runs_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert text(runs(tmp_path / "runs")) == "no runs yet"
    with pytest.raises(UsageError, match="there is no folder"):
        runs(tmp_path / "nowhere")
