"""What the channels of a compiled graph reserve in the object store."""

from __future__ import annotations

from cgspec.graph import Graph, InputRef, TaskRef
from cgspec.spec import Spec

DEFAULT_BUFFER = 10**6
"""Bytes of a channel where no payload was declared: Ray's default."""


SLACK = 65_536
"""Bytes for what is packed around a declared payload."""
LEAST = 1000


def channel_bytes(graph: Graph, buffer: int | None, actor: int | None) -> int:
    """Bytes of each channel that an actor, or (None) the driver, writes: one size for all that a process writes.

    Args:
        buffer: what ``engine.buffer`` says, if it says a size; else the largest declared payload counts, and Ray's
            1 MB where something was not declared.
    """
    if buffer is not None:
        return max(buffer, LEAST)
    payloads = [graph.tasks[number].payload for number in graph.actors[actor].tasks] if actor is not None else []
    declared = [payload.bytes + SLACK for payload in payloads if payload is not None]
    return max(declared) if declared and None not in payloads else max([DEFAULT_BUFFER, *declared])


def reserved(graph: Graph, spec: Spec) -> tuple[int, int, int, int]:
    """Bytes that are reserved in all, the number of channels, the window, and the largest buffer.

    Each channel reserves window x buffer at once. Edges within an actor have no channel; what several tasks read of
    one task is one channel.
    """
    window = spec.engine.max_inflight or spec.run.inflight
    senders = {edge.source for edge in graph.edges if edge.crosses or isinstance(edge.source, InputRef)}
    senders.update(graph.output_refs)
    writers = [graph.tasks[ref.task].actor if isinstance(ref, TaskRef) else None for ref in senders]
    sizes = {writer: channel_bytes(graph, spec.engine.buffer, writer) for writer in set(writers)}
    return sum(sizes[writer] for writer in writers) * window, len(writers), window, max(sizes.values(), default=0)
