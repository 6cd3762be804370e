"""Finished runs for tests of presenters: real ones of the local engine, and folders written by hand."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cgspec.checking import check
from cgspec.record import Record
from cgspec.running import Job, Result, run

MODEL = """
import time


class Stage:
    def forward(self, x):
        return x

    def keep(self, x, api_key):
        return x

    def fail_at(self, x, at):
        if x == at:
            raise ValueError("<script>alert('no')</script>")
        return x


class Layer:
    def __init__(self):
        import torch
        self.weight = torch.ones(16, 16)

    def forward(self, x):
        return x @ self.weight
"""

CHAIN = """
cgspec: 1
name: chain
engine: local
actors:
  first: {class: model.py:Stage}
  second: {class: model.py:Stage}
inputs:
  x: {$count: {from: 0}}
tasks:
  a: {call: first.forward, in: {x: inputs.x}}
  b: {call: second.forward, in: {x: a}}
outputs: b
run: {iterations: 60, warmup: 3}
profile: timeline
expect:
  - {output: b, equals: {$expr: i}}
"""

TORCH = """
cgspec: 1
name: layers
engine: local
actors:
  only: {class: model.py:Layer}
inputs:
  x: {$tensor: {shape: [4, 16], dtype: float32, fill: 1}}
tasks:
  up: {call: only.forward, in: {x: inputs.x}}
  down: {call: only.forward, in: {x: up}}
outputs: down
run: {iterations: 5, warmup: 1}
profile: {kind: torch, iterations: 7, warmup: 2}
"""


def finish(folder: Path, text: str, *, out: Path | None = None, **more: Any) -> Result:
    """Runs a spec on the local engine."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(MODEL)
    (folder / "spec.yaml").write_text(text)
    checked = check(folder / "spec.yaml")
    assert checked.spec is not None and checked.graph is not None, checked.findings
    job = Job(
        spec=checked.spec,
        graph=checked.graph,
        read=checked.values.read,
        root=checked.root,
        text=checked.text,
        resolved=checked.data,
        file=checked.file,
        locate=checked.line_of,
        out=out or folder / "runs",
        **more,
    )
    return run(job)


def by_hand(
    folder: Path,
    busy: Mapping[str, Callable[[random.Random], float]],
    *,
    iterations: int = 400,
    seed: int = 0,
    **more: Any,
) -> Path:
    """A run of a chain of tasks, one actor each, whose busy times (µs) are drawn; an iteration takes 50 µs more."""
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    samples, rows, at = ["phase,iteration,submitted_ns,latency_ns"], [], 10**9
    for i in range(iterations):
        begun = at
        for task, take in busy.items():
            end = at + round(take(draw) * 1e3)
            rows.append((task, f"measure,{i},{task},{at},{end}"))
            at = end
        at += 50_000
        samples.append(f"measure,{i},{begun},{at - begun}")
    (folder / "samples.csv").write_text("\n".join(samples) + "\n")
    ordered = [row for task in busy for name, row in rows if name == task]
    (folder / "timeline.csv").write_text("phase,iteration,task,start_ns,end_ns\n" + "\n".join(ordered) + "\n")
    record = _record(folder, list(busy), iterations) | more
    (folder / "run.json").write_text(Record.model_validate(record).as_json())
    return folder


def _record(folder: Path, tasks: Sequence[str], iterations: int) -> dict[str, Any]:
    return {
        "id": folder.name,
        "name": "hand",
        "status": "passed",
        "started": "2026-11-30T08:00:00.000Z",
        "pid": os.getpid(),
        "run_dir": str(folder),
        "engine": "local",
        "actors": [{"name": f"on-{task}", "class": "model.py:Stage", "tasks": [task]} for task in tasks],
        "phases": [{"name": "measure", "iterations": iterations, "asked": iterations, "throughput_per_s": 1000.0}],
        "tasks": {task: {"line": f"spec.yaml:{number + 10}"} for number, task in enumerate(tasks)},
        "machine": {"host": "laptop", "cpus": 2, "versions": {"python": "3.11.7", "torch": "2.13.0"}},
    }


def edit(run_dir: Path, **changes: Any) -> None:
    """Changes keys of a run's record."""
    path = run_dir / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def copy(run_dir: Path, to: Path) -> Path:
    """A copy of a run."""
    shutil.copytree(run_dir, to)
    return to


def slow_down(run_dir: Path, task: str, factor: float) -> None:
    """Lets a task of a run have taken longer, and with it every iteration."""
    added: dict[str, int] = {}
    lines = (run_dir / "timeline.csv").read_text().splitlines()
    for number, line in enumerate(lines[1:], 1):
        phase, i, name, start, end = line.split(",")
        if name == task:
            more = round((int(end) - int(start)) * (factor - 1))
            added[f"{phase},{i}"] = more
            lines[number] = f"{phase},{i},{name},{start},{int(end) + more}"
    (run_dir / "timeline.csv").write_text("\n".join(lines) + "\n")
    lines = (run_dir / "samples.csv").read_text().splitlines()
    for number, line in enumerate(lines[1:], 1):
        phase, i, start, latency = line.split(",")
        lines[number] = f"{phase},{i},{start},{int(latency) + added.get(f'{phase},{i}', 0)}"
    (run_dir / "samples.csv").write_text("\n".join(lines) + "\n")
