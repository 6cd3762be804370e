"""The time and memory of merging large traces: ``python tests/bench/traces.py [MB]`` (500 by default).

Makes a run folder whose four actors have torch traces of that size together (uncompressed), merges them in a process of
its own, and prints how long it took and the peak of its resident memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ACTORS, ITERATIONS = 4, 100
LIMIT = 300
"""MB of resident memory that a merge may take."""
BASE = 1_790_857_026_000_000_000
STEP = 1_000_000
"""ns between two iterations."""


def make(run_dir: Path, megabytes: int) -> int:
    """Writes the run folder; returns the bytes of its traces."""
    names = [f"stage.{number}" for number in range(ACTORS)]
    (run_dir / "trace").mkdir(parents=True)
    files = [f"trace/{name}.pt.trace.json.gz" for name in names]
    actors = [{"name": name, "class": "model.py:Stage", "tasks": [f"fwd.{n}"]} for n, name in enumerate(names)]
    phase = {"name": "profile", "profiled": "torch", "iterations": ITERATIONS, "asked": ITERATIONS, "files": files}
    record = {"id": "bench", "name": "bench", "status": "passed", "started": "", "actors": actors, "phases": [phase]}
    edges = [{"from": f"fwd.{number}", "to": f"fwd.{number + 1}"} for number in range(ACTORS - 1)]
    (run_dir / "run.json").write_text(json.dumps(record))
    (run_dir / "plan.json").write_text(json.dumps({"edges": edges}))
    _times(run_dir)
    return sum(_trace(run_dir / file, number, megabytes * 10**6 // ACTORS) for number, file in enumerate(files))


def _times(run_dir: Path) -> None:
    starts = [1_000_000_000 + STEP * i for i in range(ITERATIONS)]
    rows = [f"profile-torch,{i},{start},{ACTORS * 200_000}\n" for i, start in enumerate(starts)]
    (run_dir / "samples.csv").write_text("phase,iteration,submitted_ns,latency_ns\n" + "".join(rows))
    rows = [
        f"profile-torch,{i},fwd.{task},{start + task * 200_000},{start + task * 200_000 + 150_000}\n"
        for task in range(ACTORS)
        for i, start in enumerate(starts)
    ]
    (run_dir / "timeline.csv").write_text("phase,iteration,task,start_ns,end_ns\n" + "".join(rows))


def _trace(path: Path, task: int, size: int) -> int:
    """A trace such as Kineto writes: one range for each iteration, and operators until it is large enough."""
    written, pid = 0, 4000 + task
    each = max(1, size // ITERATIONS // 206)
    with gzip.open(path, "wt", compresslevel=1) as file:
        head = f'{{"schemaVersion": 1, "baseTimeNanoseconds": {BASE}, "traceEvents": [\n'
        head += f'{{"ph": "M", "name": "process_labels", "ts": 0, "pid": {pid}, "tid": 0, "args": {{"labels": "CPU"}}}}'
        written += file.write(head)
        for i in range(ITERATIONS):
            start = (i * STEP + task * 200_000) / 1e3
            written += file.write(_event("user_annotation", f"fwd.{task}", pid, start, 150.0, 0))
            block = [_event("cpu_op", "aten::mm", pid, start + n * 1e-3, 0.001, n) for n in range(each)]
            written += file.write("".join(block))
        written += file.write('\n], "traceName": "bench"}')
    return written


def _event(kind: str, name: str, pid: int, start: float, length: float, number: int) -> str:
    args = f'{{\n      "External id": {number},"Record function id": 0, "Ev Idx": {number}\n    }}'
    where = f'"pid": {pid}, "tid": {pid},\n    "ts": {start:.3f}, "dur": {length:.3f}'
    return f',\n  {{\n    "ph": "X", "cat": "{kind}", "name": "{name}", {where},\n    "args": {args}\n  }}'


def merge(run_dir: Path) -> None:
    """Merges and prints its own numbers, as JSON."""
    from cgspec.views import trace

    began = time.monotonic()
    merged = trace.merge(run_dir)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"seconds": time.monotonic() - began, "peak_mb": peak, "events": merged.events}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", nargs="?", type=int, default=500)
    parser.add_argument("--merge", type=Path)
    options = parser.parse_args()
    if options.merge is not None:
        merge(options.merge)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        size = make(run_dir, options.megabytes) / 1e6
        command = [sys.executable, __file__, "--merge", str(run_dir)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rate = size / told["seconds"]
    print(f"{size:.0f} MB of traces, {told['events']:,} events: {told['seconds']:.1f} s ({rate:.0f} MB/s)")
    print(f"peak resident memory {told['peak_mb']:.0f} MB (limit {LIMIT} MB)")
    return int(told["peak_mb"] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
