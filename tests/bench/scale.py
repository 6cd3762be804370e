"""How long `cgspec check` takes as a whole process: a small spec, and 10, 1,000 and 10,000 tasks; prints a table.

``python tests/bench/scale.py [REPEATS]``: medians of so many runs (5), taken in turn, with the smallest beside them.
"""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HEAD = "cgspec: 1\nactors:\n  w: {class: part.py:Part, axes: {n: %d}}\ninputs: {x: 1}\ntasks:\n"
CLASS = "class Part:\n    def run(self, x, y=None): ...\n"
SIZES = (10, 1_000, 10_000)


def written_out(count: int) -> str:
    """A chain over ten actors, every task on a line of its own."""
    lines = [f"  t{n}: {{call: w.{n % 10}.run, in: {{x: {f't{n - 1}' if n else 'inputs.x'}}}}}\n" for n in range(count)]
    return HEAD % 10 + "".join(lines) + f"outputs: t{count - 1}\n"


def by_axes(count: int) -> str:
    """Ten stages that hand microbatches on, forwards and backwards, in an order given by slots."""
    return (
        HEAD % 5
        + f"""\
  fwd:
    call: w.run
    axes: {{mb: {count // 10}}}
    slot: {{$expr: "2 * index.mb + index.n"}}
    in: {{x: {{$prev: fwd, axis: n, first: inputs.x}}}}
  bwd:
    call: w.run
    axes: {{mb: {count // 10}}}
    slot: {{$expr: "2 * index.mb + 2 * size.n - 1 - index.n"}}
    in: {{x: {{$next: bwd, axis: n, last: fwd}}}}
outputs: bwd.0.*
"""
    )


def seconds(spec: pathlib.Path) -> float:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "cgspec", "check", str(spec)], capture_output=True, text=True)
    took = time.perf_counter() - began
    assert done.returncode == 0, done.stdout + done.stderr
    return took


def measure(folder: pathlib.Path, repeats: int) -> dict[tuple[str, int], list[float]]:
    (folder / "part.py").write_text(CLASS)
    specs: dict[tuple[str, int], pathlib.Path] = {}
    for name, make in (("written out", written_out), ("by axes", by_axes)):
        for size in SIZES:
            specs[name, size] = folder / f"{name.replace(' ', '_')}_{size}.yaml"
            specs[name, size].write_text(make(size))
    found: dict[tuple[str, int], list[float]] = {key: [] for key in specs}
    for _ in range(repeats):
        for key, spec in specs.items():
            found[key].append(seconds(spec))
    return found


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = measure(pathlib.Path(folder), repeats)
    print(f"{'tasks':>22} {'median s':>9} {'least s':>9}")
    for (name, size), times in found.items():
        print(f"{name + ' ' + str(size):>22} {statistics.median(times):9.2f} {min(times):9.2f}")
    for name in ("written out", "by axes"):
        growth = min(found[name, 10_000]) / min(found[name, 1_000])
        print(f"{name}: 10,000 tasks take {growth:.1f} times what 1,000 take")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
