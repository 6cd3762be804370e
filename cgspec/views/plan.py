"""What a run of a spec would do: actors and their order, edges with transport and bytes, buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cgspec.buffers import reserved
from cgspec.graph import Actor, Edge, Graph, InputRef, Pack, TaskRef
from cgspec.quantities import show_size
from cgspec.spec import Spec


def as_data(graph: Graph) -> dict[str, Any]:
    """The shape of ``plan --json``."""
    actors = [
        {
            "name": actor.name,
            "class": str(actor.class_ref),
            "num_gpus": actor.num_gpus,
            "tasks": [graph.tasks[number].name for number in actor.tasks],
        }
        for actor in graph.actors
    ]
    return {"actors": actors, "edges": [_edge(graph, edge) for edge in graph.edges]}


def _edge(graph: Graph, edge: Edge) -> dict[str, Any]:
    return {
        "from": graph.source_name(edge.source),
        "return": graph.return_name(edge.source),
        "to": graph.tasks[edge.to].name,
        "arg": edge.arg,
        "transport": transport_of(graph, edge),
        "bytes": bytes_of(graph, edge),
    }


def transport_of(graph: Graph, edge: Edge) -> str:
    """How an edge travels: ``host`` from the driver, ``local`` within an actor, else by transport (default ``shm``)."""
    if isinstance(edge.source, InputRef):
        return "host"
    if not edge.crosses:
        return "local"
    transport = graph.tasks[edge.source.task].transport
    return transport.kind if transport is not None else "shm"


def bytes_of(graph: Graph, edge: Edge) -> int | None:
    """The declared payload of an edge, where there is one."""
    payload = graph.tasks[edge.source.task].payload if isinstance(edge.source, TaskRef) else None
    return payload.bytes if payload is not None else None


def text(graph: Graph, spec: Spec) -> str:
    """The plan for people."""
    return "\n".join([*_head(graph, spec), "", *_actors(graph), "", *_edges(graph), "", *_buffers(graph, spec)])


def _head(graph: Graph, spec: Spec) -> Iterator[str]:
    run, cluster = spec.run, spec.cluster
    yield f"{graph.name}: {_count(len(graph.actors), 'actor')}, {_count(len(graph.tasks), 'task')}"
    yield f"engine {spec.engine.kind}; Ray {cluster.address}, placement {cluster.placement}"
    profiles = [profile.kind for profile in spec.profile if profile.kind != "none"]
    phases = [f"warmup {run.warmup}", f"measure {run.iterations}", *(f"profile ({kind})" for kind in profiles)]
    yield f"phases: {', '.join(phases)}; {run.inflight} in flight"


def _actors(graph: Graph) -> Iterator[str]:
    yield "actors"
    for actor in graph.actors:
        yield f"  {actor.name}  {actor.class_ref}  {_resources(actor)}"
        order = " → ".join(graph.tasks[number].name for number in actor.tasks)
        yield f"      {order or 'no tasks'}"


def _resources(actor: Actor) -> str:
    parts = [f"{actor.num_cpus:g} CPU"] if actor.num_cpus else []
    parts += [f"{actor.num_gpus:g} GPU"] if actor.num_gpus else []
    parts += [f"{show_size(actor.memory)} memory"] if actor.memory else []
    parts += [f"{amount:g} {name}" for name, amount in actor.resources.items()]
    parts += [actor.accelerator_type] if actor.accelerator_type else []
    return ", ".join(parts) or "no resources"


def _edges(graph: Graph) -> Iterator[str]:
    yield "edges"
    for edge in graph.edges:
        data = _edge(graph, edge)
        source = data["from"] + (f".{data['return']}" if data["return"] else "")
        size = f"  {show_size(data['bytes'])}" if data["bytes"] is not None else ""
        yield f"  {source} → {data['to']}({data['arg']})  {data['transport']}{size}"
    for name, value in graph.outputs:
        refs = value.items if isinstance(value, Pack) else (value,)
        read = ", ".join(graph.source_name(ref) for ref in refs)
        yield f"  {read} → output {name}  host"


def _buffers(graph: Graph, spec: Spec) -> Iterator[str]:
    total, count, window, largest = reserved(graph, spec)
    each = f"{window} in flight, up to {show_size(largest)} each"
    yield f"buffers: {_count(count, 'channel')}, {each}: {show_size(total)} reserved"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
