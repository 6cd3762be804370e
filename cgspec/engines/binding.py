"""Turns a layout into a Ray Compiled Graph: nodes, transports, one input node, one output node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray
from ray.dag import InputNode, MultiOutputNode

from cgspec.graph import Transport
from cgspec.steps import FromInput, FromPort, Layout


class Binding:
    """A layout bound to actors.

    Attributes:
        dag: what is compiled.
    """

    def __init__(self, layout: Layout, handles: Sequence[Any]) -> None:
        self.layout = layout
        self.handles = handles
        self.used = _used_inputs(layout)
        with InputNode() as node:
            self.sources = self._input_nodes(node)
        self.ports: list[tuple[Any, ...]] = []
        for bind in layout.binds:
            self.ports.append(self._bind(bind.actor, bind.step, bind.reads, bind.ports, bind.transport))
        self.dag = MultiOutputNode([self._port(read) for read in layout.reads])

    def _input_nodes(self, node: Any) -> dict[FromInput, Any]:
        """Inputs are read whole where there is one, else by position: never both in one graph."""
        if len(self.used) == 1:
            return {self.used[0]: node}
        return {source: node[place] for place, source in enumerate(self.used)}

    def _bind(
        self, actor: int, step: int, reads: tuple[FromInput | FromPort, ...], ports: int, transport: Transport | None
    ) -> tuple[Any, ...]:
        method = self.handles[actor].run
        if ports > 1:
            method = method.options(num_returns=ports)
        node = method.bind(step, *(self._source(read) for read in reads))
        if ports > 1:
            return tuple(node)
        return (with_transport(node, transport) if transport is not None else node,)

    def _source(self, source: FromInput | FromPort) -> Any:
        return self.sources[source] if isinstance(source, FromInput) else self._port(source)

    def _port(self, source: FromPort) -> Any:
        return self.ports[source.bind][source.port]

    def arrange(self, inputs: Sequence[object], *, trigger: object = None) -> tuple[object, ...]:
        """The positional arguments of ``execute``, from one value per graph input."""
        return tuple([trigger if source.input is None else inputs[source.input] for source in self.used])


def _used_inputs(layout: Layout) -> list[FromInput]:
    """The inputs that steps read, in order; Ray refuses keys that are touched and not used."""
    found = {read for bind in layout.binds for read in bind.reads if isinstance(read, FromInput)}
    return sorted(found, key=lambda source: (source.input is None, source.input or 0))


def with_transport(node: Any, transport: Transport) -> Any:
    return node.with_tensor_transport(
        transport.kind,
        device=transport.device,
        _static_shape=transport.static_shape,
        _direct_return=transport.direct_return,
    )


def result_of(refs: Sequence[Any]) -> list[object]:
    """The values of one execution; blocks for as long as it takes."""
    values: list[object] = ray.get(list(refs), timeout=-1)
    return values
