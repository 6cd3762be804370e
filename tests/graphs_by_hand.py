"""Builds frozen graphs by hand, in few words, for tests of what only reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from cgspec.graph import (
    Actor,
    Argument,
    ClassRef,
    Collective,
    Graph,
    Group,
    Index,
    Input,
    InputRef,
    Pack,
    Payload,
    Ref,
    Task,
    TaskRef,
    Transport,
)
from cgspec.values import Literal as Plain

Flow = Ref | Sequence[Ref]


def at(**axes: int) -> Index:
    """An index: ``at(pp=0, mb=3)``."""
    return tuple(axes.items())


def _name(family: str, index: Index) -> str:
    return ".".join((family, *(str(place) for _, place in index)))


def _value(flow: Flow) -> Ref | Pack:
    return flow if isinstance(flow, InputRef | TaskRef) else Pack(tuple(flow))


class Sketch:
    """A graph in the making; every method hands back the reference or number that later calls take."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.actors: list[dict[str, Any]] = []
        self.inputs: list[Input] = []
        self.tasks: list[Task] = []
        self.groups: list[Group] = []
        self.outputs: list[tuple[str | int, Ref | Pack]] = []
        self.order: dict[int, list[int]] = {}

    def actor(self, family: str, index: Index = (), cls: str = "model.py:Stage", gpus: float = 0) -> int:
        file, name = cls.split(":")
        self.actors.append(
            {
                "name": _name(family, index),
                "family": family,
                "index": index,
                "class_ref": ClassRef("cgspec_user", name, file),
                "num_gpus": gpus,
                "path": ("actors", family),
            }
        )
        return len(self.actors) - 1

    def input(self, family: str, index: Index = (), value: object = 1) -> InputRef:
        self.inputs.append(Input(_name(family, index), family, index, Plain(value), ("inputs", family)))
        return InputRef(len(self.inputs) - 1)

    def task(
        self,
        family: str,
        actor: int,
        method: str | None = None,
        index: Index = (),
        *,
        reads: Mapping[Any, Flow] | None = None,
        consts: Mapping[str, object] | None = None,
        returns: tuple[str, ...] | None = None,
        transport: Literal["auto", "accelerator", "shm"] | Transport | None = None,
        payload: Payload | None = None,
        collective: Collective | None = None,
    ) -> TaskRef:
        self.tasks.append(
            Task(
                name=_name(family, index),
                family=family,
                index=index,
                actor=actor,
                method=None if collective else method or family,
                collective=collective,
                args=tuple(Argument(name, _value(flow)) for name, flow in (reads or {}).items()),
                consts={name: Plain(value) for name, value in (consts or {}).items()},
                returns=returns,
                transport=Transport(transport) if isinstance(transport, str) else transport,
                payload=payload,
                timeout=None,
                path=("tasks", family),
            )
        )
        self.order.setdefault(actor, []).append(len(self.tasks) - 1)
        return TaskRef(len(self.tasks) - 1)

    def allreduce(self, family: str, members: Sequence[tuple[int, Index, Ref]], **kwargs: Any) -> list[TaskRef]:
        """One sum over ``members``: (actor, index, operand), by rank."""
        number = len(self.groups)
        refs = [
            self.task(
                family,
                actor,
                None,
                index,
                reads={0: ref},
                collective=Collective("allreduce", "sum", number, rank),
                **kwargs,
            )
            for rank, (actor, index, ref) in enumerate(members)
        ]
        self.groups.append(Group(family, tuple(ref.task for ref in refs)))
        return refs

    def output(self, name: str | int, flow: Flow) -> None:
        self.outputs.append((name, _value(flow)))

    def graph(
        self,
        form: Literal["single", "list", "map"] = "map",
        *,
        unread: tuple[tuple[int, int | None], ...] = (),
        order: Mapping[int, Sequence[int]] | None = None,
    ) -> Graph:
        """Freezes it; ``order``: what each actor runs, where that is not the order in which it was sketched."""
        rest: dict[str, Any] = {"args": (), "kwargs": {}, "num_cpus": 1.0, "resources": {}, "options": {}, "env": {}}
        rest |= {"memory": None, "accelerator_type": None, "process_group": False, "same_node": ()}
        order = order or self.order
        actors = tuple(Actor(**rest, **known, tasks=tuple(order.get(n, ()))) for n, known in enumerate(self.actors))
        return Graph(
            name=self.name,
            actors=actors,
            inputs=tuple(self.inputs),
            tasks=tuple(self.tasks),
            bind=self._bind(order),
            outputs=tuple(self.outputs),
            output_form=form,
            groups=tuple(self.groups),
            effects=tuple(number for number, task in enumerate(self.tasks) if task.returns == ()),
            unread=unread,
        )

    def _bind(self, order: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
        """A topological order of data edges and each actor's order, a group's members next to each other."""
        before: dict[int, set[int]] = {number: set() for number in range(len(self.tasks))}
        for tasks in order.values():
            for earlier, later in pairwise(tasks):
                before[later].add(earlier)
        for number, task in enumerate(self.tasks):
            before[number] |= {ref.task for a in task.args for ref in a.refs if isinstance(ref, TaskRef)}
        bound: dict[int, None] = {}
        while len(bound) < len(self.tasks):
            size = len(bound)
            for number, task in enumerate(self.tasks):
                vertex = self.groups[task.collective.group].members if task.collective else (number,)
                if number not in bound and all(before[member] <= bound.keys() for member in vertex):
                    bound |= dict.fromkeys(vertex)
            assert len(bound) > size, "a cycle in a sketch"
        return tuple(bound)


def send_recv() -> Graph:
    """examples/send_recv.yaml with a payload: two GPUs, one tensor."""
    sketch = Sketch("send-recv")
    sender = sketch.actor("sender", cls="actors.py:Tensors", gpus=1)
    receiver = sketch.actor("receiver", cls="actors.py:Tensors", gpus=1)
    reads = {name: sketch.input(name) for name in ("shape", "dtype", "value")}
    size = Payload(8 << 20, (2048, 2048), "float16")
    send = sketch.task("send", sender, reads=reads, transport="accelerator", payload=size)
    sketch.output("recv", sketch.task("recv", receiver, reads={"tensor": send}))
    return sketch.graph("single")


def kinds() -> Graph:
    """One of everything else: a multi-return with a dropped return, effects, an unread task, auto, shm, constants."""
    sketch = Sketch("kinds")
    enc = sketch.actor("enc", cls="model.py:Encoder")
    dec = sketch.actor("dec", cls="model.py:Decoder")
    log = sketch.actor("log", cls="tools.py:Log")
    x = sketch.input("x")
    part = sketch.task("part", enc, "split", reads={"x": x}, returns=("hidden", "mask", "aux"), consts={"scale": 2})
    hidden, mask = TaskRef(part.task, 0), TaskRef(part.task, 1)
    join = sketch.task("join", dec, reads={"hidden": hidden, "mask": mask}, transport="auto")
    gather = sketch.task("gather", dec, "collect", reads={"items": [part, join]})
    sketch.task("write", log, "append", reads={"row": join}, returns=())
    peek = sketch.task("peek", log, reads={"row": join})
    sketch.task("tick", log, consts={"every": 10}, returns=())
    sketch.output("loss", gather)
    sketch.output("mask", mask)
    sketch.output("same", x)
    return sketch.graph(unread=((part.task, 2), (peek.task, None)))


def tp_pp(pp: int = 2, tp: int = 2) -> Graph:
    """examples/tp_pp.yaml: tensor-parallel members inside pipeline stages."""
    sketch = Sketch("tp-pp")
    x = sketch.input("x")
    places = [at(pp=p, tp=t) for p in range(pp) for t in range(tp)]
    actors = {place: sketch.actor("stage", place, gpus=1) for place in places}
    part: dict[Index, TaskRef] = {}
    total: dict[Index, TaskRef] = {}
    hop: dict[Index, TaskRef] = {}
    norm: dict[Index, TaskRef] = {}
    for p in range(pp):
        row = places[p * tp : (p + 1) * tp]
        for place in row:
            above = hop[places[places.index(place) - tp]] if p else x
            part[place] = sketch.task("part", actors[place], "forward", place, reads={"x": above})
        total |= zip(row, sketch.allreduce("total", [(actors[r], r, part[r]) for r in row]), strict=True)
        for place in row:
            size = Payload(4 << 20, (2048, 1024), "bfloat16")
            reads = {"x": total[place]}
            hop[place] = sketch.task(
                "hop", actors[place], "hand_off", place, reads=reads, transport="accelerator", payload=size
            )
        for place in row:
            norm[place] = sketch.task("norm", actors[place], "norm", place, reads={"x": hop[place]})
    sketch.output("norms", list(norm.values()))
    return sketch.graph()


def one_f_one_b(pp: int = 2, mb: int = 4) -> Graph:
    """examples/1f1b.yaml: a training schedule; the order of each stage comes from slots."""
    sketch = Sketch("1f1b")
    xs = [sketch.input("x", at(mb=m)) for m in range(mb)]
    ys = [sketch.input("y", at(mb=m)) for m in range(mb)]
    stages = [sketch.actor("stage", at(pp=p), "train.py:Stage", 1) for p in range(pp)]
    slots: dict[int, int] = {}
    above: list[Ref] = list(xs)
    for p in range(pp):
        for m in range(mb):
            reads = {"x": above[m]}
            fwd = sketch.task("fwd", stages[p], "forward", at(pp=p, mb=m), reads=reads, transport="accelerator")
            above[m], slots[fwd.task] = fwd, 2 * m + p
    losses = []
    for m in range(mb):
        losses.append(sketch.task("loss", stages[-1], "loss", at(mb=m), reads={"logits": above[m], "y": ys[m]}))
        slots[losses[m].task] = 2 * m + pp - 1
    first = len(sketch.tasks)
    for p in range(pp):
        for m in range(mb):
            grad = {"grad": losses[m] if p == pp - 1 else TaskRef(first + (p + 1) * mb + m)}
            bwd = sketch.task("bwd", stages[p], "backward", at(pp=p, mb=m), reads=grad, transport="accelerator")
            slots[bwd.task] = 2 * m + 2 * pp - 1 - p
    for p in range(pp):
        step = sketch.task("step", stages[p], "step", at(pp=p), returns=())
        slots[step.task] = 2 * mb + 2 * pp
    sketch.output("loss", losses)
    order = {actor: sorted(tasks, key=lambda task: slots[task]) for actor, tasks in sketch.order.items()}
    return sketch.graph(order=order)
