"""The direct engine: the same actors, called task by task from the driver; results go through the object store.

Slower than a compiled graph by the price of a call per task; it has no channels, buffers or capacity to be exceeded.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import ray

from cgspec.engines import Options
from cgspec.engines.communicators import Store, StoreServer, patience
from cgspec.engines.compiled import CompiledEngine
from cgspec.engines.turns import Seat, Turn, arriving, turns_of
from cgspec.graph import Graph
from cgspec.payloads import ATOMS
from cgspec.steps import FromInput, FromPort, Layout

THREADS = "graph"
"""The concurrency group of turns: ordinary calls are answered beside them."""


class DirectEngine(CompiledEngine):
    """See ``engines.Engine``; of the compiled engine it differs in what a graph is."""

    kind = "direct"
    transports = False
    fuses = False
    channels = False

    def __init__(self, graph: Graph, options: Options) -> None:
        super().__init__(graph, options)
        self.actors.also = {"concurrency_groups": {THREADS: 1}, "allow_out_of_order_execution": True}

    def _compile(self) -> None:
        assert self.watchdog is not None
        self.watchdog.expect(self.options.engine.timeouts.first)
        turns = turns_of(self.layout)
        seats = self._seats()
        arguments = {
            number: (tuple(t for t in turns if self.layout.binds[t.place].actor == number), seats.get(number, {}))
            for number in range(len(self.graph.actors))
        }
        self.actors.ask("plan_turns", arguments, within=self._patience())
        self.binding = self.compiled = Calls(self.layout, turns, self.actors.handles)
        self.watchdog.met()

    def _seats(self) -> dict[int, dict[int, Seat]]:
        """By actor and group."""
        if not self.layout.meetings:
            return {}
        self.store = StoreServer(patience(self.graph, self.options.engine.timeouts.stall))
        found: dict[int, dict[int, Seat]] = {}
        for group in self.layout.meetings:
            for number, seat in _seats_of(self.graph, group, self.store.store).items():
                found.setdefault(number, {})[group] = seat
        return found


def _seats_of(graph: Graph, group: int, store: Store) -> dict[int, Seat]:
    name, found = uuid.uuid4().hex, {}
    members = [graph.tasks[number] for number in graph.groups[group].members]
    for rank, task in enumerate(members):
        assert task.collective is not None
        found[task.actor] = Seat(store, name, task.collective, rank, len(members))
    return found


class Calls:
    """A graph as calls; to the engine it is what a compiled graph and its binding are."""

    worker_task_refs: ClassVar[Mapping[Any, Any]] = {}
    is_teardown = False

    def __init__(self, layout: Layout, turns: Sequence[Turn], handles: Sequence[Any]) -> None:
        self.layout, self.turns = layout, turns
        self.methods = [self._method(turn, handles[layout.binds[turn.place].actor]) for turn in turns]
        self.arriving = [arriving(layout, turn.place) for turn in turns]
        self.tokens: list[Any] = [None] * len(handles)

    def _method(self, turn: Turn, handle: Any) -> Any:
        return handle.take_turn.options(num_returns=len(turn.sends) + 1, concurrency_group=THREADS)

    def arrange(self, inputs: Sequence[object], *, trigger: object = None) -> tuple[object, ...]:
        """The arguments of ``execute``: the graph's inputs, and what stands for none."""
        return (*inputs, trigger)

    def execute(self, *arguments: object) -> list[Any]:
        """Calls every turn; the references of what the driver reads."""
        given = [value if type(value) in ATOMS else ray.put(value) for value in arguments]
        made: dict[FromPort, Any] = {}
        for turn, method, sources in zip(self.turns, self.methods, self.arriving, strict=True):
            actor = self.layout.binds[turn.place].actor
            values = [given[_input(s)] if isinstance(s, FromInput) else made[s] for s in sources]
            answer = method.remote(turn.place, self.tokens[actor], *values)
            *sent, self.tokens[actor] = answer if turn.sends else [answer]
            made.update((FromPort(turn.place, port), ref) for port, ref in zip(turn.sends, sent, strict=True))
        return [made[port] for port in self.layout.reads]

    def teardown(self, kill_actors: bool = False) -> None:
        self.is_teardown = True


def _input(source: FromInput) -> int:
    return -1 if source.input is None else source.input
