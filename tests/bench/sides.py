"""The two sides of a comparison, alive on one Ray: an exported script, and cgspec's engine and phases."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

from cgspec.checking import Checked, check
from cgspec.interrupts import Signals

HERE = pathlib.Path(__file__).parent


@dataclass(frozen=True)
class Block:
    """What some iterations took: their latencies and all of it, in seconds."""

    latencies: list[float]
    seconds: float

    @property
    def p50(self) -> float:
        return statistics.median(self.latencies)

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds


def checked(text: str, **overrides: object) -> Checked:
    said = [f"{name}={value}" for name, value in overrides.items()]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        file.write(text)
    found = check(file.name, overrides=[item.replace("__", ".") for item in said])
    os.unlink(file.name)
    assert not found.errors, [finding.message for finding in found.errors]
    return found


def script_of(found: Checked) -> str:
    from cgspec.views.export import script

    assert found.graph is not None and found.spec is not None
    return script(found.graph, found.spec, found.values.read, found.root)


@contextlib.contextmanager
def one_ray(**environment: str) -> Iterator[None]:
    """One local Ray for both sides."""
    os.environ |= {
        "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), str(HERE)]),
        "RAY_USAGE_STATS_ENABLED": "0",
        **environment,
    }
    sys.path.append(str(HERE))
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


class Script:
    """An exported script's graph.

    Args:
        first: whether its first iteration is run at once.

    Attributes:
        compiled: seconds that ``build`` took; ``started``: with the first iteration, if that is run.
    """

    def __init__(self, text: str, *, first: bool = True, **overrides: object) -> None:
        self.module = _imported(script_of(checked(text, **overrides)))
        began = time.perf_counter()
        self.graph = self.module.build()
        self.compiled = time.perf_counter() - began
        if first:
            self.block(1)
        self.started = time.perf_counter() - began

    def block(self, iterations: int) -> Block:
        latencies, seconds, _ = self.module.run(self.graph, iterations)
        return Block(latencies, seconds)

    def handles(self) -> list[Any]:
        from cgspec.raynames import loop_refs

        return list(loop_refs(self.graph))

    def end(self) -> None:
        """The actors go at once, as cgspec's do: nothing of them is measured with what comes next."""
        import ray

        handles = self.handles()
        self.graph.teardown()
        for handle in handles:
            ray.kill(handle)


def _imported(text: str) -> ModuleType:
    """The script as a module whose classes go to actors by value."""
    import ray

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "exported.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(f"exported_{time.monotonic_ns()}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    ray.cloudpickle.register_pickle_by_value(module)
    return module


class Cgspec:
    """The same graph by ``cgspec run``'s own parts: the compiled engine, and a pass over it."""

    def __init__(self, text: str, **overrides: object) -> None:
        from cgspec.engines import ENGINES, Phase
        from cgspec.feed import Feed
        from cgspec.phases import Pass, Plan
        from cgspec.plans import options_of
        from cgspec.running import SILENT

        found = checked(text, **overrides)
        assert found.graph is not None and found.spec is not None
        graph, spec, self.logs = found.graph, found.spec, tempfile.TemporaryDirectory()
        options = options_of(spec, graph, found.root, rehearse=False, log_dir=pathlib.Path(self.logs.name))
        began = time.perf_counter()
        self.engine = ENGINES["compiled"](graph, options)
        self.engine.place()
        self.engine.compile()
        self.compiled = time.perf_counter() - began
        feed = Feed(graph)

        def passed(iterations: int) -> Any:
            plan = Plan(Phase("measure", iterations), spec.run.inflight)
            done = Pass(self.engine, graph, plan, feed, SILENT, Signals()).run()
            assert done.error is None, done.error
            return done

        self._passed: Callable[[int], Any] = passed
        self.block(1)
        self.started = time.perf_counter() - began

    def block(self, iterations: int) -> Block:
        done = self._passed(iterations)
        return Block([ns / 1e9 for ns in done.latencies()], done.seconds)

    def handles(self) -> list[Any]:
        return list(self.engine.actors.handles)  # type: ignore[attr-defined]

    def end(self) -> None:
        self.engine.teardown()
        self.logs.cleanup()


@contextlib.contextmanager
def both(text: str, *, mine: dict[str, object] | None = None, **overrides: object) -> Iterator[tuple[Script, Cgspec]]:
    """Both sides of a spec; ``mine`` are overrides of cgspec's side alone."""
    with contextlib.ExitStack() as stack:
        script = Script(text, **overrides)
        stack.callback(script.end)
        ours = Cgspec(text, **{**overrides, **(mine or {})})
        stack.callback(ours.end)
        yield script, ours


@dataclass(frozen=True)
class Compared:
    """Blocks of alternating sides: script, cgspec, script, cgspec, … and a script at the end."""

    script: list[Block]
    cgspec: list[Block]

    def ratios(self, measure: Callable[[Block], float]) -> list[float]:
        """Each of cgspec's blocks against the mean of the script's before and after it."""
        theirs = [measure(block) for block in self.script]
        pairs = zip(self.cgspec, pairwise(theirs), strict=False)
        return [measure(block) / ((before + after) / 2) for block, (before, after) in pairs]

    def same(self, measure: Callable[[Block], float]) -> list[float]:
        """Each of the script's blocks against the mean of those before and after it."""
        theirs = [measure(block) for block in self.script]
        triples = zip(theirs, theirs[1:], theirs[2:], strict=False)
        return [middle / ((before + after) / 2) for before, middle, after in triples]


def alternate(script: Script | Cgspec, ours: Cgspec, *, rounds: int, iterations: int) -> Compared:
    """Runs blocks in turn, after one of each that does not count."""
    for side in (script, ours):
        side.block(min(iterations, 50))
    blocks: Compared = Compared([script.block(iterations)], [])
    for _ in range(rounds):
        blocks.cgspec.append(ours.block(iterations))
        blocks.script.append(script.block(iterations))
    return blocks


def p50(block: Block) -> float:
    return block.p50


def rate(block: Block) -> float:
    return block.rate


def middle(blocks: list[Block], measure: Callable[[Block], float]) -> float:
    return statistics.median(map(measure, blocks))
