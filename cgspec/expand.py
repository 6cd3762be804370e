"""Families → the frozen graph: members, edges, order; linear in the size of what it makes."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cgspec import order
from cgspec.diagnostics import Path
from cgspec.families import MEMBER, Catalogue, TaskFamily, size_of
from cgspec.graph import (
    Actor,
    Argument,
    ClassRef,
    Collective,
    Graph,
    Group,
    Input,
    Pack,
    Payload,
    Ref,
    Task,
    TaskRef,
    Transport,
)
from cgspec.groups import Group as GroupWiring
from cgspec.order import Vertex
from cgspec.places import Place, member_name, names_at, offset_of, place_of, places
from cgspec.readings import Readings
from cgspec.references import At
from cgspec.resolvers import Resolve, Resolver
from cgspec.sizes import too_large
from cgspec.spec import PayloadSpec, TransportSpec
from cgspec.values import DTYPES, CannotMake, Literal, Value
from cgspec.wiring import Wire, Wiring


def expand(
    wiring: Wiring, readings: Readings, class_ref: Callable[[str, Path], ClassRef], *, name: str, placement: str
) -> Graph | None:
    """Makes the graph of a spec whose families and values are sound; None, and findings, where its members are not.

    Args:
        class_ref: turns the text of ``class`` and its path into a reference.
        placement: ``cluster.placement``.
    """
    return _Expander(wiring, readings, class_ref, name, placement).run()


class _Expander:
    def __init__(
        self,
        wiring: Wiring,
        readings: Readings,
        class_ref: Callable[[str, Path], ClassRef],
        name: str,
        placement: str,
    ) -> None:
        self.wiring = wiring
        self.catalogue: Catalogue = wiring.catalogue
        self.readings = readings
        self.class_ref = class_ref
        self.name = name
        self.placement = placement
        self.actor_starts: dict[str, int] = {}
        self.input_starts: dict[str, int] = {}
        self.task_starts: dict[str, int] = {}
        self.resolver = Resolver(self.input_starts, self.task_starts, self._report)
        self.groups: list[list[int]] = []
        self.group_families: list[str] = []
        self.collectives: dict[int, tuple[list[Ref], Collective]] = {}
        self.sound = True

    def run(self) -> Graph | None:
        large = too_large(self.wiring, self.readings)
        if large is not None:
            self.catalogue.findings.append(large)
            return None
        inputs = list(self._inputs())
        actors = list(self._actors())
        self._number_tasks()
        for name, group in self.wiring.groups.items():
            self._group(self.wiring.tasks[name], group)
        drafts = [draft for family in self.wiring.tasks.values() for draft in self._tasks(family, actors)]
        if not self.sound:
            return None
        vertices = [_vertex(draft.task, draft.slot) for draft in drafts]
        orders = order.actor_orders(vertices, len(actors))
        mixed = order.mixed_slots(vertices, orders, [actor.name for actor in actors])
        self.catalogue.findings.extend(mixed)
        if mixed:
            return None
        bind = order.Ordering(vertices, orders, self.groups).bind()
        if isinstance(bind, order.Cycle):
            finding = order.explain_cycle(bind, vertices, [actor.name for actor in actors])
            self.catalogue.findings.append(finding)
            return None
        tasks = tuple(draft.task for draft in drafts)
        return self._graph(tuple(inputs), _with_orders(actors, orders), tasks, tuple(bind))

    def _bind(self, value: Value, names: Mapping[str, object], path: Path) -> Value:
        if not value.uses:
            return value
        try:
            return value.bind(names)
        except CannotMake as error:
            at = ", ".join(f"{name} is {names[name]}" for name in sorted(value.uses) if name in names)
            self._report("bad-value", f"{error}{f', where {at}' if at else ''}", path)
            return Literal(None)

    def _report(self, code: str, message: str, path: Path, **more: Any) -> None:
        """Reports a fault of a member, once for each place in the spec."""
        known = any(item.code == code and item.path == path for item in self.catalogue.findings[-20:])
        if not known:
            self.catalogue.report(code, message, path, **more)
        self.sound = False

    def _inputs(self) -> Iterator[Input]:
        number = 0
        for name, family in self.catalogue.inputs.items():
            self.input_starts[name] = number
            value = self.readings.inputs[name]
            for place in places(family.axes):
                bound = self._bind(value, names_at(place, family.axes), family.path)
                yield Input(member_name(name, place), name, tuple(place.items()), bound, ("inputs", name))
                number += 1

    def _actors(self) -> Iterator[Actor]:
        number = 0
        for name, family in self.catalogue.actors.items():
            self.actor_starts[name] = number
            spec, path = family.spec, ("actors", name)
            ref = self.class_ref(spec.class_, (*path, "class"))
            values = self.readings.actors[name]
            for place in places(family.axes):
                names = names_at(place, family.axes)
                bound = {key: self._bind(value, names, (*path, *key)) for key, value in values.items()}
                args = _section(bound, "args")
                by_position = isinstance(spec.args, list)
                yield Actor(
                    name=member_name(name, place),
                    family=name,
                    index=tuple(place.items()),
                    class_ref=ref,
                    args=tuple(args.values()) if by_position else (),
                    kwargs={} if by_position else args,
                    num_cpus=spec.num_cpus,
                    num_gpus=spec.num_gpus,
                    memory=spec.memory,
                    accelerator_type=spec.accelerator_type,
                    resources=spec.resources,
                    options=_section(bound, "options"),
                    env=_section(bound, "env"),
                    process_group=spec.process_group,
                    same_node=tuple(spec.same_node or ()),
                    tasks=(),
                    path=path,
                )
                number += 1

    def _number_tasks(self) -> None:
        number = 0
        for name, family in self.wiring.tasks.items():
            self.task_starts[name] = number
            number += size_of(family.axes)
        self.order_of_names, self.order_of_starts = list(self.task_starts), list(self.task_starts.values())

    def _tasks(self, family: TaskFamily, actors: list[Actor]) -> Iterator[_Draft]:
        path: Path = ("tasks", family.name)
        spec = family.spec
        values = self.readings.tasks[family.name]
        consts = _section(values, "with")
        slot = values.get(("slot", None))
        template = _Template(_transport(spec.transport), self._payload(spec.payload), spec.timeout)
        wires = self.wiring.wires.get(family.name, ())
        readers = [(wire, [self.resolver.compile(item) for item in wire.items]) for wire in wires]
        group = self.wiring.groups.get(family.name)
        start = self.task_starts[family.name]
        for offset, place in enumerate(places(family.axes)):
            names = names_at({**family.fixed, **place}, family.known)
            if group is None:
                actor = self._actor_of(family, place)
                args = tuple(_arguments(readers, place, names))
                collective = None
            else:
                operands, collective = self.collectives[start + offset]
                args = tuple(Argument(n, ref) for n, ref in enumerate(operands))
                actor = self._owner(operands[0])
            task = Task(
                name=member_name(family.name, place),
                family=family.name,
                index=tuple(place.items()),
                actor=actor,
                method=family.target.method if family.target else None,
                collective=collective,
                args=args,
                consts={key: self._bind(value, names, (*path, "with", key)) for key, value in consts.items()},
                returns=family.returns,
                transport=template.transport,
                payload=template.payload,
                timeout=template.timeout,
                path=path,
            )
            yield _Draft(task, self._slot(slot, names, (*path, "slot")))

    def _slot(self, value: Value | None, names: Mapping[str, object], path: Path) -> float | None:
        if value is None:
            return None
        bound = self._bind(value, names, path)
        data = bound.data if isinstance(bound, Literal) else None
        if isinstance(data, bool) or not isinstance(data, (int, float)) or data != data:
            self._report("wrong-type", f"a slot is a number, not {data!r}", path)
            return 0.0
        return data

    def _payload(self, payload: PayloadSpec | None) -> Payload | None:
        if payload is None:
            return None
        if payload.bytes is not None and payload.shape is None and payload.dtype is None:
            return Payload(payload.bytes)
        if payload.shape is None or payload.dtype not in DTYPES:
            self.sound = False
            return None
        count = 1
        for size in payload.shape:
            count *= size
        return Payload(count * DTYPES[payload.dtype], tuple(payload.shape), payload.dtype)

    def _actor_of(self, family: TaskFamily, place: Place) -> int:
        assert family.target is not None
        actor = family.target.actor
        return self.actor_starts[actor.name] + offset_of({**family.fixed, **place}, actor.axes)

    def _group(self, family: TaskFamily, group: GroupWiring) -> None:
        """Numbers a collective's groups and says what each member reads."""
        assert family.kind != "call"
        numbers: dict[tuple[tuple[str, int], ...], int] = {}
        resolvers = [self.resolver.compile(operand) for operand in group.operands]
        op = None if family.kind == "allgather" else (family.spec.op or "sum")
        for offset, place in enumerate(places(family.axes)):
            rest = tuple((axis, index) for axis, index in place.items() if axis not in group.axes)
            if rest not in numbers:
                numbers[rest] = len(self.groups)
                self.groups.append([])
                self.group_families.append(family.name)
            members = self.groups[numbers[rest]]
            refs = [ref for resolve in resolvers for ref in resolve(place, {})]
            operands = [refs[place[MEMBER]]] if group.members else refs
            number = self.task_starts[family.name] + offset
            self.collectives[number] = operands, Collective(family.kind, op, numbers[rest], len(members))
            members.append(number)

    def _owner(self, operand: Ref) -> int:
        """The actor on which a collective's member runs: its operand's."""
        while True:
            assert isinstance(operand, TaskRef)
            if operand.task in self.collectives:
                operand = self.collectives[operand.task][0][0]
                continue
            at = bisect.bisect_right(self.order_of_starts, operand.task) - 1
            family = self.wiring.tasks[self.order_of_names[at]]
            return self._actor_of(family, place_of(operand.task - self.order_of_starts[at], family.axes))

    def _graph(
        self, inputs: tuple[Input, ...], actors: tuple[Actor, ...], tasks: tuple[Task, ...], bind: tuple[int, ...]
    ) -> Graph:
        outputs = tuple(self._outputs())
        groups = tuple(Group(f, tuple(m)) for f, m in zip(self.group_families, self.groups, strict=True))
        effects = tuple(number for number, task in enumerate(tasks) if task.returns == ())
        unread = tuple(_unread(tasks, outputs))
        form: Any = self.wiring.form
        return Graph(self.name, actors, inputs, tasks, bind, outputs, form, groups, effects, unread, self.placement)

    def _outputs(self) -> Iterator[tuple[str | int, Ref | Pack]]:
        position = 0
        for wire in self.wiring.outputs:
            refs = [ref for item in wire.items for ref in self.resolver.compile(item)({}, {})]
            value: Ref | Pack = Pack(tuple(refs)) if wire.is_list else refs[0]
            if self.wiring.form == "list":
                for ref in refs:
                    yield position, ref
                    position += 1
            elif self.wiring.form == "single":
                leaf = wire.items[0]
                assert isinstance(leaf, At)
                yield leaf.family.name, value
            else:
                yield str(wire.name), value


@dataclass(frozen=True)
class _Template:
    transport: Transport | None
    payload: Payload | None
    timeout: float | None


@dataclass(frozen=True)
class _Draft:
    task: Task
    slot: float | None


def _section(values: Mapping[tuple[str, Any], Value], section: str) -> dict[Any, Value]:
    return {key: value for (owner, key), value in values.items() if owner == section}


def _transport(spec: TransportSpec | None) -> Transport | None:
    if spec is None:
        return None
    kind: Any = "accelerator" if spec.kind == "nccl" else spec.kind
    return Transport(kind, spec.device, spec.static_shape, spec.direct_return)


def _arguments(
    readers: list[tuple[Wire, list[Resolve]]], place: Place, names: Mapping[str, object]
) -> Iterator[Argument]:
    position = 0
    for wire, resolvers in readers:
        refs = [ref for resolve in resolvers for ref in resolve(place, names)]
        if wire.name is not None:
            yield Argument(wire.name, Pack(tuple(refs)) if wire.is_list else refs[0])
        elif wire.listed:
            yield Argument(position, Pack(tuple(refs)))
            position += 1
        else:
            for ref in refs:
                yield Argument(position, ref)
                position += 1


def _vertex(task: Task, slot: float | None) -> Vertex:
    reads = tuple(ref.task for argument in task.args for ref in argument.refs if isinstance(ref, TaskRef))
    group = task.collective.group if task.collective else None
    return Vertex(task.name, task.actor, slot, reads, group, task.path)


def _with_orders(actors: list[Actor], orders: list[list[int]]) -> tuple[Actor, ...]:
    return tuple(dataclasses.replace(actor, tasks=tuple(own)) for actor, own in zip(actors, orders, strict=True))


def _unread(
    tasks: tuple[Task, ...], outputs: tuple[tuple[str | int, Ref | Pack], ...]
) -> Iterator[tuple[int, int | None]]:
    read: set[tuple[int, int | None]] = set()
    for task in tasks:
        for argument in task.args:
            read.update((ref.task, ref.ret) for ref in argument.refs if isinstance(ref, TaskRef))
    for _, value in outputs:
        refs = value.items if isinstance(value, Pack) else (value,)
        read.update((ref.task, ref.ret) for ref in refs if isinstance(ref, TaskRef))
    for number, task in enumerate(tasks):
        if (number, None) in read:
            continue
        if task.returns is None:
            yield number, None
        else:
            yield from ((number, ret) for ret in range(len(task.returns)) if (number, ret) not in read)
