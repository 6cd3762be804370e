"""The first thing that a user does, on real Ray: the quickstart, profiled; what it leaves is read back and counted."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cgspec.record import load

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TASKS = ("hidden", "y")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    flags = ["--profile", "torch", "--profile", "timeline", "-n", "20", "--out", str(out), "--json"]
    command = [sys.executable, "-m", "cgspec", "run", "specs/quickstart.yaml", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(json.loads(done.stdout)["run_dir"])


@pytest.fixture(scope="module")
def events(run_dir: Path) -> list[dict[str, Any]]:
    with gzip.open(run_dir / "trace" / "merged.json.gz") as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def test_every_actor_leaves_a_trace_that_is_named_after_it(run_dir: Path) -> None:
    record = load(run_dir)
    assert {path.name for path in (run_dir / "trace").iterdir()} == {
        "merged.json.gz",
        *(f"{actor.name}.pt.trace.json.gz" for actor in record.actors),
    }
    assert [phase.notes for phase in record.phases] == [[]] * len(record.phases)


def test_the_merged_trace_has_a_slice_for_each_task_and_iteration(events: list[dict[str, Any]]) -> None:
    slices = [event for event in events if event["ph"] == "X" and event["cat"] == "task"]
    for phase in ("profile-torch", "profile-timeline"):  # ten iterations that are recorded, after two others
        assert Counter(event["name"] for event in slices if event["args"]["phase"] == phase) == dict.fromkeys(TASKS, 12)
    ranges = Counter(event["name"] for event in events if event.get("cat") == "user_annotation")
    assert {task: ranges[task] for task in TASKS} == dict.fromkeys(TASKS, 10)


def test_reads_and_writes_are_in_it_and_beside_the_busy_times(run_dir: Path, events: list[dict[str, Any]]) -> None:
    """The first read of the phase began before it."""
    found = Counter(event["name"] for event in events if event.get("cat") in ("read", "write"))
    assert found == {"read hidden": 11, "write hidden": 12, "read y": 11, "write y": 12}
    tasks = load(run_dir).tasks.values()
    assert all(task.read_us is not None and task.write_us is not None for task in tasks)


def test_its_report_loads_nothing(run_dir: Path) -> None:
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page and len(page) < 2_000_000
    assert not re.search(r"<(script|link|img|iframe)\b|\bsrc=|url\(", page)
