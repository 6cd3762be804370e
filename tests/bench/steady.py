"""Steady state, both sides alive on one Ray: latency, throughput, what fusing does, the worker's own cost."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from tests.bench import graphs, table
from tests.bench.sides import Cgspec, Compared, Script, alternate, both, checked, middle, one_ray, p50, rate
from tests.bench.table import Row, spread

ROUNDS = 10
SHORT = {"hop": graphs.hop, "fan": graphs.fan, "chain of three": graphs.chain_of_three, "quickstart": graphs.layers}
SEEDS = (1, 3, 5, 6)
"""Of random graphs: the first ones that have a chain."""


def rows() -> Iterator[Row]:
    with one_ray(CGSPEC_BENCH_STAMP="/dev/null"):
        for name, text in SHORT.items():
            script = Script(text())
            yield _latency(name, text(), script)
            if name != "quickstart":
                yield from _throughput(name, text(), script)
            script.end()
        yield _fused()
        yield _fused_or_not("two tasks", graphs.left_behind())
        yield _scattered()
        yield from _own_cost()


def _latency(name: str, text: str, script: Script) -> Row:
    ours = Cgspec(text)
    compared = alternate(script, ours, rounds=ROUNDS, iterations=300)
    ours.end()
    ratio, same = spread(compared.ratios(p50)), spread(compared.same(p50))
    shown = [table.seconds(middle(blocks, p50)) for blocks in (compared.script, compared.cgspec)]
    return table.within(f"p50 of {name}", shown[0], shown[1], ratio, same)


def _throughput(name: str, text: str, script: Script) -> Iterator[Row]:
    """Eight in flight against the script one at a time, and against the script with the same window."""
    ours = Cgspec(text, run__inflight=8)
    compared = alternate(script, ours, rounds=ROUNDS, iterations=800)
    shown = [table.rate(middle(blocks, rate)) for blocks in (compared.script, compared.cgspec)]
    limit = 1.4 if name == "hop" else 1.15
    ratio, same = spread(compared.ratios(rate)), spread(compared.same(rate))
    yield table.at_least(f"throughput of {name}, 8 in flight", shown[0], shown[1], ratio, same, limit)
    windowed = Script(text, run__inflight=8)
    compared = alternate(windowed, ours, rounds=ROUNDS, iterations=800)
    shown = [table.rate(middle(blocks, rate)) for blocks in (compared.script, compared.cgspec)]
    ratio, same = spread(compared.ratios(rate)), spread(compared.same(rate))
    yield table.said("  … and 8 in the script too", shown[0], shown[1], ratio, same)
    windowed.end()
    ours.end()


def _fused() -> Row:
    with both(graphs.long_chain(40)) as (script, ours):
        compared = alternate(script, ours, rounds=8, iterations=100)
    ratio, same = spread([1 / each for each in compared.ratios(p50)]), spread(compared.same(p50))
    shown = [table.seconds(middle(blocks, p50)) for blocks in (compared.script, compared.cgspec)]
    return table.at_least("40 tasks on two actors, times faster", shown[0], shown[1], ratio, same, 4)


def _fused_or_not(name: str, text: str) -> Row:
    """cgspec against itself; in two pairs, for actors on other processors make as much of a difference."""
    pairs = [_apart_and_fused(text, fused_first=fused_first) for fused_first in (False, True)]
    ratio = spread([ratio for compared in pairs for ratio in compared.ratios(p50)])
    same = spread([ratio for compared in pairs for ratio in compared.same(p50)])
    apart = middle([block for compared in pairs for block in compared.script], p50)
    fused = middle([block for compared in pairs for block in compared.cgspec], p50)
    what = f"p50 of {name} fused, cgspec not fused"
    return table.within(what, table.seconds(apart), table.seconds(fused), ratio, same)


def _apart_and_fused(text: str, *, fused_first: bool) -> Compared:
    made = {fuse: Cgspec(text, engine__fuse=fuse) for fuse in (fused_first, not fused_first)}
    compared = alternate(made[False], made[True], rounds=ROUNDS, iterations=300)
    for side in made.values():
        side.end()
    return compared


def _scattered() -> Row:
    """The same of random graphs: of that which gains least by it."""
    rows = [_fused_or_not(f"one of {len(SEEDS)} random graphs", graphs.scattered(seed)) for seed in SEEDS]
    return max(rows, key=lambda row: row.ratio.middle)


def _own_cost() -> Iterator[Row]:
    """What the worker adds to a call of the user's method, and the recorder alone, as shares of a hop's p50.

    Hop and calls are measured in turn: a machine's speed changes within minutes.
    """
    hop = Script(graphs.hop())
    hop.block(300)
    for name, plain, ours in _calls():
        rounds = [(hop.block(300).p50, _timed(plain), _timed(ours), _timed(plain)) for _ in range(9)]
        added = [call - (before + after) / 2 for _, before, call, after in rounds]
        shares = [max(0.0, each) / whole for each, (whole, *_) in zip(added, rounds, strict=True)]
        shown = statistics.median(whole for whole, *_ in rounds), statistics.median(added)
        yield table.at_most(f"{name}, share of a hop", *map(table.seconds, shown), spread(shares), None, 0.01)
    hop.end()


def _calls() -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    from cgspec import usercode
    from cgspec.layout import lay_out
    from cgspec.worker import Job, Worker

    found = checked(graphs.hop())
    assert found.graph is not None
    worker, actor = Worker(), found.graph.actors[0]
    worker.construct(Job(str(found.root), actor, lay_out(found.graph, transports=False, devices=False).steps[0], "cpu"))
    worker.begin(100_000)
    user, mark = usercode.load(actor.class_ref)(), worker.recorder.mark
    now = time.monotonic_ns
    call = worker.calls[0]
    yield "worker with recorder, per task", lambda: user.inc(1), lambda: call((1,))
    yield "recorder, per task", lambda: None, lambda: mark(0, now(), now())


def _timed(call: Callable[[], object], times: int = 20_000) -> float:
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times
