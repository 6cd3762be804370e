"""The Python interface: load a spec, run it, or keep its graph live and call it, from plain code or asyncio."""

from __future__ import annotations

import asyncio
import os
import pathlib
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cgspec.checking import Checked
from cgspec.checking import check as check_file
from cgspec.diagnostics import suggest
from cgspec.errors import SpecError, UsageError
from cgspec.graph import Graph
from cgspec.raynames import profilers_of_switches
from cgspec.views import diagnostics

if TYPE_CHECKING:
    from cgspec.diagnostics import Finding
    from cgspec.engines import Engine
    from cgspec.feed import Feed
    from cgspec.record import Record
    from cgspec.running import Result

ENDLESS = 10_000
"""Iterations that the recorder of a live graph holds."""


@dataclass(frozen=True)
class Loaded:
    """A spec without errors.

    Attributes:
        graph: what it expands to.
        findings: warnings and notes.
    """

    checked: Checked
    rehearse: bool = False

    @property
    def graph(self) -> Graph:
        assert self.checked.graph is not None
        return self.checked.graph

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.checked.findings

    def _repr_svg_(self) -> str:
        from cgspec.views import picture

        return picture.render(self.graph, "svg").decode()


def check(
    path: str | os.PathLike[str], *, rehearse: bool = False, variant: str | None = None, **overrides: Any
) -> tuple[Finding, ...]:
    """Everything that is found in a spec, in order of place; nothing of the user's is imported."""
    return _check(path, overrides, rehearse=rehearse, variant=variant).findings


def load(
    path: str | os.PathLike[str], *, rehearse: bool = False, variant: str | None = None, **overrides: Any
) -> Loaded:
    """A spec that can be started.

    Args:
        rehearse: to be run on CPUs.
        overrides: by dotted path: ``load("x.yaml", **{"run.iterations": 3})``.

    Raises:
        SpecError: it has errors.
    """
    checked = _check(path, overrides, rehearse=rehearse, variant=variant)
    if checked.errors:
        raise SpecError(checked.findings, diagnostics.text(checked.findings))
    return Loaded(checked, rehearse)


def _check(path: str | os.PathLike[str], overrides: Mapping[str, Any], **settings: Any) -> Checked:
    import json

    try:
        said = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in overrides.items()]
    except (TypeError, ValueError) as error:
        raise UsageError(f"an override is plain data, as YAML says it: {error}") from None
    return check_file(path, overrides=said, **settings)


def run(
    path: str | os.PathLike[str], *, out: str | os.PathLike[str] = "runs", rehearse: bool = False, **overrides: Any
) -> Result:
    """Runs a spec as ``cgspec run`` does, Ray's own profiler switches in the environment included.

    Returns:
        With the record and the run folder.

    Raises:
        SpecError: the spec has errors.
        NotAble: no run folder can be made.
    """
    from cgspec.job import Job
    from cgspec.running import run as run_job

    if profilers := profilers_of_switches(overrides):
        overrides["profile"] = profilers
    loaded = load(path, rehearse=rehearse, **overrides)
    return run_job(Job.of(loaded.checked, out=pathlib.Path(out), rehearse=rehearse, overrides=overrides))


@dataclass(frozen=True)
class OpenRun:
    """A finished run, from its folder."""

    record: Record
    run_dir: pathlib.Path

    def _repr_svg_(self) -> str | None:
        from cgspec.views.of_run import draw

        return draw(self.run_dir)


def open_run(run_dir: str | os.PathLike[str]) -> OpenRun:
    """The run of a run folder, or of ``runs/<name>/latest``.

    Raises:
        UsageError: there is no such run.
    """
    from cgspec.record import load as load_record
    from cgspec.timeline import folder_of

    return OpenRun(load_record(os.fspath(run_dir)), folder_of(os.fspath(run_dir)))


class LiveGraph:
    """A compiled graph on live actors; call it with inputs by name, those not given are made as the spec says.

    Calls may overlap, from threads or from asyncio: at most ``run.inflight`` iterations are under way, and results
    come back in the order of the calls.
    """

    def __init__(self, graph: Graph, engine: Engine, feed: Feed, inflight: int) -> None:
        self.graph = graph
        self._engine, self._feed = engine, feed
        self._room = threading.BoundedSemaphore(inflight)
        self._turn = threading.Lock()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="cgspec-results")
        self._iteration = 0
        self._closed = False

    def __call__(self, **inputs: Any) -> Any:
        """Runs one iteration and returns the outputs in the form of the spec.

        Raises:
            UsageError: an input that there is not.
            RunError: a task raised, an actor died, or a deadline passed.
        """
        return self.submit(**inputs).result()

    async def call(self, **inputs: Any) -> Any:
        """The same for asyncio: waiting does not block the event loop."""
        future = await asyncio.to_thread(self.submit, **inputs)
        return await asyncio.wrap_future(future)

    def submit(self, **inputs: Any) -> Future[Any]:
        """Starts one iteration; waits only while ``run.inflight`` are under way."""
        given = self._placed(inputs)
        if self._closed:
            raise UsageError(f"the graph {self.graph.name} is closed: call it inside its `with` block")
        self._room.acquire()
        try:
            with self._turn:
                values = self._feed.make(self._iteration)
                self._feed.complete(self._iteration, values)
                for place, value in given.items():
                    values[place] = value
                self._engine.submit(values)
                self._iteration += 1
                return self._reader.submit(self._fetch, self._iteration - 1)
        except BaseException:
            self._room.release()
            raise

    def _placed(self, inputs: Mapping[str, Any]) -> dict[int, Any]:
        names = {given.name: place for place, given in enumerate(self.graph.inputs)}
        unknown = [name for name in inputs if name not in names]
        if unknown:
            raise UsageError(f"there is no input {unknown[0]}; {suggest(unknown[0], names, noun='inputs')}")
        return {names[name]: value for name, value in inputs.items()}

    def _fetch(self, iteration: int) -> Any:
        from cgspec.outputs import assemble, formed

        try:
            fetched = self._engine.fetch()
            outputs = None if fetched.error else assemble(self.graph, fetched.values)
            self._feed.remember(iteration, outputs)
        finally:
            self._room.release()
        if fetched.error is not None:
            raise fetched.error
        assert outputs is not None
        return formed(self.graph, outputs)

    def close(self) -> None:
        """Waits for what is under way; further calls are refused."""
        self._closed = True
        self._reader.shutdown(wait=True)


@contextmanager
def start(spec: Loaded | str | os.PathLike[str], *, rehearse: bool = False, **overrides: Any) -> Iterator[LiveGraph]:
    """Starts a spec's actors, compiles its graph, and takes everything down at the end.

    Raises:
        UsageError: overrides for a spec that was loaded already.
        SpecError, NotAble, TaskRaised, Stalled, ActorDied: as ``cgspec run``.
    """
    from cgspec.engines import ENGINES, Phase
    from cgspec.feed import Feed
    from cgspec.plans import options_of, setups_of
    from cgspec.setting_up import set_up

    if isinstance(spec, Loaded) and (rehearse or overrides):
        raise UsageError("a loaded spec is started as it is: give rehearse and overrides to load")
    loaded = spec if isinstance(spec, Loaded) else load(spec, rehearse=rehearse, **overrides)
    wanted, graph = loaded.checked.spec, loaded.graph
    assert wanted is not None
    options = options_of(wanted, graph, loaded.checked.root, rehearse=loaded.rehearse, log_dir=None)
    engine = ENGINES[wanted.engine.kind](graph, replace(options, profiles=()))
    live = None
    try:
        engine.place()
        engine.compile()
        feed = Feed(graph)
        set_up(engine, setups_of(wanted, graph, loaded.checked.values.read), feed, first=True)
        engine.begin(Phase("live", ENDLESS))
        live = LiveGraph(graph, engine, feed, wanted.run.inflight)
        yield live
    finally:
        if live is not None:
            live.close()
        engine.teardown()
