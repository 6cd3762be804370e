"""100 MB from actor to actor: time, and the peak of every actor's memory."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

from tests.bench import graphs, table
from tests.bench.sides import Cgspec, Script, alternate, both, middle, one_ray, p50
from tests.bench.table import Ratios, Row, spread

SIZE = 100_000_000
BUFFER = str(SIZE + 65_536)


def rows() -> Iterator[Row]:
    with one_ray(RAY_CGRAPH_buffer_size_bytes=BUFFER), both(graphs.big(SIZE)) as (script, ours):
        compared = alternate(script, ours, rounds=8, iterations=6)
        peaks = {name: _peaks(side) for name, side in (("script", script), ("cgspec", ours))}
    shown = [table.seconds(middle(blocks, p50)) for blocks in (compared.script, compared.cgspec)]
    yield table.within(
        "100 MB an edge: p50", shown[0], shown[1], spread(compared.ratios(p50)), spread(compared.same(p50))
    )
    worst = {name: max(found) for name, found in peaks.items()}
    ratio = Ratios(*[worst["cgspec"] / worst["script"]] * 3)
    memory = table.megabytes(worst["script"]), table.megabytes(worst["cgspec"])
    yield table.at_most("100 MB an edge: an actor's peak memory", *memory, ratio, None, 1.1)


def _peaks(side: Script | Cgspec) -> list[int]:
    """Bytes: the peak of resident memory of each actor's process, shared memory included."""
    import ray

    pids = ray.get([handle.__ray_call__.remote(_pid) for handle in side.handles()])
    return [_peak(pid) for pid in pids]


def _pid(actor: Any) -> int:
    return os.getpid()


def _peak(pid: int) -> int:
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
