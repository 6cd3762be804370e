"""A graph laid out for execution: what each actor's worker does, step by step, and how the steps are bound together.

A *step* is one call into a worker; most are a task, some forward a task's result to readers that must not share its
transport. A *port* is one value that a step hands out. Engines bind the steps in ``Layout.binds`` order, hand every
step the values of its ``reads`` by position, and look nowhere else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cgspec.graph import Collective, InputRef, Transport
from cgspec.values import Value


@dataclass(frozen=True)
class Whole:
    """Several values that arrive as one: a ``list``, or the ``tuple`` of a multi-return that is read whole."""

    kind: Literal["list", "tuple"]
    parts: tuple[int | Whole, ...]


Take = int | Whole
"""Where an argument comes from: the place among the values that a step is handed, or several."""


@dataclass(frozen=True)
class Call:
    """A step that calls the user's method.

    Attributes:
        task: index into ``graph.tasks``.
        arguments: (parameter's name or position, where its value comes from).
        arrived: places among what it is handed that come from other processes.
        returns: None for a single result, 0 for an effect, else the number of values of a multi-return.
        names: the names of a multi-return.
        ports: what the step hands out, as indices of returns; None is the whole result, ``()`` nothing but "done".
        travels: whether a result leaves the process, and so must be picklable.
        strict: whether the transport carries tensors only, so that a failure has to be raised.
    """

    task: int
    name: str
    method: str
    arguments: tuple[tuple[str | int, Take], ...]
    arrived: tuple[int, ...]
    consts: Mapping[str, Value]
    returns: int | None
    names: tuple[str, ...]
    ports: tuple[int | None, ...]
    travels: bool
    strict: bool


@dataclass(frozen=True)
class Forward:
    """A step that hands on a result of its own actor: ``ret`` of a multi-return, or (None) all of it.

    Attributes:
        host: whether tensors are copied to the host first, for the driver.
        travels, strict: as in ``Call``.
    """

    task: int
    name: str
    ret: int | None
    host: bool
    travels: bool
    strict: bool


@dataclass(frozen=True)
class Enter:
    """A step with which a member comes to a collective: it hands over its operands, one per port.

    Attributes:
        collective: what is done; ``operands``: on how many values.
        size: how many members the group has.
        strict: whether a failure has to be raised: what is handed over is tensors.
    """

    task: int
    name: str
    collective: Collective
    operands: int
    size: int
    strict: bool


@dataclass(frozen=True)
class Leave:
    """A step with which a member leaves a collective, with what it has got.

    Attributes:
        names, ports, travels, strict: as in ``Call``; a fused collective has names.
    """

    task: int
    name: str
    names: tuple[str, ...]
    ports: tuple[int | None, ...]
    travels: bool
    strict: bool


@dataclass(frozen=True)
class Link:
    """One step of a chain; what the chain is handed and what its links hand out are places in one list.

    Attributes:
        step: index into the actor's steps.
        reads: places of what it is handed; ``ports``: how many values it hands out, which take the next places.
        drops: places that nobody needs after it.
    """

    step: int
    reads: tuple[int, ...]
    ports: int
    drops: tuple[int, ...]


@dataclass(frozen=True)
class Chain:
    """Steps that are one call; see ``fusion``.

    Attributes:
        task: of its last step.
        ports: places of what it hands out.
    """

    task: int
    links: tuple[Link, ...]
    ports: tuple[int, ...]


Step = Call | Forward | Enter | Leave
"""A step of one task."""


@dataclass(frozen=True)
class FromInput:
    """Reads ``graph.inputs[input]``; None is the hidden trigger of a step that has nothing to read."""

    input: int | None


@dataclass(frozen=True)
class FromPort:
    """Reads a port of ``binds[bind]``."""

    bind: int
    port: int


Source = FromInput | FromPort


@dataclass(frozen=True)
class Bind:
    """One step in its place in the graph, or what a collective does between a member's ``Enter`` and ``Leave``.

    Attributes:
        actor: index into ``graph.actors``; ``step``: index into ``Layout.steps[actor]``.
        ports: how many values it hands out, at least one.
        transport: how they travel to other actors; None: through host memory.
        group: index into ``graph.groups`` of the collective that the engine itself executes here; ``step`` is then -1.
    """

    actor: int
    step: int
    task: int
    reads: tuple[Source, ...]
    ports: int
    transport: Transport | None
    group: int | None = None


@dataclass(frozen=True)
class Layout:
    """A graph, ready to be executed.

    Attributes:
        steps: by actor, in the order in which it runs them; then its chains.
        binds: in binding order.
        reads: what the driver reads, each once; those beyond the outputs are awaited and dropped.
        outputs: per ref of ``graph.output_refs``, where it comes from: a graph input, or places in ``reads``.
        meetings: group to the places in ``binds`` of its collective, by rank; not for groups of one.
    """

    steps: tuple[tuple[Step | Chain, ...], ...]
    binds: tuple[Bind, ...]
    reads: tuple[FromPort, ...]
    outputs: tuple[InputRef | Take, ...]
    meetings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


Run = Callable[[tuple[object, ...]], object]
"""What a worker does with the values that a step reads; it returns what the step hands out."""


def pick(take: Take, values: list[object] | tuple[object, ...]) -> object:
    """The argument that ``take`` says, from the values that arrived."""
    if isinstance(take, int):
        return values[take]
    parts = [pick(part, values) for part in take.parts]
    return parts if take.kind == "list" else tuple(parts)


def sources_of(layout: Layout) -> dict[int, tuple[int, ...]]:
    """Per task, the tasks whose results it waits for; for the wait-for chain."""
    found: dict[int, list[int]] = defaultdict(list)
    for bind in layout.binds:
        for source in bind.reads:
            if isinstance(source, FromPort) and layout.binds[source.bind].task != bind.task:
                found[bind.task].append(layout.binds[source.bind].task)
    return {task: tuple(dict.fromkeys(tasks)) for task, tasks in found.items()}
