"""Turns a layout into a Ray Compiled Graph: nodes, transports, one input node, one output node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ray.dag import InputNode, MultiOutputNode

from cgspec import raynames
from cgspec.graph import Collective, Graph, Transport
from cgspec.steps import Bind, FromInput, FromPort, Layout


class Binding:
    """A layout bound to actors.

    Args:
        communicators: by group of ``layout.meetings``; Ray's own, which is NCCL, where there is none.

    Attributes:
        dag: what is compiled.
    """

    def __init__(self, graph: Graph, layout: Layout, handles: Sequence[Any], communicators: Mapping[int, Any]) -> None:
        self.graph = graph
        self.layout = layout
        self.handles = handles
        self.communicators = communicators
        self.used = _used_inputs(layout)
        with InputNode() as node:
            self.sources = self._input_nodes(node)
        self.ports: list[tuple[Any, ...]] = []
        for place, bind in enumerate(layout.binds):
            if place < len(self.ports):  # a member of the collective that was just bound
                continue
            self.ports.extend([self._bind(bind)] if bind.group is None else self._meet(bind.group))
        self.dag = MultiOutputNode([self._port(read) for read in layout.reads])

    def _input_nodes(self, node: Any) -> dict[FromInput, Any]:
        """Inputs are read whole where there is one, else by position: never both in one graph."""
        if len(self.used) == 1:
            return {self.used[0]: node}
        return {source: node[place] for place, source in enumerate(self.used)}

    def _bind(self, bind: Bind) -> tuple[Any, ...]:
        method = self.handles[bind.actor].run
        if bind.ports > 1:
            method = method.options(num_returns=bind.ports)
        node = method.bind(bind.step, *(self._source(read) for read in bind.reads))
        if bind.ports > 1:
            return tuple(node)
        return (with_transport(node, bind.transport) if bind.transport is not None else node,)

    def _meet(self, group: int) -> list[tuple[Any, ...]]:
        """Ray's collective node of each member, by rank."""
        members = [self.layout.binds[place] for place in self.layout.meetings[group]]
        operands = [[self._source(bind.reads[place]) for bind in members] for place in range(members[0].ports)]
        collective = self.graph.tasks[members[0].task].collective
        assert collective is not None
        nodes = collective_nodes(collective, operands, self.communicators.get(group))
        return [tuple(node) if isinstance(node, list) else (node,) for node in nodes]

    def _source(self, source: FromInput | FromPort) -> Any:
        return self.sources[source] if isinstance(source, FromInput) else self._port(source)

    def _port(self, source: FromPort) -> Any:
        return self.ports[source.bind][source.port]

    def arrange(self, inputs: Sequence[object], *, trigger: object = None) -> tuple[object, ...]:
        """What the driver submits, from one value per graph input."""
        return tuple([trigger if source.input is None else inputs[source.input] for source in self.used])


def _used_inputs(layout: Layout) -> list[FromInput]:
    """The inputs that steps read, in order; Ray refuses keys that are touched and not used."""
    found = {read for bind in layout.binds for read in bind.reads if isinstance(read, FromInput)}
    return sorted(found, key=lambda source: (source.input is None, source.input or 0))


def collective_nodes(collective: Collective, operands: Sequence[list[Any]], communicator: Any) -> list[Any]:
    """One node per member, or a list of them where several operands are fused.

    Args:
        operands: for each fused operand the members' nodes, by rank.
        communicator: None for Ray's own.
    """
    from ray.experimental import collective as ray_collective
    from ray.experimental.util.types import ReduceOp

    bind = getattr(ray_collective, collective.kind).bind
    op = {} if collective.op is None else {"op": ReduceOp[collective.op.upper()]}
    if len(operands) == 1:
        nodes: list[Any] = bind(operands[0], transport=communicator, **op)
    elif collective.kind == "allreduce":
        nodes = bind(list(operands), transport=communicator, **op)
    else:  # Ray fuses nothing else: one after the other
        each = [bind(column, transport=communicator, **op) for column in operands]
        nodes = [list(own) for own in zip(*each, strict=True)]
    return nodes


def with_transport(node: Any, transport: Transport) -> Any:
    private = raynames.transport_options(static_shape=transport.static_shape, direct_return=transport.direct_return)
    return node.with_tensor_transport(transport.kind, device=transport.device, **private)
