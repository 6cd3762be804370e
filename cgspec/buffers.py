"""What the channels of a compiled graph reserve in the object store."""

from __future__ import annotations

from cgspec.graph import Graph, InputRef, TaskRef
from cgspec.spec import Spec

DEFAULT_BUFFER = 10**6
"""Bytes of a channel where no payload was declared: Ray's default."""


def reserved(graph: Graph, spec: Spec) -> tuple[int, int, int, int]:
    """Bytes that are reserved in all, the number of channels, the window, and the largest buffer.

    Each channel reserves window x buffer at once. Edges within an actor have no channel; what several tasks read of
    one task is one channel.
    """
    window = spec.engine.max_inflight or spec.run.inflight
    senders = {edge.source for edge in graph.edges if edge.crosses or isinstance(edge.source, InputRef)}
    senders.update(graph.output_refs)
    sizes = []
    for ref in senders:
        payload = graph.tasks[ref.task].payload if isinstance(ref, TaskRef) else None
        sizes.append(spec.engine.buffer or (payload.bytes if payload else DEFAULT_BUFFER))
    return sum(sizes) * window, len(sizes), window, max(sizes, default=0)
