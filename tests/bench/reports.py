"""The size of reports and the time they take: ``python tests/bench/reports.py``.

A run of 16 tasks and 1,000 iterations, and one of 2,000 tasks and 20,000 iterations whose recorder held 100,000 rows.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from finished import by_hand

from cgspec.comparing import compare
from cgspec.views import report

LIMIT = 2_000_000
"""Bytes that a report may have."""


def _busy(draw: random.Random) -> float:
    return draw.lognormvariate(5, 0.2)


def measure(folder: Path, tasks: int, iterations: int, samples: int) -> int:
    """Prints the numbers of one size; returns the bytes of its report."""
    run_dir = by_hand(folder / f"{tasks}", {f"task.{number}": _busy for number in range(tasks)}, iterations=iterations)
    rows = [f"measure,{i},{10**12 + i * 10**6},{round(_busy(random) * 1e3)}" for i in range(iterations, samples)]  # type: ignore[arg-type]
    with (run_dir / "samples.csv").open("a") as file:
        file.write("".join(f"{row}\n" for row in rows))
    began = time.monotonic()
    size = report.write(run_dir).stat().st_size
    reported, began = time.monotonic() - began, time.monotonic()
    compare(run_dir, run_dir)
    compared = time.monotonic() - began
    head = f"{tasks:5} tasks, {samples:6} iterations"
    print(f"{head}: report {size / 1e3:.0f} kB in {reported:.2f} s; compare in {compared:.2f} s")
    return size


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        sizes = [measure(Path(folder), 16, 1_000, 1_000), measure(Path(folder), 2_000, 50, 20_000)]
    return int(max(sizes) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
