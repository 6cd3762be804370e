"""The direct engine: the same actors, called task by task from the driver.

Results go through the object store, or by Ray Direct Transport where the task's transport says so (see ``routes``).
Slower than a compiled graph by the price of a call per task; it has no channels, buffers or capacity to be exceeded.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import ray
from ray.exceptions import RayTaskError

from cgspec import raynames
from cgspec.engines import Options, rdt
from cgspec.engines.communicators import Store, StoreServer, patience
from cgspec.engines.compiled import CompiledEngine
from cgspec.engines.rdt import Lines, Station
from cgspec.engines.turns import Seat, Turn, arriving, turns_of
from cgspec.errors import Failure, NotAble
from cgspec.graph import Graph, Transport
from cgspec.layout import lay_out
from cgspec.payloads import ATOMS
from cgspec.routes import routes_of
from cgspec.steps import FromInput, FromPort, Layout

THREADS = "graph"
"""The concurrency group of turns: ordinary calls are answered beside them."""


class DirectEngine(CompiledEngine):
    """See ``engines.Engine``; of the compiled engine it differs in what a graph is."""

    kind = "direct"
    fuses = False
    channels = False

    def __init__(self, graph: Graph, options: Options) -> None:
        super().__init__(graph, options)
        self.actors.also["concurrency_groups"][THREADS] = 1
        self.actors.also["allow_out_of_order_execution"] = True
        if self.routes:
            self.actors.also["enable_tensor_transport"] = True

    def _lay_out(self) -> Layout:
        """Of the transports, those that are routes are left."""
        self.routes = routes_of(self.graph, rehearse=self.options.rehearse)
        tasks = [
            replace(task, transport=Transport("accelerator") if number in self.routes else None)
            for number, task in enumerate(self.graph.tasks)
        ]
        routed = replace(self.graph, tasks=tuple(tasks))
        return lay_out(routed, transports=True, devices=self._has_devices(), shared=True)

    def _create(self) -> None:
        if self.routes:
            self.actors.ahead.wait()
            rdt.register()
        super()._create()

    def _fits(self, graph: Graph, options: Options) -> bool:
        able = "enable_tensor_transport" in self.actors.also
        return (able or not routes_of(graph, rehearse=options.rehearse)) and super()._fits(graph, options)

    def _compile(self) -> None:
        assert self.watchdog is not None
        self.watchdog.expect(self.options.engine.timeouts.first)
        turns, handles = turns_of(self.layout, self.routes), self.actors.handles
        lines = Lines(self.layout, self.routes, handles)
        self._plan(turns, lines)
        try:
            lines.open()
        except RayTaskError as error:
            raise _no_group(error) from None
        except Exception as error:
            raise self._why(error) from None
        self.binding = self.compiled = self.ends = Calls(self.layout, turns, handles, lines)
        self.watchdog.met()

    def _plan(self, turns: Sequence[Turn], lines: Lines) -> None:
        """Tells every actor its turns, and where it meets others."""
        wait = patience(self.graph, self.options.engine.timeouts.stall)
        self._stack.callback(raynames.wait_for_tensors(wait))
        seats: dict[int, dict[int, Seat]] = {}
        stations: dict[int, Station] = {}
        if self.layout.meetings or "gloo" in lines.members:
            self.store = StoreServer(wait)
            seats, stations = self._seats(self.store.store), lines.stations(self.store.store)
        arguments = {
            number: (
                tuple(turn for turn in turns if self.layout.binds[turn.place].actor == number),
                seats.get(number, {}),
                stations.get(number),
                wait,
            )
            for number in range(len(self.graph.actors))
        }
        self.actors.ask("plan_turns", arguments, within=self._patience())

    def _seats(self, store: Store) -> dict[int, dict[int, Seat]]:
        """By actor and group."""
        found: dict[int, dict[int, Seat]] = {}
        for group in self.layout.meetings:
            for number, seat in _seats_of(self.graph, group, store).items():
                found.setdefault(number, {})[group] = seat
        return found


def _no_group(error: RayTaskError) -> NotAble:
    cause = error.cause
    said = next(iter(str(cause).splitlines()), "")
    message = f"the actors cannot form an NCCL group: {type(cause).__name__}: {said}; cgspec doctor tells what is there"
    return NotAble(Failure("not-able", message, phase="startup", path=("engine",)))


def _seats_of(graph: Graph, group: int, store: Store) -> dict[int, Seat]:
    name, found = uuid.uuid4().hex, {}
    members = [graph.tasks[number] for number in graph.groups[group].members]
    for rank, task in enumerate(members):
        assert task.collective is not None
        found[task.actor] = Seat(store, name, task.collective, rank, len(members))
    return found


class Calls:
    """A graph as calls; to the engine it is what a compiled graph, its binding and its ends are."""

    worker_task_refs: ClassVar[Mapping[Any, Any]] = {}

    def __init__(self, layout: Layout, turns: Sequence[Turn], handles: Sequence[Any], lines: Lines) -> None:
        self.layout, self.turns, self.lines = layout, turns, lines
        self.methods = [self._method(turn, handles[layout.binds[turn.place].actor]) for turn in turns]
        self.arriving = [arriving(layout, turn.place) for turn in turns]
        self.tokens: list[Any] = [None] * len(handles)
        self.waiting: deque[list[Any]] = deque()

    def _method(self, turn: Turn, handle: Any) -> Any:
        if turn.library is not None:
            return handle.take_turn.options(tensor_transport=rdt.NAMES[turn.library], concurrency_group=THREADS)
        return handle.take_turn.options(num_returns=len(turn.sends) + 1, concurrency_group=THREADS)

    def arrange(self, inputs: Sequence[object], *, trigger: object = None) -> tuple[object, ...]:
        """What the driver submits: the graph's inputs, and what stands for none."""
        return (*inputs, trigger)

    def write(self, arguments: Sequence[object]) -> None:
        """Calls every turn of one iteration."""
        given = [value if type(value) in ATOMS else ray.put(value) for value in arguments]
        made: dict[FromPort, Any] = {}
        for turn, method, sources in zip(self.turns, self.methods, self.arriving, strict=True):
            actor = self.layout.binds[turn.place].actor
            values = [given[_input(s)] if isinstance(s, FromInput) else made[s] for s in sources]
            answer = method.remote(turn.place, self.tokens[actor], *values)
            if turn.library is not None:
                sent, self.tokens[actor] = [answer], answer
            else:
                *sent, self.tokens[actor] = answer if turn.sends else [answer]
            made.update((FromPort(turn.place, port), ref) for port, ref in zip(turn.sends, sent, strict=True))
        self.waiting.append([made[port] for port in self.layout.reads])

    def read(self) -> list[object]:
        """What the driver reads of the oldest iteration; blocks for as long as it takes."""
        values: list[object] = ray.get(self.waiting[0])
        self.waiting.popleft()
        return values

    def teardown(self, kill_actors: bool = False) -> None:
        self.lines.close()


def _input(source: FromInput) -> int:
    return -1 if source.input is None else source.input
