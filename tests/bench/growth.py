"""How both sides grow with the number of tasks and of iterations."""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise

from tests.bench import graphs, table
from tests.bench.sides import Cgspec, Script, alternate, both, middle, one_ray, p50
from tests.bench.table import Ratios, Row, spread

BUFFER = "16384"
"""Bytes of each channel: a thousand of Ray's megabyte would be a gigabyte."""
SMALL = {"engine__buffer": "16384B"}
SIZES = {10: (12, 100), 100: (10, 20), 1000: (6, 3)}
"""Tasks → rounds, and iterations of a block."""
FEW, MANY = 2_000, 100_000
"""Iterations of the runs whose memory is compared."""


def rows() -> Iterator[Row]:
    with one_ray(RAY_CGRAPH_buffer_size_bytes=BUFFER):
        before: dict[str, float] = {}
        for size, (rounds, iterations) in SIZES.items():
            compiled, latency, now = _ring(size, rounds, iterations)
            grown = {name: value / before[name] for name, value in now.items()} if before else {}
            before = now
            yield _named(compiled, grown, "compile")
            yield _named(latency, grown, "p50")
        yield from _pipeline()
    yield from _memory()


def _ring(size: int, rounds: int, iterations: int) -> tuple[Row, Row, dict[str, float]]:
    with both(graphs.ring(size), **SMALL) as (script, ours):
        compared = alternate(script, ours, rounds=rounds, iterations=iterations)
        one = Ratios(*[ours.started / script.started] * 3)
        started = table.seconds(script.started), table.seconds(ours.started)
        first = table.said(f"{size:,} tasks: actors, compile, first", *started, one, None)
    shown = [table.seconds(middle(blocks, p50)) for blocks in (compared.script, compared.cgspec)]
    ratio, same = spread(compared.ratios(p50)), spread(compared.same(p50))
    row = table.within(f"{size:,} tasks: p50", shown[0], shown[1], ratio, same)
    return first, row, {"compile": ours.started, "p50": middle(compared.cgspec, p50)}


def _named(row: Row, grown: dict[str, float], name: str) -> Row:
    """With the growth over the size before, which had a tenth of the tasks."""
    shown = f" ({grown[name]:.3g} times)" if grown else ""
    return Row(row.what, row.script, row.cgspec + shown, row.ratio, row.same, row.reach, row.held)


def _pipeline() -> Iterator[Row]:
    """2,000 tasks on four actors: from nothing to a graph that is compiled."""
    text = graphs.pipeline(4, 500)
    theirs, mine, runs = [_compiled(text)], [], []
    for _ in range(2):
        ours = Cgspec(text, **SMALL)
        mine.append(ours.compiled)
        runs.append(ours.block(2).p50)
        ours.end()
        theirs.append(_compiled(text))
    ratio = spread([each / ((theirs[n] + theirs[n + 1]) / 2) for n, each in enumerate(mine)])
    same = spread([after / before for before, after in pairwise(theirs)])
    script, ours_shown = (table.seconds(statistics.median(each)) for each in (theirs, mine))
    shown = script, f"{ours_shown}, runs in {table.seconds(statistics.median(runs))}"
    yield table.at_most("2,000 tasks on 4 actors: actors and compile", *shown, ratio, same, 1.1)


def _compiled(text: str) -> float:
    """Seconds that a script takes to compile its graph."""
    script = Script(text, first=False, **SMALL)
    script.end()
    return script.compiled


MEMORY = """
import pathlib, sys
from cgspec.checking import check
from cgspec.job import Job
from cgspec.running import SILENT, run

def bytes_of(name):
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

class Watching(type(SILENT)):
    most = 0
    def progress(self, done):
        self.most = max(self.most, bytes_of("VmRSS"))

found = check("spec.yaml", overrides=[f"run.iterations={sys.argv[1]}", "run.inflight=8"])
done = run(Job.of(found, out=pathlib.Path("runs")), watching := Watching())
assert done.status == "passed", done.error
print(watching.most, bytes_of("VmHWM"))
"""


def _memory() -> Iterator[Row]:
    """The driver's resident memory while a run goes on (samples go to a file), and at its end (its report is made)."""
    few, many = (_resident(iterations) for iterations in (FEW, MANY))
    names = ("driver's memory while it runs", "driver's largest memory, report included")
    for name, limit, less, more in zip(names, (1.1, None), few, many, strict=True):
        shown = f"{table.megabytes(less)}, then {table.megabytes(more)}"
        what, ratio = f"{name}: {FEW:,} and {MANY:,} iterations", Ratios(*[more / less] * 3)
        yield table.at_most(what, "", shown, ratio, None, limit) if limit else table.said(what, "", shown, ratio, None)


def _resident(iterations: int) -> list[int]:
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "spec.yaml").write_text(graphs.hop())
        command = [sys.executable, "-c", MEMORY, str(iterations)]
        told = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return [int(number) for number in told.split()]
