"""Every engine gives what plain Python gives: random graphs and inputs, several iterations, their order kept."""

from __future__ import annotations

import collections
import copy
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import ray
from engines_running import ROOT, options
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from naive import Stuck
from plain import Plain, TooMuch
from random_specs import Maker, Shell

from cgspec.checking import check
from cgspec.engines import ENGINES, Engine, Phase
from cgspec.engines.local import LocalEngine
from cgspec.feed import Feed
from cgspec.fusion import fuse, fused_tasks
from cgspec.graph import Graph, Transport
from cgspec.outputs import assemble
from cgspec.routes import routes_of

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
METHODS = {None: "run", 2: "pair", 0: "effect"}
FIRST = 5


@dataclass
class Case:
    """One graph to be executed, and what plain Python makes of it."""

    graph: Graph
    expected: list[list[Any]]
    inflight: int


class FewActors(Maker):
    """Specs over the same few actors, so that live actors can take over one graph after the other."""

    def hire(self) -> None:
        self.sizes = {"a": 2, "b": 2, "c": 2, "mb": 2}
        families = {"w0": {"a": 2}, "w1": {"b": 2}, "w2": {}}
        self.actors = {
            name: {"class": "equal.py:Part", "num_gpus": 1, **({"axes": axes} if axes else {})}
            for name, axes in families.items()
        }

    def call(self, name: str) -> Shell:
        """More multi-returns than elsewhere: fused collectives need them."""
        shell = super().call(name)
        if shell.returns is None and self.chance(40):
            shell.returns = shell.spec["returns"] = ["u", "v"]
        return shell


def enlivened(maker: Maker, spec: dict[str, Any]) -> tuple[dict[str, Any], Any, int]:
    """The spec with methods, constants, reductions and changing inputs; the inputs in plain Python; and the lag."""
    lively = copy.deepcopy(spec)
    constants, ops = {}, {}
    for name, task in lively["tasks"].items():
        if "call" in task:
            returns = task.get("returns")
            head, _ = task["call"].rsplit(".", 1)
            task["call"] = f"{head}.{METHODS[None if returns is None else len(returns)]}"
            if maker.chance(40):
                constants[name] = task.setdefault("with", {})["k"] = maker.whole(1, 9)
        elif "allgather" not in task:
            ops[name] = task["op"] = maker.one_of(("sum", "product", "max", "min", "avg"))
    lag = maker.whole(1, 2) if isinstance(spec["outputs"], dict) and "o0" in spec["outputs"] else 0
    lively["inputs"]["x"] = {"$feedback": "o0", "lag": lag, "first": FIRST} if lag else {"$expr": "7 * i + 1"}
    if "y" in spec["inputs"]:
        axes = spec["inputs"]["y"]["axes"]
        lively["inputs"]["y"] = {"$each": {"$expr": " + ".join(["3 * i", *(f"index.{a}" for a in axes)])}, "axes": axes}

    def given(i: int, past: list[dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {"inputs.x": 7 * i + 1}
        if lag:
            found["inputs.x"] = FIRST if i < lag else past[i - lag]["o0"]
        for place in np.ndindex(*spec["inputs"]["y"]["axes"].values()) if "y" in spec["inputs"] else ():
            found[".".join(["inputs.y", *map(str, place)])] = 3 * i + sum(place)
        return found

    return lively, Plain(spec, constants, ops, given), lag


def case(maker: Maker, *, iterations: int) -> Case:
    """Draws a case; gives up on what cannot be executed at all."""
    spec = maker.spec()
    for actor in spec["actors"].values():
        actor["class"] = "equal.py:Part"
    try:
        lively, plain, lag = enlivened(maker, spec)
        expected = [plain.iteration() for _ in range(iterations)]
    except (Stuck, TooMuch):
        assume(False)
        raise
    checked = check(ROOT / "random.yaml", raw=json.dumps(lively))
    assert checked.graph is not None, [finding.message for finding in checked.errors]
    return Case(checked.graph, expected, maker.whole(1, min(lag or 3, 3)))


@st.composite
def cases(draw: Any, make: type[Maker] = Maker, iterations: int = 4) -> Case:
    return case(make(draw), iterations=iterations)


def execute(engine: Engine, case: Case) -> None:
    """Runs all iterations, ``inflight`` of them under way, and compares each of them."""
    graph, feed = case.graph, Feed(case.graph)
    engine.begin(Phase("measure", len(case.expected)))
    sent = 0
    for i, expected in enumerate(case.expected):
        while sent < min(len(case.expected), i + case.inflight):
            inputs = feed.make(sent)
            feed.complete(sent, inputs)
            engine.submit(inputs)
            sent += 1
        fetched = engine.fetch()
        assert fetched.error is None, fetched.error
        assert same(fetched.values, expected), (i, fetched.values, expected)
        feed.remember(i, assemble(graph, fetched.values))
    times = engine.end().times
    assert all(len(task.start) == len(case.expected) for task in times)


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, (list, tuple)):
        alike = isinstance(found, (list, tuple)) and len(found) == len(expected)
        return alike and all(map(same, found, expected))
    if isinstance(expected, int):
        return bool(found == expected)
    return found.dtype.is_signed and np.array_equal(np.asarray(found), expected)


@settings(max_examples=300, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
@given(cases())
def test_local_agrees_with_plain_python(case: Case) -> None:
    engine = ENGINES["local"](case.graph, options("local", inflight=case.inflight))
    try:
        engine.place()
        engine.compile()
        execute(engine, case)
    finally:
        engine.teardown()


def test_fused_layouts_agree_with_plain_python() -> None:
    """In this process, so that many are compared: an engine executes a layout, whatever its chains."""
    chains: collections.Counter[int] = collections.Counter()

    @settings(max_examples=300, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(cases(FewActors))
    def look(case: Case) -> None:
        engine = LocalEngine(case.graph, options("local", inflight=case.inflight))
        engine.layout = fuse(engine.layout)
        chains.update(len(chain) for chain in fused_tasks(engine.layout))
        try:
            engine.place()
            execute(engine, case)
        finally:
            engine.teardown()

    look()
    assert chains[2] > 50
    assert any(length > 2 for length in chains)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def sending(graph: Graph) -> Graph:
    """The graph with a transport on two tasks of three."""
    direct = Transport("accelerator")
    tasks = [
        dataclasses.replace(task, transport=direct if number % 3 else None) for number, task in enumerate(graph.tasks)
    ]
    return dataclasses.replace(graph, tasks=tuple(tasks))


@dataclass
class Reused:
    """One engine whose actors execute one case after the other; each graph finds new objects."""

    kind: str
    fuse: bool
    short_loop: bool
    engine: Engine | None = None
    cases: int = 0
    fused: int = 0
    sent: int = 0

    def execute(self, case: Case) -> None:
        engine = {"fuse": self.fuse, "short_loop": self.short_loop}
        given = options(self.kind, inflight=case.inflight, rehearse=True, engine=engine)
        if self.kind == "direct":
            case = dataclasses.replace(case, graph=sending(case.graph))
        if self.engine is None or (not self.sent and routes_of(case.graph, rehearse=True)):
            self.end()  # the actors of graphs in which nothing is sent directly are not made for it
            self.engine = ENGINES[self.kind](case.graph, given)
            self.engine.place()
        else:
            assert self.engine.renew(case.graph, given, fresh=True)
        self.engine.compile()
        execute(self.engine, case)
        self.cases += 1
        self.sent += bool(routes_of(case.graph, rehearse=True))
        self.fused += bool(self.engine.fused)

    def end(self) -> None:
        if self.engine is not None:
            self.engine.teardown()


@pytest.mark.parametrize(
    ("kind", "fuse", "short_loop"),
    [("compiled", True, True), ("compiled", False, True), ("compiled", True, False), ("direct", True, True)],
)
def test_engines_on_ray_agree_with_plain_python(kind: str, fuse: bool, short_loop: bool, cluster: None) -> None:
    reused = Reused(kind, fuse, short_loop)

    @settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(cases(FewActors, 3))
    def look(case: Case) -> None:
        reused.execute(case)

    try:
        look()
    finally:
        reused.end()
    assert reused.cases >= 30
    assert (reused.fused > 4) is (kind == "compiled" and fuse)
    assert (reused.sent > 10) is (kind == "direct")


def test_the_cases_use_the_whole_language() -> None:
    """What is never drawn is never compared."""
    seen: collections.Counter[str] = collections.Counter()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(cases(FewActors, 1))
    def look(case: Case) -> None:
        tasks, graph = case.graph.tasks, case.graph
        seen.update({task.collective.kind for task in tasks if task.collective is not None})
        seen.update({f"op {task.collective.op}" for task in tasks if task.collective is not None})
        seen.update({"fused" for task in tasks if task.collective is not None and task.returns})
        seen.update({"alone" for group in graph.groups if len(group.members) == 1})
        seen.update({"constants" for task in tasks if task.consts})
        seen.update({"several" for task in tasks if task.returns} | {"effect" for task in tasks if task.returns == ()})
        seen.update({"lists" for edge in graph.edges if edge.in_list} | {"crosses" for e in graph.edges if e.crosses})
        seen.update({"feedback" for given in graph.inputs if "feedback" in given.value.uses})
        seen.update({"window"} if case.inflight > 1 else set())
        seen.update({"shared" for actor in graph.actors if len(actor.tasks) > 2})

    look()
    wanted = "allreduce allgather reducescatter fused constants several effect lists crosses feedback window shared"
    assert not {word: seen[word] for word in wanted.split() if seen[word] < 3}
    assert all(seen[f"op {op}"] for op in ("sum", "product", "max", "min", "avg")), seen
