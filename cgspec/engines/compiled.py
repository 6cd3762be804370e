"""The compiled engine: Ray Compiled Graph, placed with a deadline, watched while it runs, taken down in one place."""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cgspec import raynames
from cgspec.buffers import channel_bytes
from cgspec.clocks import hull
from cgspec.engines import Bounds, Fetched, Options, Phase, PhaseData, Position, loops, same_actors
from cgspec.engines.actors import Actors
from cgspec.engines.binding import Binding
from cgspec.engines.channels import name_channels
from cgspec.engines.cluster import Cluster, defaults
from cgspec.engines.communicators import StoreServer, communicators_of, patience
from cgspec.engines.couriers import Couriers
from cgspec.engines.diagnosis import why
from cgspec.engines.ending import Ending, quietly
from cgspec.engines.ends import Ends
from cgspec.engines.failures import call_error, first_failed, input_error, task_error
from cgspec.engines.host import Settings, sendable
from cgspec.engines.phases import finish, rescued, watch_job
from cgspec.engines.placement import Places, reserve
from cgspec.engines.shipping import ship
from cgspec.engines.waiting import Watchdog, stalled
from cgspec.errors import RunError
from cgspec.fusion import fuse, fused_tasks
from cgspec.graph import Graph, InputRef
from cgspec.invocation import FLUSH, Failed
from cgspec.layout import lay_out
from cgspec.payloads import detach
from cgspec.profilers import nsight
from cgspec.quantities import show_duration
from cgspec.steps import Chain, Layout, pick, sources_of

PATIENCE = 60.0
"""Seconds that ordinary calls between phases may take at least: a profiler's first start takes several."""
REPORTS = 120.0
"""Seconds that an ``nsys`` gets to write its report, once its actor has ended."""


class CompiledEngine:
    """See ``engines.Engine``."""

    kind = "compiled"
    fuses = True
    channels = True

    def __init__(self, graph: Graph, options: Options) -> None:
        self.startup: dict[str, float] = {}
        self.nodes: dict[str, str] = {}
        self.cluster = Cluster(graph, options)
        self.notes = self.cluster.notes
        self.couriers = Couriers(self.notes)
        self.actors = Actors(graph, options, self.couriers)
        self.places = Places()
        self.sendable = sendable()
        self.under_way: deque[Sequence[object]] = deque()
        self.broken: RunError | None = None
        self.down = False
        self.reports: list[pathlib.Path] = []
        self._take(graph, options)

    def _take(self, graph: Graph, options: Options) -> None:
        """Everything that belongs to one graph, before it is compiled."""
        self.graph, self.options = graph, options
        laid = self._lay_out()
        self.sources = sources_of(laid)
        self.strict = any(step.strict for steps in laid.steps for step in steps if not isinstance(step, Chain))
        self.layout = fuse(laid) if self.fuses and options.engine.fuse else laid
        self.fused = fused_tasks(self.layout)
        self.phase = Phase("startup", 0)
        self.rescued: PhaseData | None = None
        self.binding: Any = None
        self.compiled: Any = None
        self.ends: Any = None
        self.store: StoreServer | None = None
        self.watchdog: Watchdog | None = None
        self.fetched = 0
        self.began_first = 0.0
        self.reports_dir: pathlib.Path | None = None
        self.clocks: dict[str, Bounds] = {}
        self._stack = contextlib.ExitStack()

    def _lay_out(self) -> Layout:
        return lay_out(self.graph, transports=not self.options.rehearse, devices=self._has_devices())

    def place(self) -> None:
        self.cluster.check()
        self.actors.ahead.start(self.graph, self.options.root)
        with self._timed("ray"):
            self.cluster.start()
            if self.cluster.spans_nodes():
                self.actors.shipment = ship(self.options)
        with self._timed("place"):
            self.places = reserve(self.graph, self.options)
            self._create()
        with self._timed("construct"):
            self.actors.construct(self.layout)
        self.nodes = {actor.name: self.actors.address(n) or "" for n, actor in enumerate(self.graph.actors)}

    def _create(self) -> None:
        self.actors.create(self.places)

    def renew(self, graph: Graph, options: Options, *, fresh: bool = False) -> bool:
        if not self._is_well() or not self._fits(graph, options):
            return False
        if self.watchdog is not None:
            self.watchdog.end()
        if not Ending(self.options.engine.timeouts.teardown).let_go(self.compiled, self.actors):
            return False
        quietly(self._stack.close)
        self._take(graph, options)
        self.startup.clear()
        with self._timed("construct"):
            self.actors.take_over(graph, options, self.layout, fresh=fresh)
        return True

    def _is_well(self) -> bool:
        return self.broken is None and not self.down and self.compiled is not None and not self.under_way

    def _fits(self, graph: Graph, options: Options) -> bool:
        """Whether the live actors could be those of another run; a process under nsys has one report, so one run."""
        kept = ("cluster", "root", "rehearse")
        watched = any(nsight.nsight_profile(each) is not None for each in (self.options, options))
        same = all(getattr(self.options, name) == getattr(options, name) for name in kept)
        return same and not watched and same_actors(self.graph, graph)

    @contextlib.contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.startup[step] = time.monotonic() - began

    def compile(self) -> None:
        with self._timed("compile"):
            settings = {number: (self._settings(number),) for number in range(len(self.graph.actors))}
            self.actors.ask("configure", settings, within=PATIENCE)
            self._stack.enter_context(
                defaults(
                    teardown_timeout=max(1, int(self.options.engine.timeouts.teardown / 2)),
                    buffer_size_bytes=self._buffer(None),
                )
            )
            self._start_watchdog()
            self._compile()

    def _compile(self) -> None:
        engine = self.options.engine
        assert self.watchdog is not None
        self.watchdog.expect(engine.timeouts.first)
        try:
            self.binding = self._bind()
            raynames.spare_half_made_graphs()
            inflight = engine.max_inflight or self.options.inflight
            options = raynames.compile_options(inflight=inflight, buffered=engine.max_buffered, overlap=engine.overlap)
            with raynames.loop_replaced(loops.run):
                self.compiled = self.binding.dag.experimental_compile(**options)
            self.ends = Ends(self.compiled)
        except Exception as error:
            raise self._why(error) from None
        self.watchdog.met()

    def _bind(self) -> Binding:
        """Groups without GPUs communicate by gloo."""
        handles, groups = self.actors.handles, list(self.layout.meetings)
        communicators: dict[int, Any] = {}
        if groups and not self._has_devices():
            self.store = StoreServer(patience(self.graph, self.options.engine.timeouts.stall))
            communicators = communicators_of(self.graph, groups, handles, self.store.store)
        return Binding(self.graph, self.layout, handles, communicators)

    def _has_devices(self) -> bool:
        return not self.options.rehearse and any(actor.num_gpus for actor in self.graph.actors)

    def _settings(self, number: int) -> Settings:
        has_gpu = self.actors.device(number) == "cuda"
        communicates = any(bind.transport is not None or bind.group is not None for bind in self.layout.binds)
        plain = self.options.engine.short_loop and not has_gpu and not communicates
        return Settings(self._buffer(number), plain)

    def _buffer(self, actor: int | None) -> int:
        return channel_bytes(self.graph, self.options.engine.buffer, actor)

    def _start_watchdog(self) -> None:
        self.watchdog = Watchdog(
            stall=self.options.engine.timeouts.stall,
            positions=self.where,
            allowance=lambda position: self.graph.tasks[position.task or 0].timeout or 0.0,
            fire=self._on_stall,
            peers=bool(self.layout.meetings),
        )
        self.watchdog.start()

    def _on_stall(self, seen: tuple[Position, ...], limit: float) -> None:
        """From the watchdog's thread: what was seen is kept, and ending the actors wakes the driver's wait."""
        self.rescue()
        failed = first_failed(self.graph, [position.failed for position in seen])
        if failed is not None:
            node = self.actors.address(self.graph.tasks[failed.task or 0].actor)
            self.broken = task_error(self.graph, failed, phase=self.phase.name, node=node)
            self.actors.kill()
            return
        timeouts = self.options.engine.timeouts
        first = "first" not in self.startup
        what = "the first iteration is not done" if first else "no task began or ended"
        if self.compiled is None:
            what = "the graph is not compiled"
        waited = show_duration(timeouts.first if first else timeouts.stall)
        self.broken = stalled(self.graph, self.sources, seen, f"{what} in {waited}", self.phase.name)
        self.actors.kill()

    def reset(self) -> None:
        self.actors.take_over(self.graph, self.options, self.layout, fresh=True)

    def call(self, actor: int, method: str, kwargs: Mapping[str, object]) -> object:
        within, what = self.options.engine.timeouts.start, f"its call of {method} did not return"
        result = self.actors.ask("call", {actor: (method, kwargs)}, within=within, what=what)[actor]
        if isinstance(result, Failed):
            raise call_error(self.graph, actor, method, result, phase=self.phase.name)
        return detach(result)

    def device(self, actor: int) -> str:
        return self.actors.device(actor)

    def begin(self, phase: Phase) -> None:
        self.phase, self.actors.phase = phase, phase.name
        self.rescued = None
        if phase.profile is not None and phase.profile.kind == "nsight":
            self.reports_dir = phase.trace_dir
        self.fetched = 0
        self.clocks = self.actors.clocks()
        numbers = range(len(self.graph.actors))
        watched = {n: watch_job(self.graph, phase, n, gpu=self.actors.device(n) == "cuda") for n in numbers}
        jobs = {number: (phase.iterations, watched[number], phase.looks) for number in numbers}
        self.actors.ask("begin_timed" if self._times_channels() else "begin", jobs, within=self._patience())

    def _times_channels(self) -> bool:
        profile = self.phase.profile
        return self.channels and profile is not None and profile.kind == "timeline"

    def _patience(self) -> float:
        return max(PATIENCE, self.options.engine.timeouts.stall)

    def submit(self, inputs: Sequence[object]) -> None:
        assert self.binding is not None and self.watchdog is not None
        if "first" not in self.startup and not self.under_way:
            self.watchdog.expect(self.options.engine.timeouts.first)
            self.began_first = time.monotonic()
        for number, value in enumerate(inputs):
            if (reason := self.sendable(value)) is not None:
                iteration = self.fetched + len(self.under_way)
                raise input_error(self.graph, number, reason, phase=self.phase.name, iteration=iteration)
        self._execute(self.binding.arrange(inputs), inputs)

    def _execute(self, arguments: tuple[object, ...], inputs: Sequence[object]) -> None:
        assert self.watchdog is not None
        try:
            self.ends.write(arguments)
        except Exception as error:
            raise self._why(error) from None
        self.under_way.append(inputs)
        self.watchdog.progress(len(self.under_way))

    def fetch(self) -> Fetched:
        try:
            read = self.ends.read()
        except Exception as error:
            raise self._why(error) from None
        at_ns = time.monotonic_ns()
        inputs = self.under_way.popleft()
        self._note_progress()
        fetched = self._fetched(read, inputs, at_ns)
        self.fetched += 1
        return fetched

    def _note_progress(self) -> None:
        assert self.watchdog is not None
        if "first" not in self.startup:
            self.startup["first"] = time.monotonic() - self.began_first
            self.watchdog.met()
        self.watchdog.progress(len(self.under_way))

    def _fetched(self, read: list[object], inputs: Sequence[object], at_ns: int) -> Fetched:
        """The outputs from what the driver read, or the error of the first task that failed."""
        for place, value in enumerate(read):
            if type(value).__name__ == raynames.READ_ERROR:
                read[place] = self._unreadable(place, value)
        failed = first_failed(self.graph, read)
        if any(isinstance(value, Failed) and value == FLUSH for value in read):
            return Fetched([], at_ns)
        if failed is not None:
            node = self.actors.address(self.graph.tasks[failed.task or 0].actor)
            return Fetched([], at_ns, task_error(self.graph, failed, phase=self.phase.name, node=node))
        owned = [detach(value) for value in read]
        outputs = self.layout.outputs
        return Fetched([inputs[o.input] if isinstance(o, InputRef) else pick(o, owned) for o in outputs], at_ns)

    def _unreadable(self, place: int, value: object) -> Failed:
        source = self.layout.reads[place]
        return Failed(
            "unreadable-result", raynames.read_error(value), self.layout.binds[source.bind].task, self.fetched
        )

    def end(self) -> PhaseData:
        data = self._recorded()
        data.bounds = hull(self.clocks, self.actors.clocks())
        self.couriers.catch_up()
        return data

    def _recorded(self) -> PhaseData:
        """What the workers recorded since ``begin``."""
        profile = self.phase.profile
        if profile is not None and self.fetched < profile.warmup + profile.iterations and not self.strict:
            self._flush()
        nothing: dict[int, tuple[Any, ...]] = dict.fromkeys(range(len(self.graph.actors)), ())
        if not self._times_channels():
            parts = self.actors.ask("end", nothing, within=self._patience())
            return finish(self.graph, self.phase, [parts[number] for number in nothing])
        timed = self.actors.ask("end_timed", nothing, within=self._patience())
        data = finish(self.graph, self.phase, [timed[number][0] for number in nothing])
        data.channels = list(name_channels(self.layout, [timed[number][1] for number in nothing]))
        return data

    def rescue(self) -> PhaseData | None:
        if self.rescued is None:
            with contextlib.suppress(Exception):
                self.rescued = rescued(self.graph, self.actors.recorded())
                self.rescued.bounds = self.clocks
        return self.rescued

    def _flush(self) -> None:
        """One empty iteration, so that every worker learns on its graph's thread that the phase ends early."""
        assert self.binding is not None
        self._execute(self.binding.arrange([FLUSH] * len(self.graph.inputs), trigger=FLUSH), ())
        self.fetch()

    def where(self) -> tuple[Position, ...]:
        return self.actors.positions()

    def _why(self, error: BaseException) -> RunError:
        """The error that ends the run, the same one for every later call."""
        if self.broken is None:
            found = why(error, self.graph, self.actors, self.compiled)
            self.broken = self.broken or found
        return self.broken

    def teardown(self) -> None:
        if self.down:
            return
        self.down = True
        ending = Ending(self.options.engine.timeouts.teardown)
        gently = self.broken is None and not self.under_way
        if self.watchdog is not None:
            self.watchdog.end()
        watched = self._watched()
        ending.end_graph(self.compiled, self.actors, gently=gently)
        self.under_way.clear()
        ending.end_actors(self.actors, gently=gently)
        if watched and self.reports_dir is not None:
            quietly(lambda: self._fetch_reports(watched))
        self.compiled = self.binding = self.ends = None
        quietly(self.couriers.finish)
        for step in (self.places.release, self.cluster.stop, self._stack.close, self.actors.ahead.wait):
            quietly(step)

    def _watched(self) -> list[int]:
        return [number for number in range(len(self.actors.handles)) if nsight.is_watched(self.options, number)]

    def _fetch_reports(self, watched: list[int]) -> None:
        assert self.reports_dir is not None
        names: dict[str, dict[str, str]] = defaultdict(dict)
        for number in watched:
            if (home := self.actors.homes[number]) is not None:
                report = nsight.report_name(number, self.actors.run) + nsight.SUFFIX
                names[home.node_id][report] = self.graph.actors[number].name
        sources = [self.couriers.reports(of_node, node_id) for node_id, of_node in names.items()]
        self.reports, missing = nsight.collect(sources, self.reports_dir, REPORTS)
        self.notes.extend(missing)

    def late_files(self) -> list[pathlib.Path]:
        return self.reports
