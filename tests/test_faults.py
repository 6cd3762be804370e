"""Every fault ends its run in time, with the right exit code, the cause, what was measured, and nothing left."""

from __future__ import annotations

import subprocess
from pathlib import Path
from subprocess import DEVNULL

import pytest
from faults import FAULTS, NAPS, Fault
from faulty import Run
from test_cli import cgspec

from cgspec.record import load


def mark(fault: Fault) -> pytest.MarkDecorator:
    """Small disks are mounted in a namespace of their own; where that is not allowed, they are for another machine."""
    mounts = not fault.under or subprocess.run(["unshare", "-rm", "true"], check=False, stderr=DEVNULL).returncode == 0
    return pytest.mark.soak if fault.soak or not mounts else pytest.mark.slow


@pytest.mark.parametrize("fault", [pytest.param(each, id=each.name, marks=mark(each)) for each in FAULTS])
def test_a_fault_ends_its_run(fault: Fault, tmp_path: Path) -> None:
    fault.run(tmp_path)


def test_runs_at_once_do_not_meet_and_one_that_is_killed_says_so(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    killed = Run(tmp_path / "killed", NAPS, "run.iterations=100000", out=out)
    others = [Run(tmp_path / name, out=out) for name in ("one", "two")]
    killed.until(lambda: killed.in_phase("measure"))
    killed.kill()
    records = []
    for other in others:
        ended = other.end()
        ended.check(0, "passed", measured=True)
        records.append(ended.record)
    assert killed.end().left
    folders = {path.name for path in (out / "faulty").glob("2*")}
    assert len(folders) == 3 and (out / "faulty" / "latest").resolve().name in folders
    listed = cgspec("runs", "--out", out).stdout
    assert (listed.count("passed"), listed.count("killed")) == (2, 1)
    (over,) = folders - {Path(record.run_dir).name for record in records if record is not None}
    assert load(out / "faulty" / over).state == "killed"
    assert cgspec("where", out / "faulty" / over).stdout.startswith(
        "faulty is over: killed, after 2 of 2 iterations of"
    )
    assert cgspec("report", out / "faulty" / over).returncode == 0
    assert "killed" in (out / "faulty" / over / "report.html").read_text()


@pytest.mark.slow
def test_the_deadlines_of_a_run_are_its_own_and_not_rays(tmp_path: Path) -> None:
    """In the driver and in the actors: Ray's own, 10 s by default, are 1 s here, and a task takes 3 s."""
    short = {"RAY_CGRAPH_get_timeout": "1", "RAY_CGRAPH_submit_timeout": "1"}
    changes = ("tasks.first.call=a.slow", "run.iterations=2", "run.warmup=1", "run.inflight=2")
    Run(tmp_path, *changes, env=short).end().check(0, "passed", measured=True)
