"""Small graphs and jobs made by hand, for tests of what happens after ``check``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import yaml

from cgspec.graph import Actor, Argument, ClassRef, Graph, Input, InputRef, Pack, Ref, Task, TaskRef
from cgspec.parsing import ValueReader
from cgspec.running import Job, Result
from cgspec.spec import Spec
from cgspec.values import FunctionRef, Value

ACTORS = """
import time


class Counter:
    def __init__(self, start=0):
        self.total = start

    def add(self, x):
        self.total += x
        return self.total

    def double(self, x):
        return 2 * x

    def echo(self, x):
        return x

    def fail_at(self, x, at):
        if x in (at if isinstance(at, list) else [at]):
            raise ValueError(f"no {x} please")
        return x

    def nap(self, x, seconds):
        time.sleep(seconds)
        return x

    def reset(self, total=0):
        self.total = total


def batch(n):
    return [n, n * n]


def broken(n):
    raise RuntimeError("no data")


def leave(n):
    raise SystemExit(3)
"""


def function(text: str, path: tuple[str | int, ...]) -> FunctionRef:
    """``actors.py:batch`` as the spec's reader has it."""
    file, name = text.split(":")
    return FunctionRef("cgspec_user." + file.removesuffix(".py"), name, file)


def reader(**variables: Value) -> ValueReader:
    return ValueReader(variables, function)


def actor(name: str, tasks: tuple[int, ...], **more: Any) -> Actor:
    family, *places = name.split(".")
    given: dict[str, Any] = {
        "name": name,
        "family": family,
        "index": tuple((f"axis{n}", int(place)) for n, place in enumerate(places)),
        "class_ref": ClassRef("cgspec_user.actors", "Counter", "actors.py"),
        "args": (),
        "kwargs": {},
        "num_cpus": 1.0,
        "num_gpus": 0.0,
        "resources": {},
        "options": {},
        "env": {},
        "process_group": False,
        "same_node": (),
        "tasks": tasks,
        "path": ("actors", family),
        "memory": None,
        "accelerator_type": None,
    }
    return Actor(**(given | more))


def task(name: str, actor: int, method: str, reads: dict[str, Ref | Pack], **more: Any) -> Task:
    family, *places = name.split(".")
    given: dict[str, Any] = {
        "name": name,
        "family": family,
        "index": tuple((f"axis{n}", int(place)) for n, place in enumerate(places)),
        "actor": actor,
        "method": method,
        "collective": None,
        "args": tuple(Argument(parameter, value) for parameter, value in reads.items()),
        "consts": {},
        "returns": None,
        "transport": None,
        "payload": None,
        "timeout": None,
        "path": ("tasks", family),
    }
    return Task(**(given | more))


def graph(
    inputs: dict[str, Any],
    actors: list[Actor],
    tasks: list[Task],
    outputs: list[tuple[str | int, Ref | Pack]],
    form: str = "single",
    **more: Any,
) -> Graph:
    read = reader()
    made = tuple(
        Input(name, name.split(".")[0], _index(name), read.read(data, ("inputs", name)), ("inputs", name.split(".")[0]))
        for name, data in inputs.items()
    )
    assert not read.findings, read.findings
    given: dict[str, Any] = {"groups": (), "effects": (), "unread": (), "bind": tuple(range(len(tasks)))}
    return Graph(
        name="small",
        actors=tuple(actors),
        inputs=made,
        tasks=tuple(tasks),
        outputs=tuple(outputs),
        output_form=form,  # type: ignore[arg-type]
        **(given | more),
    )


def _index(name: str) -> tuple[tuple[str, int], ...]:
    return tuple((f"axis{n}", int(place)) for n, place in enumerate(name.split(".")[1:]))


def fan(x: Any = None, **more: Any) -> Graph:
    """Two senders, one receiver: outputs [x doubled, x echoed], ``{"$expr": "i"}`` by default."""
    actors = [actor("sender.0", (0,)), actor("sender.1", (1,)), actor("receiver", (2, 3))]
    tasks = [
        task("double", 0, "double", {"x": InputRef(0)}),
        task("same", 1, "echo", {"x": InputRef(0)}),
        task("left", 2, "echo", {"x": TaskRef(0)}),
        task("right", 2, "echo", {"x": TaskRef(1)}),
    ]
    outputs: list[tuple[str | int, Ref | Pack]] = [(0, TaskRef(2)), (1, TaskRef(3))]
    return graph({"x": {"$expr": "i"} if x is None else x}, actors, tasks, outputs, "list", **more)


def one(method: str, x: Any, consts: dict[str, Any] | None = None) -> Graph:
    """One actor, one task ``work`` of one input ``x``, which is the single output."""
    read = reader()
    values = {name: read.read(data, ()) for name, data in (consts or {}).items()}
    tasks = [task("work", 0, method, {"x": InputRef(0)}, consts=values)]
    return graph({"x": x}, [actor("only", (0,))], tasks, [("work", TaskRef(0))])


def spec(**sections: Any) -> Spec:
    """A spec with the sections that a run reads; engine ``local``."""
    given = {"cgspec": 1, "actors": {"a": {"class": "actors.py:Counter"}}, "tasks": {}, "engine": "local"}
    return Spec.model_validate(given | sections)


def job(graph: Graph, root: Path, *, resolved: dict[str, Any] | None = None, **sections: Any) -> Job:
    """A job of a hand-made graph, whose actors are in ``root/actors.py``, with its runs in ``root/runs``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "actors.py").write_text(ACTORS)
    raw: dict[str, Any] = {"cgspec": 1, "name": graph.name, "engine": "local", **sections} | (resolved or {})
    return Job(
        spec=spec(**sections),
        graph=graph,
        read=reader().read,
        root=root,
        text=yaml.safe_dump(raw, sort_keys=False),
        resolved=raw,
        file="small.yaml",
        locate=lambda path: ("small.yaml", {"tasks": 20, "expect": 30, "inputs": 10}.get(str(path[0]), 1), 5),
        out=root / "runs",
    )


def samples(result: Result) -> list[dict[str, str]]:
    """The rows of ``samples.csv``."""
    with (result.run_dir / "samples.csv").open() as file:
        return list(csv.DictReader(file))
