"""What can be told of the things in a graph, in words: how an edge travels, what a task calls, what an actor is."""

from __future__ import annotations

from collections.abc import Mapping

from cgspec.graph import Actor, Argument, Edge, Graph, Input, InputRef, Pack, Payload, Ref, Task, Transport
from cgspec.redaction import HIDDEN, SECRET_WORDS, STRONG_WORDS, looks_secret
from cgspec.views.palette import Carrier
from cgspec.views.scene import Facts


def tell_carrier(graph: Graph, edge: Edge) -> Carrier:
    """How this edge travels; Ray's default between actors is shared memory."""
    if isinstance(edge.source, InputRef):
        return "host"
    if not edge.crosses:
        return "local"
    transport = graph.tasks[edge.source.task].transport
    return "shm" if transport is None else transport.kind


def tell_payload(graph: Graph, ref: Ref) -> Payload | None:
    """The declared size of what is read, where it was declared."""
    return None if isinstance(ref, InputRef) else graph.tasks[ref.task].payload


def tell_size(count: int) -> str:
    """A number of bytes for people: ``512 B``, ``8 MiB``, ``1.5 GiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def tell_number(value: float) -> str:
    """A number without a needless fraction: ``1``, ``0.5``."""
    return f"{value:g}"


def count_of(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def tell_constants(consts: Mapping[str, object]) -> tuple[str, ...]:
    """One line for each constant, ``scale = 2``; pictures are shown around, so secrets are not in them."""
    return tuple(f"{name} = {tell_value(name, value)}" for name, value in consts.items())


def tell_value(name: str, value: object) -> str:
    """A value as short text, hidden where its name says that it is a secret."""
    text = str(value)
    words = SECRET_WORDS if text[:1] in "'\"" else STRONG_WORDS
    return HIDDEN if text and looks_secret(name, words) else text


def tell_actor(actor: Actor) -> str:
    """The line under an actor's name: its class and its GPUs."""
    gpus = f" · {tell_number(actor.num_gpus)} GPU" if actor.num_gpus else ""
    return str(actor.class_ref) + gpus


def actor_facts(actor: Actor) -> Facts:
    """What is told of one actor member."""
    facts = {
        "class": str(actor.class_ref),
        "GPUs": tell_number(actor.num_gpus),
        "accelerator": actor.accelerator_type or "",
        "CPUs": tell_number(actor.num_cpus),
        "memory": tell_size(actor.memory) if actor.memory is not None else "",
        "args": ", ".join((*map(str, actor.args), *tell_constants(actor.kwargs))),
        "resources": ", ".join(tell_constants(actor.resources)),
        "same node": ", ".join(actor.same_node),
        "process group": "yes" if actor.process_group else "",
        "tasks": str(len(actor.tasks)),
        "in the spec": tell_path(actor.path),
    }
    return drop_empty(facts)


def task_facts(graph: Graph, number: int, place: int) -> Facts:
    """What is told of one task; ``place`` is its place, from 0, in its actor's order."""
    task = graph.tasks[number]
    actor = graph.actors[task.actor]
    facts = {
        "actor": actor.name,
        "class": str(actor.class_ref),
        "method" if task.collective is None else "collective": task.label,
        "order": f"{place + 1} of {len(actor.tasks)}",
        "reads": ", ".join(tell_argument(graph, argument) for argument in task.args),
        "constants": ", ".join(tell_constants(task.consts)),
        "returns": tell_returns(task),
        "transport": tell_transport(task.transport) if task.transport else "",
        "payload": tell_declared(task.payload),
        "rank": tell_rank(graph, task),
        "timeout": f"{tell_number(task.timeout)} s" if task.timeout is not None else "",
        "in the spec": tell_path(task.path),
    }
    return drop_empty(facts)


def input_facts(item: Input) -> Facts:
    """What is told of one input."""
    return drop_empty({"value": tell_value(item.family, item.value), "in the spec": tell_path(item.path)})


def tell_argument(graph: Graph, argument: Argument) -> str:
    """``x = fwd.0``, or ``x = [fwd.0, fwd.1]`` for a list."""
    names = ", ".join(tell_ref(graph, ref) for ref in argument.refs)
    return f"{argument.name} = " + (f"[{names}]" if isinstance(argument.value, Pack) else names)


def tell_ref(graph: Graph, ref: Ref) -> str:
    """What a reference reads, with its return: ``part.0.hidden``."""
    returned = graph.return_name(ref)
    return graph.source_name(ref) + (f".{returned}" if returned is not None else "")


def tell_returns(task: Task) -> str:
    """What a task gives back."""
    if task.returns is None:
        return "one result"
    return ", ".join(task.returns) or "nothing: called for its effect"


def tell_transport(transport: Transport) -> str:
    """A task's transport with what differs from the defaults."""
    extras = [f"device {transport.device}"] if transport.device != "default" else []
    extras += ["static shape"] if transport.static_shape else []
    extras += ["direct return"] if transport.direct_return else []
    return ", ".join([transport.kind, *extras])


def tell_declared(payload: Payload | None) -> str:
    """A declared payload: ``8 MiB, float16 [2048, 2048]``."""
    if payload is None:
        return ""
    shape = "" if payload.shape is None else str(list(payload.shape))
    kind = " ".join(part for part in (payload.dtype or "", shape) if part)
    return ", ".join(part for part in (tell_size(payload.bytes), kind) if part)


def tell_rank(graph: Graph, task: Task) -> str:
    """A collective's rank in its group, or the empty string."""
    if task.collective is None:
        return ""
    return f"{task.collective.rank} of {len(graph.groups[task.collective.group].members)}"


def tell_path(path: tuple[str | int, ...]) -> str:
    """A YAML path with dots."""
    return ".".join(map(str, path))


def tell_totals(graph: Graph) -> str:
    """The line that counts what a graph holds."""
    counts = [(len(graph.actors), "actor"), (len(graph.tasks), "task"), (len(graph.edges), "edge")]
    return " · ".join(count_of(number, noun) for number, noun in counts)


def drop_empty(facts: Mapping[str, str]) -> Facts:
    """The facts that say something."""
    return tuple((what, text) for what, text in facts.items() if text)
