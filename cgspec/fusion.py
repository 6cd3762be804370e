"""Fusion: tasks that follow one another on an actor become one call, where nobody can tell.

A message between processes costs some hundred microseconds, a call in one process costs one or two. No result, no
order and no sending time changes: whatever comes from elsewhere is read by the first task of a chain, as it was, and
nobody elsewhere waits for a result of another one than the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from cgspec.steps import Bind, Call, Chain, FromInput, FromPort, Layout, Link, Run, Source


def fuse(layout: Layout) -> Layout:
    """The layout with its chains; a chain takes the place of its first bind.

    Binds are chained where they are calls of tasks that follow one another in their actor's order, everything that
    they read of other actors or the driver is read by the first one, and only the last one's results are read by
    other actors or the driver. Collectives, and results that are handed on by steps of their own, end a chain.
    """
    return _Fuser(layout).build()


def fused_tasks(layout: Layout) -> tuple[tuple[int, ...], ...]:
    """The tasks of each chain, in order, as indices into ``graph.tasks``."""
    return tuple(
        tuple(steps[link.step].task for link in step.links)
        for steps in layout.steps
        for step in steps
        if isinstance(step, Chain)
    )


@dataclass(frozen=True)
class _Readers:
    """Ports that other actors or the driver read, and by port the places of the binds of its own actor that do."""

    elsewhere: set[FromPort]
    here: Mapping[FromPort, list[int]]


class _Fuser:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.readers = _find_readers(layout)
        self.steps = [list(steps) for steps in layout.steps]
        self.binds: list[Bind] = []
        self.moved: dict[FromPort, FromPort] = {}

    def build(self) -> Layout:
        chains = {chain[0]: chain for chain in self._chains() if len(chain) > 1}
        inside = {place for chain in chains.values() for place in chain[1:]}
        for place, bind in enumerate(self.layout.binds):
            if place in chains:
                self._chain(chains[place])
            elif place not in inside:
                self.moved.update((port, FromPort(len(self.binds), port.port)) for port in _ports(place, bind))
                self.binds.append(replace(bind, reads=tuple(map(self._moved, bind.reads))))
        return Layout(
            tuple(map(tuple, self.steps)),
            tuple(self.binds),
            tuple(self.moved[read] for read in self.layout.reads),
            self.layout.outputs,
            {group: tuple(map(self._place, places)) for group, places in self.layout.meetings.items()},
        )

    def _place(self, place: int) -> int:
        """Where a bind is now that is in no chain."""
        return self.moved[FromPort(place, 0)].bind

    def _chains(self) -> Iterator[list[int]]:
        """Places of binds that become one call, by actor, in order."""
        order = sorted(range(len(self.layout.binds)), key=lambda place: self.layout.binds[place].actor)
        for _, places in groupby(order, key=lambda place: self.layout.binds[place].actor):
            chain: list[int] = []
            for place in places:
                if chain and self._fits(chain, place):
                    chain.append(place)
                    continue
                yield chain
                chain = [place]
            yield chain

    def _fits(self, chain: Sequence[int], place: int) -> bool:
        first, last, bind = self.layout.binds[chain[0]], self.layout.binds[chain[-1]], self.layout.binds[place]
        if not (self._is_call(first) and self._is_call(bind)):
            return False
        if any(port in self.readers.elsewhere for port in _ports(chain[-1], last)):
            return False
        if not {read for read in bind.reads if self._arrives(read, bind)} <= set(first.reads):
            return False
        return bind.transport is None or not any(self._is_read_beyond(member, {*chain, place}) for member in chain)

    def _is_call(self, bind: Bind) -> bool:
        return bind.group is None and isinstance(self.layout.steps[bind.actor][bind.step], Call)

    def _arrives(self, source: Source, bind: Bind) -> bool:
        return isinstance(source, FromInput) or self.layout.binds[source.bind].actor != bind.actor

    def _is_read_beyond(self, place: int, members: set[int]) -> bool:
        """Whether a later bind of the same actor reads it too; that port would share the last one's transport."""
        return any(self._is_read_behind(port, members) for port in _ports(place, self.layout.binds[place]))

    def _is_read_behind(self, port: FromPort, members: set[int]) -> bool:
        return not members.issuperset(self.readers.here.get(port, ()))

    def _chain(self, chain: Sequence[int]) -> None:
        """One bind for all of them."""
        members = set(chain)
        binds = [self.layout.binds[place] for place in chain]
        reads = list(dict.fromkeys(read for bind in binds for read in bind.reads if not _is_of(read, members)))
        places: dict[Source, int] = {read: place for place, read in enumerate(reads)}
        ports = [port for place in chain for port in _ports(place, self.layout.binds[place])]
        places.update((port, place) for place, port in enumerate(ports, len(reads)))
        out = [port for port in ports if self._leaves(port, members)]
        for number, port in enumerate(out):
            self.moved[port] = FromPort(len(self.binds), number)
        last, steps = binds[-1], self.steps[binds[-1].actor]
        links = _links(binds, places, {places[port] for port in out})
        steps.append(Chain(last.task, links, tuple(places[port] for port in out)))
        given = tuple(map(self._moved, reads))
        self.binds.append(Bind(last.actor, len(steps) - 1, last.task, given, len(out), last.transport))

    def _leaves(self, port: FromPort, members: set[int]) -> bool:
        return port in self.readers.elsewhere or self._is_read_behind(port, members)

    def _moved(self, source: Source) -> Source:
        return source if isinstance(source, FromInput) else self.moved[source]


def _links(binds: Sequence[Bind], places: dict[Source, int], kept: set[int]) -> tuple[Link, ...]:
    """The binds as links, each with the places that nobody needs after it."""
    latest = {places[read]: number for number, bind in enumerate(binds) for read in bind.reads}
    drops: dict[int, list[int]] = {}
    for place, number in latest.items():
        if place not in kept:
            drops.setdefault(number, []).append(place)
    return tuple(
        Link(bind.step, tuple(places[read] for read in bind.reads), bind.ports, tuple(drops.get(number, ())))
        for number, bind in enumerate(binds)
    )


def _ports(place: int, bind: Bind) -> list[FromPort]:
    return [FromPort(place, port) for port in range(bind.ports)]


def _is_of(source: Source, binds: set[int]) -> bool:
    return isinstance(source, FromPort) and source.bind in binds


def _find_readers(layout: Layout) -> _Readers:
    elsewhere, here = set(layout.reads), defaultdict[FromPort, list[int]](list)
    for place, bind in enumerate(layout.binds):
        for source in bind.reads:
            if isinstance(source, FromInput):
                continue
            if layout.binds[source.bind].actor == bind.actor:
                here[source].append(place)
            else:
                elsewhere.add(source)
    return _Readers(elsewhere, here)


def chained(chain: Chain, run: Sequence[Run]) -> Run:
    """What a worker does for a chain: every task in turn; a value goes when its last reader has run.

    Args:
        run: what each of the worker's steps does with the values that it reads.
    """
    links = [(run[link.step], link.reads, link.ports > 1, link.drops) for link in chain.links]
    out = chain.ports

    def run_all(values: tuple[object, ...]) -> object:
        held: list[Any] = list(values)
        for call, reads, several, drops in links:
            handed = call(tuple([held[place] for place in reads]))
            if several:
                held.extend(handed)  # type: ignore[arg-type]
            else:
                held.append(handed)
            for place in drops:
                held[place] = None
        return held[out[0]] if len(out) == 1 else tuple([held[place] for place in out])

    return run_all
