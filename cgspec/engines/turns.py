"""One actor's part of a graph as ordinary calls: a turn for each of its steps, in order.

What only this actor reads stays here and is never pickled; a turn returns what others read, and a token that the
actor's next turn is given: Ray then starts that one after this one, whatever arrives first. A turn whose result goes by
Ray Direct Transport may return nothing else: the reference of the result is the token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cgspec.engines.communicators import Gloo, Store
from cgspec.engines.parcels import Unfit, pack, unpack
from cgspec.engines.rdt import Station, join
from cgspec.graph import Collective
from cgspec.invocation import Failed, FailedTask
from cgspec.routes import Library
from cgspec.steps import FromInput, FromPort, Layout, Source
from cgspec.worker import Worker


@dataclass(frozen=True)
class Turn:
    """One bind of a layout.

    Attributes:
        place: in ``Layout.binds``; ``step``: of the worker; ``task``: index into ``graph.tasks``.
        reads: where each value comes from: its place among those that arrive, or a port of this actor's.
        ports: how many values there are; ``keeps`` and ``sends`` are those that this actor and others read.
        group: the group that meets here, where there is no step.
        library: what carries the tensors of its only result to others; None: the object store.
    """

    place: int
    step: int
    task: int
    reads: tuple[int | FromPort, ...]
    ports: int
    keeps: tuple[int, ...]
    sends: tuple[int, ...]
    group: int | None
    library: Library | None

    @property
    def arriving(self) -> int:
        """How many values arrive."""
        return sum(isinstance(read, int) for read in self.reads)


@dataclass(frozen=True)
class Seat:
    """One member's place in a collective's group."""

    store: Store
    name: str
    collective: Collective
    rank: int
    size: int


def turns_of(layout: Layout, routes: Mapping[int, Library]) -> tuple[Turn, ...]:
    """A turn for each bind.

    Args:
        routes: by task, what carries the results of the binds that have a transport.
    """
    own: dict[FromPort, bool] = {}
    others = dict.fromkeys(layout.reads, True)
    for bind in layout.binds:
        for source in bind.reads:
            if isinstance(source, FromPort):
                found = own if layout.binds[source.bind].actor == bind.actor else others
                found[source] = True
    return tuple(_turn(layout, place, own, others, routes) for place in range(len(layout.binds)))


def arriving(layout: Layout, place: int) -> list[Source]:
    """What a bind reads of others, in the order in which a turn is given it."""
    bind = layout.binds[place]
    return [s for s in bind.reads if isinstance(s, FromInput) or layout.binds[s.bind].actor != bind.actor]


def _turn(
    layout: Layout,
    place: int,
    own: Mapping[FromPort, bool],
    others: Mapping[FromPort, bool],
    routes: Mapping[int, Library],
) -> Turn:
    bind, arrive = layout.binds[place], arriving(layout, place)
    reads = [arrive.index(source) if source in arrive else source for source in bind.reads]
    ports = [FromPort(place, port) for port in range(bind.ports)]
    keeps = tuple(port.port for port in ports if port in own)
    sends = tuple(port.port for port in ports if port in others)
    library = None if bind.transport is None else routes[bind.task]
    return Turn(place, bind.step, bind.task, tuple(reads), bind.ports, keeps, sends, bind.group, library)  # type: ignore[arg-type]


class Turns:
    """Takes the turns of one worker.

    Args:
        seats: by group, this worker's place in it; ``station``: its place among those who send by gloo.
    """

    def __init__(
        self, worker: Worker, turns: tuple[Turn, ...], seats: Mapping[int, Seat], station: Station | None
    ) -> None:
        self.worker = worker
        self.turns = {turn.place: turn for turn in turns}
        self.collectives = {group: seat.collective for group, seat in seats.items()}
        self.groups = {group: Gloo(seat.store, seat.name, seat.rank, seat.size) for group, seat in seats.items()}
        self.kept: dict[FromPort, object] = {}
        join(station)

    def take(self, place: int, values: tuple[object, ...]) -> object:
        """What others read of this turn, then the token; or what goes by Ray Direct Transport, alone."""
        turn = self.turns[place]
        given = [self._open(turn, values[read]) if isinstance(read, int) else self.kept[read] for read in turn.reads]
        result = self.worker.run(turn.step, *given) if turn.group is None else self._meet(turn, given)
        ports: Any = result if turn.ports > 1 else (result,)
        if turn.library is not None:
            return self._hand_over(turn, turn.library, ports[0])
        self.kept.update((FromPort(place, port), ports[port]) for port in turn.keeps)
        return (*(ports[port] for port in turn.sends), None) if turn.sends else None

    def _open(self, turn: Turn, value: object) -> object:
        try:
            return unpack(value)
        except Exception as error:
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            return Failed("unreadable", what, turn.task, self.worker.rounds(turn.step))

    def _hand_over(self, turn: Turn, library: Library, result: object) -> object:
        try:
            packed = pack(result, library)
        except Unfit as error:
            packed = result = Failed("unserialisable", str(error), turn.task, self.worker.rounds(turn.step) - 1)
        if turn.keeps:
            self.kept[FromPort(turn.place, 0)] = result
        return packed

    def _meet(self, turn: Turn, operands: list[Any]) -> object:
        """By gloo, so through the host."""
        assert turn.group is not None
        group, collective = self.groups[turn.group], self.collectives[turn.group]
        try:
            results = [group.run(collective, operand.cpu()).to(operand.device) for operand in operands]
        except ValueError as error:
            raise FailedTask(Failed("raised", f"ValueError: {error}", turn.task)) from None
        return tuple(results) if turn.ports > 1 else results[0]
