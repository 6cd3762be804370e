"""What a run of a spec would do: actors and their order, edges with transport and bytes, buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cgspec.buffers import reserved
from cgspec.fusion import fuse, fused_tasks
from cgspec.graph import Actor, Edge, Graph, InputRef, Pack, TaskRef
from cgspec.layout import lay_out
from cgspec.quantities import show_size
from cgspec.routes import routes_of
from cgspec.spec import Spec


class Ways:
    """How the edges of a graph travel with the engine of its spec."""

    def __init__(self, graph: Graph, spec: Spec, *, rehearse: bool = False) -> None:
        self.graph, self.engine = graph, spec.engine.kind
        self.routes = routes_of(graph, rehearse=rehearse) if self.engine == "direct" else {}

    def of(self, edge: Edge) -> str:
        """``host`` from the driver, ``local`` within a process, else by transport.

        That is the declared one, ``shm`` by default, with the compiled engine; with ``direct`` it is ``gloo`` or
        ``nccl`` by Ray Direct Transport, or ``store``, Ray's object store.
        """
        if self.engine == "local" or not (edge.crosses or isinstance(edge.source, InputRef)):
            return "local"
        if isinstance(edge.source, InputRef):
            return "host"
        if self.engine == "direct":
            return self.routes.get(edge.source.task, "store")
        transport = self.graph.tasks[edge.source.task].transport
        return transport.kind if transport is not None else "shm"

    @property
    def to_driver(self) -> str:
        """How results reach the driver."""
        return "local" if self.engine == "local" else "host"


def as_data(graph: Graph, spec: Spec, *, rehearse: bool = False) -> dict[str, Any]:
    """The shape of ``plan --json``."""
    ways = Ways(graph, spec, rehearse=rehearse)
    actors = [
        {
            "name": actor.name,
            "class": str(actor.class_ref),
            "num_gpus": actor.num_gpus,
            "tasks": [graph.tasks[number].name for number in actor.tasks],
        }
        for actor in graph.actors
    ]
    return {"actors": actors, "edges": [_edge(graph, edge, ways) for edge in graph.edges]}


def _edge(graph: Graph, edge: Edge, ways: Ways) -> dict[str, Any]:
    return {
        "from": graph.source_name(edge.source),
        "return": graph.return_name(edge.source),
        "to": graph.tasks[edge.to].name,
        "arg": edge.arg,
        "transport": ways.of(edge),
        "bytes": bytes_of(graph, edge),
    }


def bytes_of(graph: Graph, edge: Edge) -> int | None:
    """The declared payload of an edge, where there is one."""
    payload = graph.tasks[edge.source.task].payload if isinstance(edge.source, TaskRef) else None
    return payload.bytes if payload is not None else None


def text(graph: Graph, spec: Spec) -> str:
    """The plan for people."""
    edges = _edges(graph, Ways(graph, spec))
    return "\n".join([*_head(graph, spec), "", *_actors(graph, spec), "", *edges, "", *_buffers(graph, spec)])


def _head(graph: Graph, spec: Spec) -> Iterator[str]:
    run, cluster = spec.run, spec.cluster
    yield f"{graph.name}: {_count(len(graph.actors), 'actor')}, {_count(len(graph.tasks), 'task')}"
    where = "in this process, without Ray"
    if spec.engine.kind != "local":
        where = f"Ray {cluster.address}, placement {cluster.placement}"
    yield f"engine {spec.engine.kind}; {where}"
    profiles = [profile.kind for profile in spec.profile if profile.kind != "none"]
    phases = [f"warmup {run.warmup}", f"measure {run.iterations}", *(f"profile ({kind})" for kind in profiles)]
    yield f"phases: {', '.join(phases)}; {run.inflight} in flight"


def _actors(graph: Graph, spec: Spec) -> Iterator[str]:
    following = _following(graph) if spec.engine.kind == "compiled" and spec.engine.fuse else set()
    yield "actors" + (", + between tasks that are one call" if following else "")
    for actor in graph.actors:
        yield f"  {actor.name}  {actor.class_ref}  {_resources(actor)}"
        order = "".join((" + " if n in following else " → ") + graph.tasks[n].name for n in actor.tasks)
        yield f"      {order[3:] or 'no tasks'}"


def _following(graph: Graph) -> set[int]:
    """Tasks that are executed in one call with the one before."""
    layout = lay_out(graph, transports=True, devices=any(actor.num_gpus for actor in graph.actors))
    return {task for chain in fused_tasks(fuse(layout)) for task in chain[1:]}


def _resources(actor: Actor) -> str:
    parts = [f"{actor.num_cpus:g} CPU"] if actor.num_cpus else []
    parts += [f"{actor.num_gpus:g} GPU"] if actor.num_gpus else []
    parts += [f"{show_size(actor.memory)} memory"] if actor.memory else []
    parts += [f"{amount:g} {name}" for name, amount in actor.resources.items()]
    parts += [actor.accelerator_type] if actor.accelerator_type else []
    return ", ".join(parts) or "no resources"


def _edges(graph: Graph, ways: Ways) -> Iterator[str]:
    yield "edges"
    for edge in graph.edges:
        data = _edge(graph, edge, ways)
        source = data["from"] + (f".{data['return']}" if data["return"] else "")
        size = f"  {show_size(data['bytes'])}" if data["bytes"] is not None else ""
        yield f"  {source} → {data['to']}({data['arg']})  {data['transport']}{size}"
    for name, value in graph.outputs:
        refs = value.items if isinstance(value, Pack) else (value,)
        read = ", ".join(graph.source_name(ref) for ref in refs)
        yield f"  {read} → output {name}  {ways.to_driver}"


def _buffers(graph: Graph, spec: Spec) -> Iterator[str]:
    if spec.engine.kind != "compiled":
        where = "everything stays in this process" if spec.engine.kind == "local" else "each task is a call of its own"
        yield f"buffers: none, {where}"
        return
    total, count, window, largest = reserved(graph, spec)
    each = f"{window} in flight, up to {show_size(largest)} each"
    yield f"buffers: {_count(count, 'channel')}, {each}: {show_size(total)} reserved"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
