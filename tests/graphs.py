"""Builds small graphs by hand, for the tests of workers and engines: what ``expand`` makes, without a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgspec.graph import (
    Actor,
    Argument,
    ClassRef,
    Collective,
    Graph,
    Group,
    Input,
    InputRef,
    Pack,
    Ref,
    Task,
    TaskRef,
    Transport,
)
from cgspec.values import Literal, Value


def class_ref(text: str) -> ClassRef:
    """``dir/model.py:Stage`` or ``package.module:Class``."""
    where, _, name = text.partition(":")
    if where.endswith(".py"):
        return ClassRef("cgspec_user." + where[:-3].replace("/", "."), name, where)
    return ClassRef(where, name, None)


def value(data: Any) -> Value:
    return data if isinstance(data, Value) else Literal(data)


class Drawing:
    """A graph being drawn: actors, inputs and tasks in file order; ``in`` refers to names, bound in file order."""

    def __init__(self) -> None:
        self.actors: dict[str, dict[str, Any]] = {}
        self.inputs: list[str] = []
        self.tasks: list[Task] = []
        self.groups: list[Group] = []

    def actor(self, name: str, cls: str, *args: Any, **options: Any) -> Drawing:
        kwargs = options.pop("kwargs", {})
        self.actors[name] = {"cls": cls, "args": args, "kwargs": kwargs, **options}
        return self

    def input(self, *names: str) -> Drawing:
        self.inputs.extend(names)
        return self

    def ref(self, text: str) -> Ref:
        """``inputs.x``, ``task`` or ``task.return``; names may have dots."""
        if text.startswith("inputs."):
            return InputRef(self.inputs.index(text.removeprefix("inputs.")))
        names = [task.name for task in self.tasks]
        head, ret = (text, "") if text in names else text.rsplit(".", 1)
        number = names.index(head)
        return TaskRef(number, (self.tasks[number].returns or ()).index(ret) if ret else None)

    def task(
        self,
        name: str,
        call: str,
        args: Mapping[str, Any] | list[Any] | None = None,
        *,
        consts: Mapping[str, Any] | None = None,
        returns: tuple[str, ...] | None = None,
        transport: Transport | None = None,
        timeout: float | None = None,
    ) -> Drawing:
        actor, _, method = call.rpartition(".")
        entries = args.items() if isinstance(args, Mapping) else enumerate(args or [])
        self.tasks.append(
            Task(
                name=name,
                family=name,
                index=(),
                actor=list(self.actors).index(actor),
                method=method,
                collective=None,
                args=tuple(Argument(key, self._argument(what)) for key, what in entries),
                consts={key: value(what) for key, what in (consts or {}).items()},
                returns=returns,
                transport=transport,
                payload=None,
                timeout=timeout,
                path=("tasks", name),
            )
        )
        return self

    def collective(
        self,
        name: str,
        kind: Any,
        operands: list[str | list[str]],
        *,
        op: str | None = "sum",
        returns: tuple[str, ...] | None = None,
        transport: Transport | None = None,
    ) -> Drawing:
        """One group: per member its operand, or the list of its fused operands; member tasks are ``name.0`` and on."""
        first, group = len(self.tasks), len(self.groups)
        refs = [tuple(map(self.ref, said if isinstance(said, list) else [said])) for said in operands]
        for rank, read in enumerate(refs):
            assert isinstance(read[0], TaskRef)
            self.tasks.append(
                Task(
                    name=f"{name}.{rank}",
                    family=name,
                    index=(("tp", rank),),
                    actor=self.tasks[read[0].task].actor,
                    method=None,
                    collective=Collective(kind, None if kind == "allgather" else op, group, rank),
                    args=tuple(Argument(place, ref) for place, ref in enumerate(read)),
                    consts={},
                    returns=returns,
                    transport=transport,
                    payload=None,
                    timeout=None,
                    path=("tasks", name),
                )
            )
        self.groups.append(Group(name, tuple(range(first, len(self.tasks)))))
        return self

    def _argument(self, what: Any) -> Ref | Pack:
        return Pack(tuple(map(self.ref, what))) if isinstance(what, list) else self.ref(what)

    def graph(self, *outputs: Any, unread: tuple[str, ...] = (), bind: tuple[str, ...] | None = None) -> Graph:
        """The graph; tasks with ``returns=()`` are effects, ``unread`` names tasks (or ``task.return``) to drop."""
        names = [task.name for task in self.tasks]
        order = tuple(names.index(name) for name in bind) if bind else tuple(range(len(names)))
        dropped = tuple(ref for ref in map(self.ref, unread) if isinstance(ref, TaskRef))
        return Graph(
            name="drawn",
            actors=tuple(self._actor(number, name, order) for number, name in enumerate(self.actors)),
            inputs=tuple(Input(name, name, (), Literal(0), ("inputs", name)) for name in self.inputs),
            tasks=tuple(self.tasks),
            bind=order,
            outputs=tuple((place, self._argument(what)) for place, what in enumerate(outputs)),
            output_form="list",
            groups=tuple(self.groups),
            effects=tuple(number for number, task in enumerate(self.tasks) if task.returns == ()),
            unread=tuple((ref.task, ref.ret) for ref in dropped),
        )

    def _actor(self, number: int, name: str, order: tuple[int, ...]) -> Actor:
        what = self.actors[name]
        return Actor(
            name=name,
            family=name.partition(".")[0],
            index=(),
            class_ref=class_ref(what["cls"]),
            args=tuple(map(value, what["args"])),
            kwargs={key: value(item) for key, item in what["kwargs"].items()},
            num_cpus=what.get("num_cpus", 0),
            num_gpus=what.get("num_gpus", 0),
            memory=what.get("memory"),
            accelerator_type=None,
            resources=what.get("resources", {}),
            options={key: value(item) for key, item in what.get("options", {}).items()},
            env={key: value(item) for key, item in what.get("env", {}).items()},
            process_group=what.get("process_group", False),
            same_node=(),
            tasks=tuple(task for task in order if self.tasks[task].actor == number),
            path=("actors", name),
        )
