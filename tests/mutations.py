"""Broken specs, each from a number: mutations of good specs on every level, and bytes that never were one."""

from __future__ import annotations

import copy
import json
import pathlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

HERE = pathlib.Path(__file__).parent
SPECS = [*sorted((HERE / "examples").glob("*.yaml")), *sorted((HERE / "vectors").glob("*.yaml"))]

BOMB = "9**9**9"
TOKENS = [
    "{", "}", "[", "]", ":", ": ", "- ", ",", "&a ", "*a", "<<: *a\n", "!!python/object:os.system ", "!x ", "$",
    "${", "$$", "'", '"', "\t", "\n", "\n\n", "  ", "|\n", ">-\n", "? ", "--- \n", "...\n", "%YAML 1.1\n", "#",
    "\0", "\x07", "\x85", "\u2028", "\ufeff", "\U0001f600", "e\u0301", "\u202e", "null", "~", "yes", "0x1F",
    "1e999", "-", ".", "*", "..", ".nan", "inputs.", "index.", "size.", "\\", "\r\n", "\r", "@", "`", "$expr",
    "$at", "$all", "$prev", "$next", "$each", "$call",
]  # fmt: skip
SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 0.5, -0.0, 1e308, float("inf"), float("nan"), 10**9, 10**18, 10**40,
    -(10**400), "", " ", "x", "a.b.c", "inputs.x", "inputs", "inputs.", ".", "*", "t.*", "a.-1", "a.99999999999",
    "0", "-0", "$", "$$", "$x", "${x}", "${", "$pp", "$device", "$i", "$index.pp", "$size.tp", "$index.", "on",
    "30s", "5 parsecs", "64MiB", "-3s", "1" * 400, "x" * 5000, "\U0001f600", "\x00", "../../etc/passwd",
    "/dev/zero", "os:system", "actors.py:Part", "model.py:", "stage.forward", "stage.0.0.0.0.forward",
    "stage.*.-1.run", "nccl", "auto", "cpu", "float16", "first", "torch",
]  # fmt: skip
EXPRESSIONS = [
    BOMB, "1/0", "2**4096", "'x'*10**9", "(1,)*10**9", "((1,)*999,)*999", "index.pp", "size.zz", "__import__('os')",
    "(" * 500, "().__class__", "i", "[i for i in x]", "lambda: 0", "1 if 1 else 2", "-" * 300 + "1", "x" * 3000,
    "'%s' % 1", "1_000", "1e999", "float('nan')", "int('9' * 5000)", "round(1e308*10)", "len(1)", "max()",
    "min((), ())", "abs(None)", "", " ", "\n", "a.b.c.d", "1 <" * 100 + "1", "not " * 100 + "1", "(1,2)[9]",
    "(1,2)[-1]", "'a'[0]", "1 == 1 == 1", "float16", "0x" + "f" * 1500, "\U0001f600",
]  # fmt: skip
KEYS = [
    "axes", "slot", "in", "with", "returns", "transport", "payload", "timeout", "call", "allreduce", "axis", "op",
    "args", "env", "root", "include", "vars", "sweep", "expect",
]  # fmt: skip
PATHS = [
    "vars.pp", "vars.mb", "run.iterations", "tasks.fwd.slot", "tasks.fwd", "inputs.x", "actors.stage.axes.pp",
    "outputs", "a.b.c", "tasks", "engine", "sweep.matrix",
]  # fmt: skip


def values(rng: random.Random) -> Any:
    """A value that has no business where it is put."""
    kind = rng.randrange(12)
    if kind < 5:
        return rng.choice(SCALARS)
    if kind < 7:
        return {"$expr": rng.choice(EXPRESSIONS)}
    if kind == 7:
        marks = (
            "$at",
            "$all",
            "$prev",
            "$next",
            "$each",
            "$call",
            "$tensor",
            "$random",
            "$values",
            "$count",
            "$feedback",
            "$no",
        )
        return {rng.choice(marks): rng.choice(SCALARS), "axis": rng.choice(SCALARS), "first": rng.choice(SCALARS)}
    if kind == 8:
        return nested(rng.randrange(1, 200), rng.choice(SCALARS))
    if kind == 9:
        return [rng.choice(SCALARS) for _ in range(rng.randrange(5))]
    if kind == 10:
        return {str(rng.choice(SCALARS)): rng.choice(SCALARS) for _ in range(rng.randrange(5))}
    return rng.choice([10**k + rng.randrange(-1, 2) for k in range(12)])


def nested(depth: int, inner: Any) -> Any:
    for n in range(depth):
        inner = [inner] if n % 2 else {"a": inner}
    return inner


# mutations of plain data


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def parent(data: Any, path: tuple[Any, ...]) -> Any:
    for part in path[:-1]:
        data = data[part]
    return data


def at(data: Any, path: tuple[Any, ...]) -> Any:
    return parent(data, path)[path[-1]]


def delete(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    del parent(data, path)[path[-1]]


def replace(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    parent(data, path)[path[-1]] = values(rng)


def duplicate(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    owner = parent(data, path)
    if isinstance(owner, list):
        owner.insert(path[-1], copy.deepcopy(owner[path[-1]]))
    else:
        owner[f"{path[-1]}2"] = copy.deepcopy(owner[path[-1]])


def rename(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    owner = parent(data, path)
    if isinstance(owner, dict):
        name = rng.choice([str(path[-1])[:-1], str(path[-1]).upper(), *SCALARS])
        items = [(name if key == path[-1] else key, value) for key, value in owner.items()]
        owner.clear()
        owner.update(items)


def graft(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    """One part of the spec put in the place of another."""
    other = rng.choice(list(places(data)))
    parent(data, path)[path[-1]] = copy.deepcopy(at(data, other))


def swap(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    other = rng.choice([each for each in places(data) if len(each) == len(path)])
    here, there = copy.deepcopy(at(data, path)), copy.deepcopy(at(data, other))
    parent(data, path)[path[-1]] = there
    parent(data, other)[other[-1]] = here


def add(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    inner = at(data, path)
    owner = inner if isinstance(inner, dict) else data
    owner[rng.choice(KEYS)] = values(rng)


def rewire(data: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    """A reference that names something else."""
    names = [*data.get("tasks", {}), *(f"inputs.{name}" for name in data.get("inputs") or {})]
    word = str(rng.choice(names or ["x"])) + rng.choice(["", "", ".*", ".0", ".-1", ".*.0", ".9", ".a", ".0.1.2"])
    parent(data, path)[path[-1]] = rng.choice(
        [word, [word, word], {"$at": word, "pp": 0}, {"$prev": word, "axis": "pp", "first": word}]
    )


DATA: tuple[Callable[[Any, tuple[Any, ...], random.Random], None], ...] = (
    delete, replace, replace, replace, duplicate, rename, graft, swap, add, rewire,
)  # fmt: skip


def mutated_data(text: str, rng: random.Random) -> str:
    data = yaml.safe_load(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        where = list(places(data))
        if where:
            try:
                rng.choice(DATA)(data, rng.choice(where), rng)
            except (KeyError, IndexError, TypeError, AttributeError):
                continue
    try:
        if rng.random() < 0.3:
            return json.dumps(data, ensure_ascii=rng.random() < 0.5)
        return str(
            yaml.safe_dump(
                data, sort_keys=rng.random() < 0.1, allow_unicode=rng.random() < 0.5, width=rng.choice((40, 10**6))
            )
        )
    except (ValueError, RecursionError, yaml.YAMLError):
        return text


# mutations of text


def mutated_text(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 1, 2, 4, 10))):
        begin = rng.randrange(len(text) + 1)
        end = min(len(text), begin + rng.choice((0, 0, 1, 2, 5, 30)))
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:begin] + text[end:]
        elif kind == 1:
            text = text[:end] + text[begin:]
        elif kind == 2:
            lines = text.split("\n")
            rng.shuffle(lines) if rng.random() < 0.1 else lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = "\n".join(lines)
        else:
            text = text[:begin] + rng.choice(TOKENS) * rng.choice((1, 1, 1, 2, 50)) + text[end:]
    return text


def blown_up(text: str, rng: random.Random) -> str:
    """Something in it becomes very large."""
    big = rng.choice((10**3, 10**4, 10**5, 10**6))
    grown = range(1, 20)

    def expression() -> str:
        return rng.choice(EXPRESSIONS)[:40]

    tail = [
        lambda: f"x-long: {'a' * big}\n",
        lambda: f"x-long: [{'a, ' * (big // 4)}]\n",
        lambda: f"x-deep: {'[' * (big // 10)}\n",
        lambda: "".join(f"k{n}: {n}\n" for n in range(big // 100)),
        lambda: f"x-number: {'9' * big}\n",
        lambda: f"x-text: '{'${' * (big // 2)}'\n",
        lambda: f"description: '{'$' * big}'\n",
        lambda: f"name: '{'${a} $' * (big // 10)}'\n",
        lambda: "x-a: &a0 [1, 2]\n" + "".join(f"x-{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in grown),
        lambda: "x-a: &a0 {a: 1}\n" + "".join(f"x-{n}: &a{n} {{k: *a{n - 1}, <<: [*a{n - 1}]}}\n" for n in grown),
        lambda: "x-loop: &loop [*loop]\n",
        lambda: "vars:\n  a0: xx\n" + "".join(f"  a{n}: {f'${{a{n - 1}}}' * 9}\n" for n in grown) + "name: $a19\n",
        lambda: "vars:\n  a0: [1]\n" + "".join(f"  a{n}: [{f'$a{n - 1}, ' * 9}]\n" for n in grown) + "setup: $a19\n",
        lambda: "vars:\n" + "".join(f"  a{n}: {{$expr: '{expression()}'}}\n" for n in range(big // 1000)),
        lambda: f"sweep: {{matrix: {{vars.a: {list(range(big // 10))}, vars.b: {list(range(100))}}}}}\n",
        lambda: f"include: [{'fan.yaml, ' * (big // 100)}]\n",
        lambda: f"root: {'a/' * big}\n",
        lambda: f"expect: [{('{output: ' + 'x' * 50 + '}, ') * (big // 1000)}]\n",
        lambda: f"metrics: {{a: {{$expr: '{'1+' * min(big, 990)}1'}}}}\n",
        lambda: f"inputs: {{x: {{$each: [1, $index.k], axes: {{k: {big}}}}}}}\n",
        lambda: f"actors: {{w: {{class: actors.py:Part, axes: {{n: {big}, tp: 2, dp: 3}}}}}}\n",
    ]  # fmt: skip
    key = rng.choice(tail)()
    name = key.split(":", 1)[0]
    return "\n".join(line for line in text.split("\n") if not line.startswith(f"{name}:")) + "\n" + key


def encoded(text: str, rng: random.Random) -> bytes:
    kind = rng.randrange(14)
    if kind == 0:
        text = text.replace("\n", "\r\n")
    elif kind == 1:
        text = text.replace("\n", "\r")
    elif kind == 2:
        text = "\ufeff" + text
    encoding = {3: "utf-16", 4: "utf-32", 5: "latin-1", 6: "utf-16-be", 7: "cp1252"}.get(kind, "utf-8")
    raw = text.encode(encoding, "replace" if encoding != "utf-8" else "surrogatepass")
    if kind == 8 and raw:
        at_byte = rng.randrange(len(raw))
        raw = raw[:at_byte] + bytes([rng.randrange(256)]) + raw[at_byte:]
    return raw


@dataclass(frozen=True)
class Case:
    """One thing to check."""

    path: pathlib.Path
    raw: bytes
    overrides: tuple[str, ...] = ()
    variant: str | None = None


def mutation(number: int) -> Case:
    """The mutation with a number: always the same."""
    rng = random.Random(number)
    path = rng.choice(SPECS)
    text = path.read_text(encoding="utf-8")
    kind = rng.random()
    if kind < 0.6:
        text = mutated_data(text, rng)
    elif kind < 0.93:
        text = mutated_text(text, rng)
    else:
        text = blown_up(text, rng)
    overrides = tuple(override(rng) for _ in range(rng.randrange(1, 3))) if rng.random() < 0.15 else ()
    return Case(path, encoded(text, rng), overrides, rng.choice(("smoke", "", "x.y")) if rng.random() < 0.03 else None)


def override(rng: random.Random) -> str:
    value = rng.choice((str(rng.choice(SCALARS)), json.dumps(values(rng)), "{", "[1, 2", "&a [*a]", ""))
    return rng.choice((f"{rng.choice(PATHS)}={value}", value, f"{value}={value}", f"..={value}", f"tasks.0={value}"))


def noise(number: int) -> Case:
    """Bytes that never were a spec: the same for the same number."""
    rng = random.Random(number)
    kind = rng.randrange(4)
    if kind == 0:
        raw = rng.randbytes(rng.choice((0, 1, 10, 100, 5000, 100_000)))
    elif kind == 1:
        raw = "".join(rng.choice(TOKENS) for _ in range(rng.choice((1, 5, 50, 500, 5000)))).encode(
            "utf-8", "surrogatepass"
        )
    elif kind == 2:
        raw = b"cgspec: 1\n" + "".join(rng.choice(TOKENS) for _ in range(rng.randrange(200))).encode()
    else:
        whole = rng.choice(SPECS).read_bytes()
        raw = whole[rng.randrange(len(whole)) :] + whole[: rng.randrange(len(whole))]
    return Case(HERE / "examples" / "noise.yaml", raw)
