"""Runs a drawn graph on an engine for the tests: place, compile, some iterations, and always the teardown."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from cgspec.engines import ENGINES, Engine, Options, Phase, PhaseData
from cgspec.errors import RunError
from cgspec.graph import Graph
from cgspec.spec import ClusterSpec, EngineSpec, TimeoutsSpec

ROOT = pathlib.Path(__file__).parent / "actors"


def options(kind: str = "compiled", *, timeouts: dict[str, float] | None = None, **more: Any) -> Options:
    """Options with short deadlines."""
    # ``model_construct``: durations as plain seconds, no spec to be checked
    given = {"place": 20.0, "start": 30.0, "first": 60.0, "stall": 20.0, "teardown": 20.0, **(timeouts or {})}
    engine_more = more.pop("engine", {})
    engine = EngineSpec().model_copy(
        update={"kind": kind, "timeouts": TimeoutsSpec().model_copy(update=given), **engine_more}
    )
    cluster = ClusterSpec().model_copy(update=more.pop("cluster", {}))
    inflight, root = more.pop("inflight", 1), more.pop("root", ROOT)
    return Options(engine=engine, cluster=cluster, inflight=inflight, root=root, **more)


@contextlib.contextmanager
def started(graph: Graph, given: Options, phase: Phase | None = None) -> Iterator[Engine]:
    engine = ENGINES[given.engine.kind](graph, given)
    try:
        engine.place()
        engine.compile()
        engine.begin(phase or Phase("measure", 1000))
        yield engine
    finally:
        engine.teardown()


class Shared:
    """Live actors for one graph after the other, as long as the graphs need the same ones; an engine for each kind."""

    def __init__(self) -> None:
        self.engines: dict[str, Engine] = {}

    @contextlib.contextmanager
    def started(self, graph: Graph, given: Options, phase: Phase | None = None) -> Iterator[Engine]:
        """A new object in each actor, whatever went before; actors that failed are not used again."""
        kind = given.engine.kind
        engine = self.engines.pop(kind, None)
        if engine is not None and not engine.renew(graph, given, fresh=True):
            engine.teardown()
            engine = None
        if engine is None:
            engine = ENGINES[kind](graph, given)
            engine.place()
        try:
            engine.compile()
            engine.begin(phase or Phase("measure", 1000))
            yield engine
        except BaseException:
            engine.teardown()
            raise
        self.engines[kind] = engine

    def run(self, graph: Graph, iterations: Sequence[Sequence[object]], given: Options) -> list[list[object]]:
        with self.started(graph, given) as engine:
            return [one(engine, *inputs) for inputs in iterations]

    def end(self) -> None:
        for engine in self.engines.values():
            engine.teardown()


def one(engine: Engine, *inputs: object) -> list[object]:
    """One iteration; raises what the task raised."""
    engine.submit(inputs)
    fetched = engine.fetch()
    if fetched.error is not None:
        raise fetched.error
    return fetched.values


def run(graph: Graph, iterations: Sequence[Sequence[object]], given: Options) -> list[list[object]]:
    with started(graph, given) as engine:
        return [one(engine, *inputs) for inputs in iterations]


def error_of(graph: Graph, inputs: Sequence[object], given: Options) -> RunError:
    """The error of the first iteration, of whatever way it comes."""
    try:
        run(graph, [inputs], given)
    except RunError as error:
        return error
    raise AssertionError("nothing failed")


__all__ = ["ROOT", "PhaseData", "Shared", "error_of", "one", "options", "run", "started"]
