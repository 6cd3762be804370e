"""Fifty runs in a row leave the machine, and a process that makes them, as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faulty import Run

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

RUNS = 50
IN_ONE_PROCESS = """
import gc, json, os, threading
import cgspec, ray

def held():
    gc.collect()
    places = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    sockets = sum("socket:" in place for place in places)
    return {"sockets": sockets, "others": len(places) - sockets, "threads": threading.active_count()}

ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
for number in range(int(os.environ["SOAK_RUNS"])):
    assert cgspec.run("spec.yaml").status == "passed"
    print(json.dumps(held()), flush=True)
ray.shutdown()
"""


def test_runs_in_a_row_leave_nothing_on_the_machine(tmp_path: Path) -> None:
    for _ in range(RUNS):
        Run(tmp_path, "run.iterations=5").end().check(0, "passed", measured=True)
    assert len(list((tmp_path / "runs" / "faulty").glob("2*"))) == RUNS


def test_runs_in_one_process_hold_no_more_than_ray_does(tmp_path: Path) -> None:
    """Ray keeps a closed socket or two of each actor that has ended (a plain script's grow as fast); nothing else."""
    run = Run(tmp_path, python=("-c", IN_ONE_PROCESS), env={"SOAK_RUNS": str(RUNS)})
    ended = run.end(within=3000)
    held = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 0 and len(held) == RUNS, ended.err
    assert not [left for left in ended.left if not left.startswith(("ray/", "sem."))], ended.left
    first, last = held[4], held[-1]
    assert last["others"] == first["others"] and last["threads"] == first["threads"], held
    assert last["sockets"] - first["sockets"] <= 3 * (RUNS - 5), held
