"""Lays a graph out for execution: its tasks, and the reads of other actors, of the own one and the driver, as steps."""

from __future__ import annotations

from dataclasses import dataclass

from cgspec.graph import Graph, InputRef, Pack, Ref, Task, TaskRef, Transport
from cgspec.steps import (
    Bind,
    Call,
    Enter,
    Forward,
    FromInput,
    FromPort,
    Layout,
    Leave,
    Source,
    Step,
    Take,
    Whole,
)


def lay_out(graph: Graph, *, transports: bool, devices: bool, shared: bool = False) -> Layout:
    """The graph's layout.

    Args:
        transports: whether the tasks' transports are used (not in a rehearsal, not where nothing travels).
        devices: whether actors have GPUs, so that what the driver reads is copied to the host first.
        shared: whether the writer's own actor may read what goes to others by accelerator; Ray's schedule of a
            compiled graph breaks on it.
    """
    return _Builder(graph, transports, devices, shared).build()


@dataclass(frozen=True)
class _Readers:
    """Who reads one return: other actors, the own actor, the driver."""

    others: bool = False
    own: bool = False
    driver: bool = False


@dataclass(frozen=True)
class _Out:
    """What a task's own step hands out; see ``Call``."""

    ports: tuple[int | None, ...]
    travels: bool
    strict: bool


class _Builder:
    def __init__(self, graph: Graph, transports: bool, devices: bool, shared: bool) -> None:
        self.graph = graph
        self.transports = transports
        self.devices = devices
        self.shared = shared
        self.steps: list[list[Step]] = [[] for _ in graph.actors]
        self.binds: list[Bind] = []
        self.local: dict[TaskRef, FromPort] = {}
        self.crossing: dict[TaskRef, FromPort] = {}
        self.for_driver: dict[TaskRef, FromPort] = {}
        self.done: dict[int, FromPort] = {}
        self.entered: dict[int, list[tuple[FromPort, ...]]] = {}
        self.meetings: dict[int, tuple[int, ...]] = {}
        self.readers = self._find_readers()

    def build(self) -> Layout:
        for number in self.graph.bind:
            self._bind_task(number)
        reads = list(dict.fromkeys(port for ref in self.graph.output_refs for port in self._driver_ports(ref)))
        places = {port: place for place, port in enumerate(reads)}
        outputs = tuple(self._output(ref, places) for ref in self.graph.output_refs)
        dropped = [port for port in self.done.values() if port not in places]
        return Layout(tuple(map(tuple, self.steps)), tuple(self.binds), (*reads, *dropped), outputs, self.meetings)

    def _single_refs(self, ref: TaskRef) -> tuple[TaskRef, ...]:
        """The returns behind a reference; a multi-return read whole is all of them."""
        returns = self.graph.tasks[ref.task].returns
        if ref.ret is None and returns:
            return tuple(TaskRef(ref.task, place) for place in range(len(returns)))
        return (ref,)

    def _find_readers(self) -> dict[TaskRef, _Readers]:
        others: set[TaskRef] = set()
        own: set[TaskRef] = set()
        driver: set[TaskRef] = set()
        for edge in self.graph.edges:
            if isinstance(edge.source, TaskRef):
                (others if edge.crosses else own).update(self._single_refs(edge.source))
        for ref in self.graph.output_refs:
            if isinstance(ref, TaskRef):
                driver.update(self._single_refs(ref))
        return {ref: _Readers(ref in others, ref in own, ref in driver) for ref in others | own | driver}

    def _bind_task(self, number: int) -> None:
        task = self.graph.tasks[number]
        singles = [ref for ref in self._single_refs(TaskRef(number)) if ref in self.readers]
        transport = task.transport if self.transports and any(self.readers[r].others for r in singles) else None
        forward = self._forwarded(singles, transport)
        ports: tuple[int | None, ...] = (None,) if forward else tuple(ref.ret for ref in singles)
        direct = None if forward else transport
        travels = not forward and any(self.readers[r].others or self.readers[r].driver for r in singles)
        make = self._call if task.collective is None else self._leave
        sources, step = make(number, _Out(ports, travels, _is_strict(direct)))
        bind = self._add(task.actor, step, sources or (FromInput(None),), max(1, len(ports)), direct)
        if not singles:
            self.done[number] = FromPort(bind, 0)
        if forward:
            self._forward(number, FromPort(bind, 0), singles, transport)
        else:
            for port, ref in enumerate(singles):
                self.local[ref] = self.crossing[ref] = self.for_driver[ref] = FromPort(bind, port)

    def _call(self, number: int, out: _Out) -> tuple[tuple[Source, ...], Step]:
        task = self.graph.tasks[number]
        sources, arguments = self._arguments(task)
        arrived = tuple(place for place, source in enumerate(sources) if self._arrives(source, task.actor))
        returns = None if task.returns is None else len(task.returns)
        method, names = task.method or "", task.returns or ()
        call = Call(
            number,
            task.name,
            method,
            arguments,
            arrived,
            task.consts,
            returns,
            names,
            out.ports,
            out.travels,
            out.strict,
        )
        return sources, call

    def _leave(self, number: int, out: _Out) -> tuple[tuple[Source, ...], Step]:
        task = self.graph.tasks[number]
        assert task.collective is not None
        group = task.collective.group
        if group not in self.entered:
            self._enter(group)
        leave = Leave(number, task.name, task.returns or (), out.ports, out.travels, out.strict)
        return self.entered[group][task.collective.rank], leave

    def _enter(self, group: int) -> None:
        """All members come, then the collective is executed: it needs every operand."""
        members = [self.graph.tasks[number] for number in self.graph.groups[group].members]
        self.entered[group] = held = [self._come(task, len(members)) for task in members]
        if len(members) > 1:
            binds = [self._meet(group, task, ports) for task, ports in zip(members, held, strict=True)]
            self.meetings[group] = tuple(binds)
            self.entered[group] = [_ports_of(bind, len(ports)) for bind, ports in zip(binds, held, strict=True)]

    def _come(self, task: Task, size: int) -> tuple[FromPort, ...]:
        assert task.collective is not None
        operands = [self.local[ref] for argument in task.args for ref in argument.refs if isinstance(ref, TaskRef)]
        number = self.graph.groups[task.collective.group].members[task.collective.rank]
        enter = Enter(number, task.name, task.collective, len(operands), size, strict=size > 1)
        return _ports_of(self._add(task.actor, enter, tuple(operands), len(operands), None), len(operands))

    def _meet(self, group: int, task: Task, operands: tuple[FromPort, ...]) -> int:
        assert task.collective is not None
        number = self.graph.groups[group].members[task.collective.rank]
        self.binds.append(Bind(task.actor, -1, number, operands, len(operands), None, group))
        return len(self.binds) - 1

    def _forwarded(self, singles: list[TaskRef], transport: Transport | None) -> bool:
        """Whether readers need steps of their own: one call has one transport, for all its returns and readers.

        By accelerator, the driver cannot read, nor the writer's own actor, unless that is ``shared``.
        """
        reads = [self.readers[ref] for ref in singles]
        if transport is not None:
            mixed = any(reader.driver or (reader.own and not self.shared) for reader in reads)
            return len(singles) > 1 or (transport.kind != "shm" and mixed)
        return self.devices and any(reader.driver for reader in reads)

    def _forward(self, number: int, held: FromPort, singles: list[TaskRef], transport: Transport | None) -> None:
        for ref in singles:
            reader = self.readers[ref]
            self.local[ref] = held
            if reader.own and ref.ret is not None:
                self.local[ref] = self._hand_on(number, ref.ret, held, None)
            if reader.others:
                self.crossing[ref] = self._hand_on(number, ref.ret, held, transport, travels=True)
            if reader.driver:
                self.for_driver[ref] = self._hand_on(number, ref.ret, held, None, travels=True, host=self.devices)

    def _hand_on(
        self,
        number: int,
        ret: int | None,
        held: FromPort,
        transport: Transport | None,
        *,
        travels: bool = False,
        host: bool = False,
    ) -> FromPort:
        task = self.graph.tasks[number]
        step = Forward(number, task.name, ret, host, travels, _is_strict(transport))
        return FromPort(self._add(task.actor, step, (held,), 1, transport), 0)

    def _add(self, actor: int, step: Step, reads: tuple[Source, ...], ports: int, transport: Transport | None) -> int:
        self.steps[actor].append(step)
        self.binds.append(Bind(actor, len(self.steps[actor]) - 1, step.task, reads, ports, transport))
        return len(self.binds) - 1

    def _arguments(self, task: Task) -> tuple[tuple[Source, ...], tuple[tuple[str | int, Take], ...]]:
        sources: dict[Source, int] = {}
        arguments = []
        for argument in task.args:
            takes = tuple(self._take(ref, task.actor, sources) for ref in argument.refs)
            whole = isinstance(argument.value, Pack)
            arguments.append((argument.name, Whole("list", takes) if whole else takes[0]))
        return tuple(sources), tuple(arguments)

    def _take(self, ref: Ref, actor: int, sources: dict[Source, int]) -> Take:
        if isinstance(ref, InputRef):
            return sources.setdefault(FromInput(ref.input), len(sources))
        crosses = self.graph.tasks[ref.task].actor != actor
        ports = [(self.crossing if crosses else self.local)[single] for single in self._single_refs(ref)]
        places = tuple(sources.setdefault(port, len(sources)) for port in ports)
        return places[0] if not self._is_whole(ref) else Whole("tuple", places)

    def _arrives(self, source: Source, actor: int) -> bool:
        return isinstance(source, FromInput) or self.binds[source.bind].actor != actor

    def _is_whole(self, ref: TaskRef) -> bool:
        return ref.ret is None and bool(self.graph.tasks[ref.task].returns)

    def _driver_ports(self, ref: Ref) -> list[FromPort]:
        return [self.for_driver[single] for single in self._single_refs(ref)] if isinstance(ref, TaskRef) else []

    def _output(self, ref: Ref, places: dict[FromPort, int]) -> InputRef | Take:
        if isinstance(ref, InputRef):
            return ref
        found = tuple(places[port] for port in self._driver_ports(ref))
        return Whole("tuple", found) if self._is_whole(ref) else found[0]


def _ports_of(bind: int, count: int) -> tuple[FromPort, ...]:
    return tuple(FromPort(bind, port) for port in range(count))


def _is_strict(transport: Transport | None) -> bool:
    return transport is not None and (transport.direct_return or transport.static_shape)
