"""The frozen graph: every actor member, input, task instance, edge and order, valid by construction.

Built by ``expand`` from a spec without errors, and only there. Engines, views and the run read it; nobody changes it.
Instances are named everywhere as family, then indices in axis order, with dots: task ``fwd.0.2``, actor ``stage.0``,
input ``inputs.x.2``. Every instance keeps the YAML path of the entry that it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from cgspec.classes import ClassRef as ClassRef
from cgspec.values import Value

Path = tuple[str | int, ...]
"""Keys and indices from the top of the YAML document, e.g. ``("tasks", "recv", "in", "tensor")``."""

Index = tuple[tuple[str, int], ...]
"""The place of a member: (axis, index) pairs in axis order."""


@dataclass(frozen=True, slots=True)
class InputRef:
    """Reads ``graph.inputs[input]``."""

    input: int


@dataclass(frozen=True, slots=True)
class TaskRef:
    """Reads ``graph.tasks[task]``: one return of a multi-return task, or (``ret`` None) its whole result.

    The whole result of a multi-return task is a tuple of its returns.
    """

    task: int
    ret: int | None = None


Ref = InputRef | TaskRef


@dataclass(frozen=True, slots=True)
class Pack:
    """Several references that arrive as one list."""

    items: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument that flows: ``name`` is the parameter's name, or its position."""

    name: str | int
    value: Ref | Pack

    @property
    def refs(self) -> tuple[Ref, ...]:
        return self.value.items if isinstance(self.value, Pack) else (self.value,)


@dataclass(frozen=True, slots=True)
class Transport:
    """How a task's result travels to tasks of other actors."""

    kind: Literal["auto", "accelerator", "shm"]
    device: str = "default"
    static_shape: bool = False
    direct_return: bool = False


@dataclass(frozen=True, slots=True)
class Collective:
    """What a task does when it is a member of a collective.

    Attributes:
        kind: the collective operation.
        op: the reduction (``sum``, ``product``, ``max``, ``min``, ``avg``); None for allgather.
        group: index into ``graph.groups``.
        rank: this member's place in the group.
    """

    kind: Literal["allreduce", "allgather", "reducescatter"]
    op: str | None
    group: int
    rank: int


@dataclass(frozen=True, slots=True)
class Payload:
    """The declared size of one result: ``bytes``, and shape and dtype where they were given."""

    bytes: int
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """One actor member.

    Attributes:
        args: constructor arguments by position; ``kwargs``: by name. ``$index`` and ``$size`` are already filled in.
        num_cpus, num_gpus, memory (bytes), accelerator_type, resources, options: what Ray is asked for.
        env: environment variables of the actor's process.
        process_group: whether the torch.distributed variables are set before the constructor runs.
        same_node: axes whose members share a node.
        tasks: indices into ``graph.tasks`` in the order in which this member executes them.
    """

    name: str
    family: str
    index: Index
    class_ref: ClassRef
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    num_cpus: float
    num_gpus: float
    memory: int | None
    accelerator_type: str | None
    resources: Mapping[str, float]
    options: Mapping[str, Value]
    env: Mapping[str, Value]
    process_group: bool
    same_node: tuple[str, ...]
    tasks: tuple[int, ...]
    path: Path

    @property
    def bundle(self) -> tuple[str, Index]:
        """What is equal for the members that must share a node: its name, or its family and its other axes."""
        if not self.same_node:
            return self.name, ()
        return self.family, tuple(entry for entry in self.index if entry[0] not in self.same_node)


@dataclass(frozen=True, slots=True)
class Input:
    """One input instance: a named value that the driver sends in each iteration."""

    name: str
    family: str
    index: Index
    value: Value
    path: Path


@dataclass(frozen=True, slots=True)
class Task:
    """One task instance: one method call, or one member of a collective.

    Attributes:
        actor: index into ``graph.actors``.
        method: the user's method; None for a collective.
        args: what flows, in the order in which the spec says it (for a collective: its operands, by position).
        consts: constants by parameter name.
        returns: None for a single result, ``()`` for a task called for its effect, else the names of a multi-return.
        payload: by return where there are several, else one entry; empty when nothing was declared.
        timeout: seconds that this task may take, where the spec says so.
    """

    name: str
    family: str
    index: Index
    actor: int
    method: str | None
    collective: Collective | None
    args: tuple[Argument, ...]
    consts: Mapping[str, Value]
    returns: tuple[str, ...] | None
    transport: Transport | None
    payload: Payload | None
    timeout: float | None
    path: Path

    @property
    def label(self) -> str:
        """What is called, for people: the method, or the collective and its operation."""
        if self.collective is None:
            return self.method or ""
        return self.collective.kind + (f" {self.collective.op}" if self.collective.op else "")


@dataclass(frozen=True, slots=True)
class Group:
    """The members of one collective, by rank: indices into ``graph.tasks``."""

    family: str
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One reference from a producer to an argument of a task.

    Attributes:
        source: what is read.
        to: index into ``graph.tasks``.
        arg: the parameter's name, or its position.
        in_list: whether it is part of a list argument.
        crosses: whether producer and reader are on different actors (edges from inputs do not count).
    """

    source: Ref
    to: int
    arg: str | int
    in_list: bool
    crosses: bool


@dataclass(frozen=True)
class Graph:
    """Everything that an engine needs to know.

    Attributes:
        tasks: all task instances, in (file order, row-major).
        bind: indices into ``tasks`` in binding order, a collective's members next to each other.
        outputs: (name or position, what it reads); a gathered family in a map is one list.
        output_form: ``single`` (one reference), ``list`` or ``map``.
        effects: tasks that are called for their effect; ``unread``: (task, return) pairs that are awaited and dropped,
            the return None where it is the task's whole single result.
        placement: how actors spread over nodes: ``PACK``, ``SPREAD``, ``STRICT_PACK`` or ``STRICT_SPREAD``, as in Ray.
    """

    name: str
    actors: tuple[Actor, ...]
    inputs: tuple[Input, ...]
    tasks: tuple[Task, ...]
    bind: tuple[int, ...]
    outputs: tuple[tuple[str | int, Ref | Pack], ...]
    output_form: Literal["single", "list", "map"]
    groups: tuple[Group, ...]
    effects: tuple[int, ...]
    unread: tuple[tuple[int, int | None], ...]
    placement: str = "PACK"

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge between inputs and tasks, in task and argument order."""
        return tuple(self._edges())

    def _edges(self) -> Iterator[Edge]:
        for number, task in enumerate(self.tasks):
            for argument in task.args:
                in_list = isinstance(argument.value, Pack)
                for ref in argument.refs:
                    crosses = isinstance(ref, TaskRef) and self.tasks[ref.task].actor != task.actor
                    yield Edge(ref, number, argument.name, in_list, crosses)

    @cached_property
    def output_refs(self) -> tuple[Ref, ...]:
        """Every reference of the outputs, in order, gathered lists spliced."""
        return tuple(ref for _, value in self.outputs for ref in (value.items if isinstance(value, Pack) else (value,)))

    def source_name(self, ref: Ref) -> str:
        """The name of what a reference reads, without the return: ``inputs.x.0`` or ``fwd.0.2``."""
        return f"inputs.{self.inputs[ref.input].name}" if isinstance(ref, InputRef) else self.tasks[ref.task].name

    def return_name(self, ref: Ref) -> str | None:
        """The name of the return that a reference reads, if it reads one."""
        if isinstance(ref, InputRef) or ref.ret is None:
            return None
        return (self.tasks[ref.task].returns or ())[ref.ret]
