"""The local engine: the whole graph in this process, in order, without Ray; breakpoints work."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cgspec import collectives, usercode
from cgspec.engines import Fetched, Options, Phase, PhaseData, Position, same_actors
from cgspec.engines.failures import actor_error, call_error, environment, first_failed, task_error
from cgspec.engines.phases import finish, rescued, watch_job
from cgspec.engines.prints import Prints
from cgspec.engines.process_groups import in_one_process
from cgspec.graph import Graph, InputRef
from cgspec.invocation import Failed
from cgspec.layout import lay_out
from cgspec.profilers import Ranges, Watch, make_watch
from cgspec.steps import Bind, FromInput, FromPort, pick
from cgspec.worker import Job, Worker


class LocalEngine:
    """See ``engines.Engine``; an iteration is executed when it is submitted.

    A profiler watches the whole process: its one trace is named ``local``.
    """

    kind = "local"

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = graph
        self.options = options
        self.layout = lay_out(graph, transports=False, devices=False)
        self.startup: dict[str, float] = {}
        self.notes: list[str] = []
        self.fused: tuple[tuple[int, ...], ...] = ()
        self.nodes = {actor.name: "here" for actor in graph.actors}
        self.workers = [Worker() for _ in graph.actors]
        self.phase = Phase("startup", 0)
        self.done: deque[Fetched] = deque()
        self.environ: dict[str, str | None] = {}
        self.iteration = 0
        self.watch: Watch | None = None
        self.prints = Prints()

    def place(self) -> None:
        began = time.monotonic()
        if self.options.log_dir is not None:
            self.prints.start()
        usercode.install(self.options.root)
        groups = in_one_process(self.graph)
        for number, (actor, worker) in enumerate(zip(self.graph.actors, self.workers, strict=True)):
            self._set_environment({**environment(self.graph, number, "cpu"), **groups.get(number, {})})
            job = Job(str(self.options.root), actor, self.layout.steps[number], "cpu")
            with self._printing(number):
                born = worker.construct(job)
            if isinstance(born, Failed):
                raise actor_error(self.graph, number, born)
        self.startup["construct"] = time.monotonic() - began

    @contextlib.contextmanager
    def _printing(self, actor: int) -> Iterator[None]:
        """What is printed meanwhile is the actor's."""
        self.prints.folder, self.prints.actor = self.options.log_dir, self.graph.actors[actor].name
        try:
            yield
        finally:
            self.prints.actor = None

    def _set_environment(self, variables: Mapping[str, str]) -> None:
        """One process has one environment: the actors' variables come one after the other, and go at teardown."""
        for name, text in variables.items():
            self.environ.setdefault(name, os.environ.get(name))
            os.environ[name] = text

    def renew(self, graph: Graph, options: Options, *, fresh: bool = False) -> bool:
        if not same_actors(self.graph, graph) or options.root != self.options.root:
            return False
        began = time.monotonic()
        self.graph, self.options = graph, options
        self.layout = lay_out(graph, transports=False, devices=False)
        self._adopt(fresh=fresh)
        self.startup = {"construct": time.monotonic() - began}
        return True

    def _adopt(self, *, fresh: bool) -> None:
        for number, (actor, worker) in enumerate(zip(self.graph.actors, self.workers, strict=True)):
            job = Job(str(self.options.root), actor, self.layout.steps[number], "cpu")
            with self._printing(number):
                born = worker.adopt(job, fresh=fresh)
            if isinstance(born, Failed):
                raise actor_error(self.graph, number, born)

    def reset(self) -> None:
        self._adopt(fresh=True)

    def compile(self) -> None:
        pass

    def call(self, actor: int, method: str, kwargs: Mapping[str, object]) -> object:
        with self._printing(actor):
            result = self.workers[actor].call(method, kwargs)
        if isinstance(result, Failed):
            raise call_error(self.graph, actor, method, result, phase=self.phase.name)
        return result

    def device(self, actor: int) -> str:
        return "cpu"

    def begin(self, phase: Phase) -> None:
        self.phase, self.iteration = phase, 0
        jobs = [watch_job(self.graph, phase, number) for number in range(len(self.workers))]
        first = next((job for job in jobs if job is not None), None)
        self.watch = make_watch(replace(first, actor="local", rank=0, world_size=1)) if first is not None else None
        for worker, job in zip(self.workers, jobs, strict=True):
            worker.begin(phase.iterations, Ranges(self.watch) if job and self.watch else None, phase.looks)

    def submit(self, inputs: Sequence[object]) -> None:
        if self.watch is not None:
            self.watch.before(self.iteration)
        ports: list[tuple[object, ...]] = []
        self.prints.folder = self.options.log_dir
        try:
            self._run_binds(inputs, ports)
        finally:
            self.prints.actor = None
        read = [ports[port.bind][port.port] for port in self.layout.reads]
        self.done.append(self._fetched(inputs, read, time.monotonic_ns()))
        if self.watch is not None:
            self.watch.after(self.iteration)
        self.iteration += 1

    def _run_binds(self, inputs: Sequence[object], ports: list[tuple[object, ...]]) -> None:
        for place, bind in enumerate(self.layout.binds):
            if place < len(ports):  # a member of the collective that was just executed
                continue
            ports.extend(self._met(bind.group, ports) if bind.group is not None else [self._ran(bind, inputs, ports)])

    def _ran(self, bind: Bind, inputs: Sequence[object], ports: list[tuple[object, ...]]) -> tuple[object, ...]:
        """What a step hands out."""
        self.prints.actor = self.graph.actors[bind.actor].name
        result = self.workers[bind.actor].run(bind.step, *(_read(source, inputs, ports) for source in bind.reads))
        return result if bind.ports > 1 else (result,)  # type: ignore[return-value]

    def _met(self, group: int, ports: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        """What a collective gives to its members; where one failed, its failure to all of them."""
        binds = [self.layout.binds[place] for place in self.layout.meetings[group]]
        members = [tuple(_read(source, (), ports) for source in bind.reads) for bind in binds]
        failed = first_failed(self.graph, [value for operands in members for value in operands])
        collective = self.graph.tasks[binds[0].task].collective
        assert collective is not None
        try:
            if failed is None:
                return collectives.together(collective, members)
        except ValueError as error:
            failed = Failed("raised", f"ValueError: {error}", binds[0].task, self.iteration)
        return [(failed,) * bind.ports for bind in binds]

    def _fetched(self, inputs: Sequence[object], read: list[object], at_ns: int) -> Fetched:
        failed = first_failed(self.graph, read)
        if failed is not None:
            return Fetched([], at_ns, task_error(self.graph, failed, phase=self.phase.name))
        outputs = self.layout.outputs
        return Fetched([inputs[o.input] if isinstance(o, InputRef) else pick(o, read) for o in outputs], at_ns)

    def fetch(self) -> Fetched:
        return self.done.popleft()

    def end(self) -> PhaseData:
        parts = [worker.end() for worker in self.workers]
        if self.prints.trouble is not None and self.prints.trouble not in self.notes:
            self.notes.append(self.prints.trouble)
        if self.watch is not None:
            self.watch.cut()
            parts[0].files, notes = self.watch.finish()
            parts[0].notes = tuple(notes)
            self.watch = None
        return finish(self.graph, self.phase, parts)

    def rescue(self) -> PhaseData | None:
        return rescued(self.graph, {number: worker.recorded() for number, worker in enumerate(self.workers)})

    def where(self) -> tuple[Position, ...]:
        spots = [worker.where() for worker in self.workers]
        return tuple(Position(number, node="here", **vars(spot)) for number, spot in enumerate(spots))

    def teardown(self) -> None:
        self.done.clear()
        self.prints.stop()
        for name, before in self.environ.items():
            if before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before
        self.environ.clear()

    def late_files(self) -> list[pathlib.Path]:
        return []


def _read(source: FromInput | FromPort, inputs: Sequence[object], ports: list[tuple[object, ...]]) -> object:
    if isinstance(source, FromPort):
        return ports[source.bind][source.port]
    return None if source.input is None else inputs[source.input]
