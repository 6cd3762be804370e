"""Rules about transports: where Ray's tensor transport cannot go, or changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cgspec.diagnostics import Finding, Path, Related
from cgspec.families import ActorFamily, TaskFamily
from cgspec.graph import Graph, InputRef, TaskRef
from cgspec.references import At, Reference, Shift, leaves
from cgspec.rules.context import Context, Rule
from cgspec.spec import TransportSpec


@dataclass(frozen=True)
class Sender:
    """A task with a transport: its actor, and the actors of those who may read it elsewhere."""

    family: TaskFamily
    transport: TransportSpec
    actor: ActorFamily
    crossing: tuple[ActorFamily, ...]
    local: bool
    to_driver: bool

    @property
    def path(self) -> Path:
        return ("tasks", self.family.name, "transport")


def actor_of(context: Context, family: TaskFamily) -> ActorFamily | None:
    """The actor family on which a task family runs; of a collective, its first operand's."""
    while family.target is None:
        operand = context.wiring.groups[family.name].operands[0].family
        if not isinstance(operand, TaskFamily):
            return None
        family = operand
    return family.target.actor


def _senders(context: Context) -> Iterator[Sender]:
    readers = _readers(context)
    to_driver = {leaf.family.name for wire in context.wiring.outputs for item in wire.items for leaf in leaves(item)}
    for name, family in context.wiring.tasks.items():
        actor = actor_of(context, family)
        if family.spec.transport is None or actor is None:
            continue
        crossing: dict[str, ActorFamily] = {}
        local = False
        for reader, reference in readers.get(name, ()):
            reading = actor_of(context, reader)
            if reading is None:
                continue
            if reading.name != actor.name or _may_cross(reference, actor, family, reader):
                crossing[reading.name] = reading
            else:
                local = True
        yield Sender(family, family.spec.transport, actor, tuple(crossing.values()), local, name in to_driver)


def _readers(context: Context) -> dict[str, list[tuple[TaskFamily, Reference]]]:
    readers: dict[str, list[tuple[TaskFamily, Reference]]] = {}
    for name, wires in context.wiring.wires.items():
        for wire in wires:
            for item in wire.items:
                for leaf in leaves(item):
                    readers.setdefault(leaf.family.name, []).append((context.wiring.tasks[name], item))
    for name, group in context.wiring.groups.items():
        for operand in group.operands:
            readers.setdefault(operand.family.name, []).append((context.wiring.tasks[name], operand))
    return readers


def _may_cross(reference: Reference, actor: ActorFamily, sender: TaskFamily, reader: TaskFamily) -> bool:
    """Whether a reader on the same actor family may sit on another member."""
    if not actor.axes or reader.target is None:
        return False
    if isinstance(reference, Shift):
        return True
    assert isinstance(reference, At)
    moved = [axis for axis in (*reference.picks, *reference.gathers) if axis in actor.axes]
    return bool(moved) or dict(sender.fixed) != dict(reader.fixed)


def transport_input(context: Context) -> Iterator[Finding]:
    """An input that says how it travels: inputs always travel through host memory."""
    for name, family in context.catalogue.inputs.items():
        raw = family.raw
        said = raw.get("transport") if isinstance(raw, dict) else None
        kind = said.get("kind") if isinstance(said, dict) else said
        if kind in ("auto", "accelerator", "nccl", "shm"):
            message = f"the input {name} is a map with a transport, and is sent as it stands: an input has no transport"
            why = "the driver has no accelerator channel: inputs travel through host memory"
            fix = "say transport on the task whose result travels"
            where = (*family.path, "transport")
            yield Finding("transport-input", message, where, "warning", on="key", why=why, fix=fix)


def transport_unread(context: Context) -> Iterator[Finding]:
    """A transport on a task whose result goes to the driver alone, or stays in its actor."""
    for sender in _senders(context):
        name = sender.family.name
        if sender.family.axes or sender.crossing or not context.is_whole("tasks", name):
            continue
        if sender.local or sender.to_driver:
            where = f"is read on {sender.actor.name} alone" if sender.local else "goes to the driver alone"
            why = "within an actor nothing travels" if sender.local else "results reach the driver through host memory"
            message = f"{name} {where}, so its transport has nowhere to go"
            yield Finding("transport-unread", message, sender.path, why=why, fix="remove transport")


def transport_unused(context: Context) -> Iterator[Finding]:
    """A family with a transport none of whose members is read on another actor, at these sizes: a note."""
    graph = context.sound
    crossing = _crossing_families(graph)
    for sender in _senders(context):
        name = sender.family.name
        if sender.family.axes and name not in crossing:
            message = f"no member of {name} is read on another actor at these sizes, so its transport is not used"
            yield Finding("transport-unused", message, sender.path, "note")


def _crossing_families(graph: Graph) -> set[str]:
    found = set()
    for task in graph.tasks:
        for argument in task.args:
            for ref in argument.refs:
                if isinstance(ref, InputRef):
                    continue
                assert isinstance(ref, TaskRef)
                if graph.tasks[ref.task].actor != task.actor:
                    found.add(graph.tasks[ref.task].family)
    return found


def _accelerated(context: Context) -> Iterator[Sender]:
    for sender in _senders(context):
        if sender.transport.kind in ("accelerator", "nccl") and sender.crossing:
            yield sender


def transport_no_gpu(context: Context) -> Iterator[Finding]:
    """An accelerator transport from or to an actor without a GPU; with ``direct``, gloo serves where none has one."""
    if context.spec.engine.kind == "local" or context.rehearse:
        return
    for sender in _accelerated(context):
        both = _distinct(sender.actor, *sender.crossing)
        actors = [actor for actor in both if actor.spec.num_gpus == 0]
        lacking = [actor for actor in actors if ("actors", actor.name) not in context.catalogue.incomplete]
        if lacking and not (context.spec.engine.kind == "direct" and len(actors) == len(both)):
            names, others = _names(lacking), _names(sender.crossing)
            message = f"{sender.family.name} goes by accelerator from {sender.actor.name} to {others}, and "
            message += f"{names} {'have' if len(lacking) > 1 else 'has'} no GPU"
            why = "NCCL moves tensors between GPUs"
            fix = f"give {names} num_gpus: 1, or use transport: shm"
            if len(actors) == len(both):
                fix += ", or engine: direct, which sends by gloo between actors without GPUs"
            yield Finding("transport-no-gpu", message, sender.path, why=why, fix=fix, related=_here(lacking))


def _names(actors: Iterable[ActorFamily]) -> str:
    return " and ".join(actor.name for actor in actors)


def _here(actors: Iterable[ActorFamily], key: str = "") -> tuple[Related, ...]:
    """Where actors are, or what they say under a key."""
    found = []
    for actor in actors:
        message = f"{key} of {actor.name}" if key else f"{actor.name} is here"
        path: Path = ("actors", actor.name, key) if key else ("actors", actor.name)
        found.append(Related(message, path, "key"))
    return tuple(found)


def transport_shared_gpu(context: Context) -> Iterator[Finding]:
    """An accelerator transport between actors that share one GPU."""
    for sender in _accelerated(context):
        sharing = [actor for actor in _distinct(sender.actor, *sender.crossing) if 0 < actor.spec.num_gpus < 1]
        if sharing:
            has = " and ".join(f"{actor.name} has {actor.spec.num_gpus:g} of a GPU" for actor in sharing)
            message = f"{sender.family.name} goes by accelerator, and {has}"
            why = "two members of an NCCL group cannot share one GPU"
            fix = f"give {_names(sharing)} num_gpus: 1, or use transport: shm"
            made = _here(sharing, "num_gpus")
            yield Finding("transport-shared-gpu", message, sender.path, why=why, fix=fix, related=made)


def transport_device(context: Context) -> Iterator[Finding]:
    """An accelerator transport whose tensors are to arrive on the CPU."""
    for sender in _senders(context):
        if sender.transport.kind in ("accelerator", "nccl") and sender.transport.device == "cpu":
            message = f"{sender.family.name} goes by accelerator and is to arrive on the CPU"
            why = "NCCL writes into GPU memory"
            fix = "use transport: {kind: shm, device: cpu}, or leave device out"
            yield Finding("transport-device", message, (*sender.path, "device"), why=why, fix=fix)


def two_devices(context: Context) -> Iterator[Finding]:
    """Two devices among the tensors that one actor sends or receives."""
    seen: dict[str, tuple[str, Sender]] = {}
    for sender in _senders(context):
        device = "gpu" if sender.transport.device == "cuda" else sender.transport.device
        if device == "default":
            continue
        for actor in _distinct(sender.actor, *sender.crossing):
            known = seen.setdefault(actor.name, (device, sender))
            if known[0] != device:
                message = f"{actor.name} has tensors on {known[0]} (by {known[1].family.name}) and on {device}"
                why = "Ray keeps one device per process: the last one that is set would win"
                fix = f"say the same device in every transport that {actor.name} sends or receives"
                made = (Related(f"{known[0]} is said here", (*known[1].path, "device")),)
                yield Finding("two-devices", message, (*sender.path, "device"), why=why, fix=fix, related=made)
                break


def auto_several_gpus(context: Context) -> Iterator[Finding]:
    """``auto`` between actors with several GPUs each."""
    for sender in _senders(context):
        if sender.transport.kind != "auto":
            continue
        several = [actor for actor in _distinct(sender.actor, *sender.crossing) if actor.spec.num_gpus > 1]
        if several:
            has = " and ".join(f"{actor.name} has {actor.spec.num_gpus:g} GPUs" for actor in several)
            message = f"{sender.family.name} goes by auto, and {has}"
            why, fix = "Ray cannot choose a transport for an actor with several GPUs", "say accelerator or shm"
            made = _here(several, "num_gpus")
            yield Finding("auto-several-gpus", message, sender.path, why=why, fix=fix, related=made)


def overlap_unused(context: Context) -> Iterator[Finding]:
    """``engine.overlap`` with a collective, or with no accelerator edge to overlap."""
    if not context.spec.engine.overlap:
        return
    path: Path = ("engine", "overlap")
    if context.wiring.groups:
        name = next(iter(context.wiring.groups))
        message = f"overlap cannot be used with a collective ({name})"
        made = (Related(f"{name} is here", ("tasks", name), "key"),)
        why = "Ray refuses the two together"
        yield Finding("overlap", message, path, on="key", why=why, fix="remove overlap", related=made)
    elif not any(True for _ in _accelerated(context)):
        message = "overlap needs an edge that goes by accelerator, and there is none"
        yield Finding("overlap", message, path, on="key", fix="remove overlap")


def _distinct(*actors: ActorFamily) -> list[ActorFamily]:
    return list({actor.name: actor for actor in actors}.values())


RULES = (
    Rule("transport-input", transport_input),
    Rule("transport-unread", transport_unread),
    Rule("transport-unused", transport_unused, "graph"),
    Rule("transport-no-gpu", transport_no_gpu),
    Rule("transport-shared-gpu", transport_shared_gpu),
    Rule("transport-device", transport_device),
    Rule("two-devices", two_devices),
    Rule("auto-several-gpus", auto_several_gpus),
    Rule("overlap", overlap_unused),
)
