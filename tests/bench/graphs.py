"""The specs that the benchmark runs, as text."""

from __future__ import annotations

import pathlib
import random

import yaml

HERE = pathlib.Path(__file__).parent


def _spec(**parts: object) -> str:
    return yaml.safe_dump({"cgspec": 1, "root": str(HERE), **parts}, sort_keys=False)


def _actors(*names: str) -> dict[str, object]:
    return {name: {"class": "parts.py:Part", "num_cpus": 0.01} for name in names}


def _task(actor: str, reads: str, method: str = "inc") -> dict[str, object]:
    return {"call": f"{actor}.{method}", "in": {"x": reads}}


def _count(stamped: bool) -> object:
    return {"$call": "parts.py:stamp", "args": {"n": {"$expr": "i"}}} if stamped else {"$count": {"from": 0}}


def hop(*, stamped: bool = False) -> str:
    tasks = {"one": _task("a", "inputs.x")}
    return _spec(name="hop", actors=_actors("a"), inputs={"x": _count(stamped)}, tasks=tasks, outputs="one")


def fan(*, stamped: bool = False) -> str:
    tasks = {"left": _task("a", "inputs.x"), "right": _task("b", "inputs.x", "double")}
    tasks["join"] = {"call": "c.join", "in": {"x": "left", "y": "right"}}
    return _spec(name="fan", actors=_actors("a", "b", "c"), inputs={"x": _count(stamped)}, tasks=tasks, outputs="join")


def chain_of_three() -> str:
    tasks = {"one": _task("a", "inputs.x"), "two": _task("b", "one"), "three": _task("c", "two")}
    return _spec(name="chain", actors=_actors("a", "b", "c"), inputs={"x": _count(False)}, tasks=tasks, outputs="three")


def long_chain(length: int) -> str:
    """The first half on one actor, the second on another."""
    tasks, reads = {}, "inputs.x"
    for number in range(length):
        name = f"t{number}"
        tasks[name] = _task("a" if number < length // 2 else "b", reads)
        reads = name
    return _spec(name="forty", actors=_actors("a", "b"), inputs={"x": _count(False)}, tasks=tasks, outputs=reads)


def scattered(seed: int) -> str:
    """A dozen tasks on three actors, each reading one or two of the latest; what nobody reads is handed out."""
    draw = random.Random(seed)
    tasks: dict[str, object] = {}
    left: list[str] = []
    for number in range(12):
        sources = ["inputs.x", *tasks][-4:]
        reads = draw.sample(sources, min(len(sources), draw.choice((1, 1, 2))))
        method = "join" if len(reads) == 2 else draw.choice(("inc", "double"))
        tasks[f"t{number}"] = {"call": f"{draw.choice('abc')}.{method}", "in": dict(zip("xy", reads, strict=False))}
        left = [name for name in left if name not in reads] + [f"t{number}"]
    used = sorted({str(task["call"])[0] for task in tasks.values()})  # type: ignore[index]
    return _spec(name="scattered", actors=_actors(*used), inputs={"x": _count(False)}, tasks=tasks, outputs=left)


def left_behind() -> str:
    """A chain of two on ``a`` whose first result is read behind it as well: fused, one call hands out both."""
    tasks = {"one": _task("a", "inputs.x"), "two": _task("a", "one", "double"), "away": _task("b", "two")}
    tasks["join"] = {"call": "a.join", "in": {"x": "one", "y": "away"}}
    return _spec(name="left", actors=_actors("a", "b"), inputs={"x": _count(False)}, tasks=tasks, outputs="join")


def ring(length: int, actors: int = 2) -> str:
    """A chain in which every edge goes to another actor: nothing can be fused."""
    tasks, reads = {}, "inputs.x"
    for number in range(length):
        tasks[f"t{number}"] = _task(f"a{number % actors}", reads)
        reads = f"t{number}"
    names = [f"a{number}" for number in range(actors)]
    return _spec(name="ring", actors=_actors(*names), inputs={"x": _count(False)}, tasks=tasks, outputs=reads)


def pipeline(stages: int, microbatches: int) -> str:
    """Every microbatch through every stage, and a count of them in the last."""
    actors = {"stage": {"class": "parts.py:Part", "num_cpus": 0.01, "axes": {"pp": stages}}}
    forward = {"call": "stage.inc", "axes": {"mb": microbatches}}
    forward["in"] = {"x": {"$prev": "fwd", "axis": "pp", "first": "inputs.x"}}
    last = f"fwd.{stages - 1}.{microbatches - 1}"
    return _spec(name="pipeline", actors=actors, inputs={"x": _count(False)}, tasks={"fwd": forward}, outputs=last)


def layers() -> str:
    """Two layers, two actors, tensors between them."""
    actors = {n: {"class": "tensors.py:Layer", "args": {"width": 8}, "num_cpus": 0.01} for n in ("a", "b")}
    tasks = {"one": _task("a", "inputs.x", "forward"), "two": _task("b", "one", "forward")}
    inputs = {"x": {"$call": "tensors.py:batch", "args": {"n": {"$expr": "i"}}}}
    return _spec(name="layers", actors=actors, inputs=inputs, tasks=tasks, outputs="two")


def big(size: int) -> str:
    """One tensor of ``size`` bytes from actor to actor."""
    giver = {"class": "tensors.py:Big", "args": {"elements": size // 4}, "num_cpus": 0.01}
    actors = {"a": giver, "b": {"class": "tensors.py:Big", "num_cpus": 0.01}}
    give = {"call": "a.give", "in": {"n": "inputs.x"}, "payload": {"shape": [size // 4], "dtype": "float32"}}
    tasks = {"give": give, "look": _task("b", "give", "look")}
    return _spec(name="big", actors=actors, inputs={"x": _count(False)}, tasks=tasks, outputs="look")
