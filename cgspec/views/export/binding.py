"""The part of the script that makes the actors and binds the graph, in the order of ``graph.bind``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgspec.graph import Collective, Graph, InputRef, Ref, Task, TaskRef, Transport
from cgspec.values import Value
from cgspec.views.export.calls import Bound, Calls, singles
from cgspec.views.export.code import Coder, call, plain
from cgspec.views.export.names import Names

WIDTH = 116


class Binding:
    """The bind lines, made in one pass.

    Attributes:
        lines: inside the ``with InputNode()`` block.
        sent: the inputs that the graph reads, in the order in which they are sent.
        triggered: whether a value that nobody reads is sent, last.
        reads: what the driver reads, each node once; those beyond ``wanted`` are awaited and dropped.
        operations: what is imported from ``ray.experimental.collective``.
    """

    def __init__(self, graph: Graph, calls: Calls, coder: Coder, names: Names, actors: Sequence[str]) -> None:
        self.graph, self.calls, self.coder, self.names, self.actors = graph, calls, coder, names, actors
        self.lines: list[str] = []
        self.operations: set[str] = set()
        bounds = {n: calls.bound(task) for n, task in enumerate(graph.tasks) if task.collective is None}
        read = {e.source.input for e in graph.edges if isinstance(e.source, InputRef)}
        self.sent = sorted(read)
        self.triggered = any(None in bound.positional for bound in bounds.values()) or not self.sent
        self._own: dict[TaskRef, str] = {}
        self._sent_on: dict[TaskRef, str] = {}
        self._inputs = self._input_nodes()
        self._others, self._driver = self._readers()
        for number in graph.bind:
            self._bind(number, bounds)
        self.wanted = list(dict.fromkeys(node for ref in graph.output_refs for node in self._read(ref)))
        self.reads = list(dict.fromkeys([*self.wanted, *self._dropped()]))

    def _input_nodes(self) -> list[str]:
        """One input is read whole, several by position: Ray allows no mixture."""
        count = len(self.sent) + self.triggered
        if count == 1:
            return ["inp"]
        wanted = [self.graph.inputs[number].name for number in self.sent] + ["trigger"] * self.triggered
        nodes = [self.names.give(name) for name in wanted]
        self.lines.append(f"{', '.join(nodes)} = {', '.join(f'inp[{place}]' for place in range(count))}")
        return nodes

    def _readers(self) -> tuple[set[TaskRef], set[TaskRef]]:
        """What other actors read, and what the driver reads."""
        graph = self.graph
        others = {s for edge in graph.edges if edge.crosses for s in singles(graph, edge.source)}
        driver = {s for ref in graph.output_refs for s in singles(graph, ref)}
        tasks = [{ref for ref in refs if isinstance(ref, TaskRef)} for refs in (others, driver)]
        return tasks[0], tasks[1]

    def _bind(self, number: int, bounds: dict[int, Bound]) -> None:
        task = self.graph.tasks[number]
        if task.collective is None:
            self._bind_call(number, task, bounds[number])
        elif task.collective.rank == 0:
            self._bind_group(task.collective)

    def _refs(self, number: int) -> list[TaskRef]:
        """One per node of a task, unread returns included: Ray wants every return read."""
        returns = self.graph.tasks[number].returns or ()
        return [TaskRef(number, place) for place in range(len(returns))] or [TaskRef(number)]

    def _name(self, ref: TaskRef) -> str:
        ret = self.graph.return_name(ref)
        return self.names.give(self.graph.tasks[ref.task].name + (f"_{ret}" if ret else ""))

    def _bind_call(self, number: int, task: Task, bound: Bound) -> None:
        actor, refs = self.actors[task.actor], self._refs(number)
        options = f".options(num_returns={len(refs)})" if len(refs) > 1 else ""
        positional = [self._argument(value, task) for value in bound.positional]
        device = self._device(task.actor)
        named = {name: self.coder.of(value, device=device) for name, value in bound.named.items()}
        code = call(f"{actor}.{bound.method}{options}.bind", positional, named)
        nodes = [self._name(ref) for ref in refs]
        transport = task.transport if any(ref in self._others for ref in refs) else None
        direct = transport is not None and self._is_direct(refs, transport)
        self.lines.append(f"{', '.join(nodes)} = {code}{transported(transport) if transport and direct else ''}")
        self._own |= dict(zip(refs, nodes, strict=True))
        self._forward(task, refs, None if direct else transport)

    def _is_direct(self, refs: list[TaskRef], transport: Transport) -> bool:
        """Whether the transport can stand on the task itself: Ray's is one for all readers, the driver too."""
        return len(refs) == 1 and (transport.kind == "shm" or refs[0] not in self._driver)

    def _forward(self, task: Task, refs: list[TaskRef], transport: Transport | None) -> None:
        """Binds what hands results on to other actors with a transport of their own."""
        if transport is None:
            return
        for ref in refs:
            if ref in self._others:
                node = self.names.give(f"{self._own[ref]}_sent")
                method = self.calls.hand_on(task.actor)
                bind = f"{self.actors[task.actor]}.{method}.bind({self._own[ref]})"
                self.lines.append(f"{node} = {bind}{transported(transport)}")
                self._sent_on[ref] = node

    def _bind_group(self, collective: Collective) -> None:
        members = self.graph.groups[collective.group].members
        tasks = [self.graph.tasks[number] for number in members]
        operands = [[self._operand(task, place) for place in range(len(task.args))] for task in tasks]
        names = [[self._name(ref) for ref in self._refs(number)] for number in members]
        if len(members) == 1:
            self._bind_alone(tasks[0], names[0], operands[0])
        else:
            self._bind_members(collective, names, operands)
        for number, task, nodes in zip(members, tasks, names, strict=True):
            refs = self._refs(number)
            self._own |= dict(zip(refs, nodes, strict=True))
            crossing = any(ref in self._others for ref in refs)
            self._forward(task, refs, task.transport if crossing else None)

    def _operand(self, task: Task, place: int) -> str:
        return self._node(task.args[place].refs[0], task)

    def _bind_alone(self, task: Task, names: list[str], operands: list[str]) -> None:
        """A group of one, which Ray refuses: the operand itself."""
        method = self.calls.hand_on(task.actor)
        for name, operand in zip(names, operands, strict=True):
            self.lines.append(f"{name} = {self.actors[task.actor]}.{method}.bind({operand})  # a group of one")

    def _bind_members(self, collective: Collective, names: list[list[str]], operands: list[list[str]]) -> None:
        self.operations.add(collective.kind)
        columns = [f"[{', '.join(row[place] for row in operands)}]" for place in range(len(operands[0]))]
        operand = columns[0] if len(columns) == 1 else f"[{', '.join(columns)}]"
        op = f", ReduceOp.{collective.op.upper()}" if collective.op is not None else ""
        targets = [row[0] if len(row) == 1 else f"({', '.join(row)})" for row in names]
        self.lines.append(f"{', '.join(targets)} = {collective.kind}.bind({operand}{op})")

    def _argument(self, value: Ref | Value | None, task: Task) -> str:
        if value is None:
            return self._inputs[-1]
        if isinstance(value, InputRef | TaskRef):
            return self._node(value, task)
        return self.coder.of(value, device=self._device(task.actor))

    def _node(self, ref: Ref, reader: Task) -> str:
        if isinstance(ref, InputRef):
            return self._inputs[self.sent.index(ref.input)]
        crosses = self.graph.tasks[ref.task].actor != reader.actor
        return (self._sent_on.get(ref) if crosses else None) or self._own[ref]

    def _device(self, actor: int) -> str:
        return "cuda" if self.graph.actors[actor].num_gpus else "cpu"

    def _read(self, ref: Ref) -> list[str]:
        if isinstance(ref, InputRef):
            return []
        return [self._own[single] for single in singles(self.graph, ref) if isinstance(single, TaskRef)]

    def _dropped(self) -> Iterator[str]:
        """Effects, and what nobody reads: Ray wants all of it to reach an output."""
        read = {s for edge in self.graph.edges for s in singles(self.graph, edge.source)}
        for ref, node in self._own.items():
            if ref not in read and ref not in self._driver:
                yield node

    def place(self, ref: TaskRef) -> int:
        """The place of a single result in ``reads``."""
        return self.reads.index(self._own[ref])


def transported(transport: Transport) -> str:
    """The call that gives a node its transport."""
    options = {"device": plain(transport.device)} if transport.device != "default" else {}
    options |= {"_static_shape": "True"} if transport.static_shape else {}
    options |= {"_direct_return": "True"} if transport.direct_return else {}
    return call(".with_tensor_transport", [plain(transport.kind)], options)


def wrapped(before: str, items: Sequence[str], after: str, indent: str) -> list[str]:
    """A call or display on one line, or one item a line where it is too long."""
    line = f"{indent}{before}{', '.join(items)}{after}"
    if len(line) <= WIDTH or not items:
        return [line]
    return [f"{indent}{before}", *(f"{indent}    {item}," for item in items), f"{indent}{after}"]
