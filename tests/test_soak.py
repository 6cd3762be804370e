"""Fifty runs in a row leave the machine, and a process that makes them, as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faulty import Run

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

RUNS = 50
IN_ONE_PROCESS = """
import gc, json, os, sys, threading
import cgspec

def held():
    gc.collect()
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": threading.active_count(),
            "system threads": len(os.listdir("/proc/self/task"))}

for number in range(int(sys.argv.pop())):
    assert cgspec.run("spec.yaml").status == "passed"
    print(json.dumps(held()), flush=True)
"""


def test_runs_in_a_row_leave_nothing_on_the_machine(tmp_path: Path) -> None:
    for _ in range(RUNS):
        Run(tmp_path, "run.iterations=5").end().check(0, "passed", measured=True)
    assert len(list((tmp_path / "runs" / "faulty").glob("2*"))) == RUNS


def test_runs_in_one_process_hold_no_more_and_no_more(tmp_path: Path) -> None:
    """The first ones load libraries and start pools that stay."""
    run = Run(tmp_path, str(RUNS), python=("-c", IN_ONE_PROCESS))
    ended = run.end(within=3000)
    assert (ended.code, ended.left) == (0, ()), ended.err
    held = [json.loads(line) for line in ended.out.splitlines()]
    print(held)
    assert len(held) == RUNS and held[-1] == held[4], held
