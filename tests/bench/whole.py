"""Whole processes: time to the first result, and what is wrong with a spec."""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.bench import graphs, table
from tests.bench.sides import HERE, checked, script_of
from tests.bench.table import Row, spread

CGSPEC = (sys.executable, "-m", "cgspec")


def rows() -> Iterator[Row]:
    yield _first("first result, whole process, no tensors", graphs.fan(stamped=True), 0.55, rounds=2)
    yield _first("first result, whole process, tensors", graphs.layers(), 0.8, rounds=2)
    yield _refusal()


def _first(what: str, text: str, limit: float, *, rounds: int) -> Row:
    """Script and cgspec in turn, each from its start to the result of the first iteration."""
    said = {"run__iterations": 2, "run__warmup": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "plain.py").write_text(script_of(checked(text, **said)))
        (folder / "spec.yaml").write_text(text)
        script = (sys.executable, "plain.py")
        ours = (*CGSPEC, "run", "spec.yaml", "run.iterations=2", "run.warmup=0", "--json")
        for command in (script, ours):  # disks and caches are warm for both from here on
            _until_stamp(command, folder)
        theirs, mine = [_until_stamp(script, folder)], []
        for _ in range(rounds):
            mine.append(_until_stamp(ours, folder))
            theirs.append(_until_stamp(script, folder))
    ratios = [each / ((theirs[n] + theirs[n + 1]) / 2) for n, each in enumerate(mine)]
    same = spread([after / before for before, after in pairwise(theirs)])
    shown = table.seconds(statistics.median(theirs)), table.seconds(statistics.median(mine))
    return table.at_most(what, *shown, spread(ratios), same, limit)


def _until_stamp(command: Sequence[str], folder: pathlib.Path) -> float:
    """Seconds from the process's start to its first result."""
    stamp = folder / "stamp"
    stamp.unlink(missing_ok=True)
    environment = {"CGSPEC_BENCH_STAMP": str(stamp), "RAY_USAGE_STATS_ENABLED": "0"}
    began = time.time()
    _run(command, folder, environment)
    return float(stamp.read_text()) - began


def _run(command: Sequence[str], folder: pathlib.Path, environment: dict[str, str], *, good: bool = True) -> str:
    path = os.pathsep.join([str(HERE.parent.parent), str(HERE)])
    given = {**os.environ, "PYTHONPATH": path, **environment}
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=180)
    assert (done.returncode == 0) is good, f"{command}: {done.returncode}\n{done.stderr[-3000:]}"
    return done.stderr


def _refusal() -> Row:
    """A task that nothing reads: what Ray says when it compiles, what cgspec says when it checks."""
    text = graphs.fan().replace("outputs: join", "outputs: left")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "spec.yaml").write_text(text)
        (folder / "plain.py").write_text(
            script_of(checked(graphs.fan())).replace("join.experimental", "left.experimental")
        )
        script, ours = (sys.executable, "plain.py"), (*CGSPEC, "check", "spec.yaml")
        _duration(ours, folder)  # as warm as the script, by now
        theirs, mine = [_duration(script, folder)], []
        for _ in range(3):
            mine.append(statistics.median(_duration(ours, folder) for _ in range(3)))
            theirs.append(_duration(script, folder))
    ratios = [(theirs[n] + theirs[n + 1]) / 2 / each for n, each in enumerate(mine)]
    same = spread([after / before for before, after in pairwise(theirs)])
    shown = table.seconds(statistics.median(theirs)), table.seconds(statistics.median(mine))
    return table.at_least("a wrong graph is refused, times faster", *shown, spread(ratios), same, 20)


def _duration(command: Sequence[str], folder: pathlib.Path) -> float:
    began = time.perf_counter()
    _run(command, folder, {"RAY_USAGE_STATS_ENABLED": "0"}, good=False)
    return time.perf_counter() - began
