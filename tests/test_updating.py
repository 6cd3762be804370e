"""``run --update-expect``: the file differs only in the characters of the values, parses, and the run passes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from test_cli import cgspec

from cgspec import source
from cgspec.checking import check
from cgspec.job import Job
from cgspec.observing import OBSERVABLE, CannotWrite, Sight
from cgspec.running import run
from cgspec.updating import Update, update
from cgspec.writing import as_flow

ACTORS = """
import torch

inf = float("inf")


class Giver:
    def give(self, x):
        return VALUE

    def count(self, x):
        return x

    def tensor(self, x):
        return torch.ones(2, 3)

    def pair(self, x):
        return (x, 1)

    def stop(self, x):
        raise ValueError("no")
"""

HEAD = """\
cgspec: 1   # the version
actors: {g: {class: "actors.py:Giver"}}
inputs: {x: {$count: {from: 0}}}
tasks:
  t: {call: g.METHOD, in: {x: inputs.x}}   # one task
outputs: {t: t}
engine: local
run: {iterations: 3, warmup: 0}
"""


def project(folder: Path, expect: str, *, method: str = "give", value: Any = None, name: str = "spec.yaml") -> Path:
    (folder / "actors.py").write_text(ACTORS.replace("VALUE", repr(value)))
    path = folder / name
    path.write_bytes((HEAD.replace("METHOD", method) + expect).encode())
    return path


def updated(path: Path, *overrides: str, variant: str | None = None) -> list[Update]:
    """Runs a spec and writes what was observed."""
    checked = check(path, overrides=overrides, variant=variant)
    assert not checked.errors, checked.findings
    result = run(Job.of(checked, out=path.parent / "runs", observe=True))
    return update(checked.sources, checked.data, result.observed)


def passes(path: Path) -> bool:
    return run(Job.of(check(path), out=path.parent / "runs")).status == "passed"


def tail(path: Path) -> str:
    """The text below the head."""
    return path.read_bytes().decode().split("warmup: 0}\n", 1)[1]


@pytest.mark.parametrize(
    "before, value, after",
    [
        ("expect: [{output: t, equals: 5}]\n", 6, "expect: [{output: t, equals: 6}]\n"),
        ("expect:\n- output: t\n  equals: 5 # five\n", 1e-7, "expect:\n- output: t\n  equals: 1e-07 # five\n"),
        ("expect:\n- output: t\n  equals: 'a'\n", "b", "expect:\n- output: t\n  equals: 'b'\n"),
        ("expect:\n- {equals: \"a\", output: t}\n", "on", "expect:\n- {equals: \"on\", output: t}\n"),
        ("expect:\n- {equals: 1, output: t}\n", "true", "expect:\n- {equals: \"true\", output: t}\n"),
        ("expect:\n- {equals: 1, output: t}\n", "1e-4", "expect:\n- {equals: \"1e-4\", output: t}\n"),
        ("expect:\n- {equals: 1, output: t}\n", "$5", "expect:\n- {equals: \"$$5\", output: t}\n"),
        ("expect:\n- {equals: 1, output: t}\n", "a: b # c", "expect:\n- {equals: \"a: b # c\", output: t}\n"),
        ("expect:\n- output: t\n  equals:   # none\n", 5, "expect:\n- output: t\n  equals: 5   # none\n"),
        (
            "expect:\n- output: t\n  equals:\n  - 1\n  - 2\n\n# the end\n",
            [1, {"a": None}],
            "expect:\n- output: t\n  equals: [1, {a: null}]\n\n# the end\n",
        ),
        (
            "expect:\n- output: t\n  equals:  # why\n  # more\n    a: 1\n    b: [2]\n",
            {"a": 2},
            "expect:\n- output: t\n  equals: {a: 2}  # why\n  # more\n",
        ),
        ("expect:\n- output: t\n  equals: |\n    text\n\n# end\n", "x", "expect:\n- output: t\n  equals: x\n\n# end\n"),
        ("expect:\r\n- output: t\r\n  equals: 5\r\n", float("inf"), "expect:\r\n- output: t\r\n  equals: .inf\r\n"),
        (
            "expect: [{output: t, close: {to: 1, rtol: 1e-3}}]\n",
            (1, 2.5),
            "expect: [{output: t, close: {to: [1, 2.5], rtol: 1e-3}}]\n",
        ),
        ("expect: [{output: t, length: 9, equals: [1]}]\n", [], "expect: [{output: t, length: 0, equals: []}]\n"),
        ("expect: [{output: t, item: 1, equals: 9}]\n", [3, 4], "expect: [{output: t, item: 1, equals: 4}]\n"),
        (
            "# 😀 é\u2028\nexpect: [{output: t, equals: \"$$5😀\"}] # €\n",
            7,
            "# 😀 é\u2028\nexpect: [{output: t, equals: 7}] # €\n",
        ),
        ("? expect\n: - ? equals\n    : 5\n    output: t\n", 7, "? expect\n: - ? equals\n    : 7\n    output: t\n"),
        ("expect: [{output: t, at: last, equals: 9}]\n", True, "expect: [{output: t, at: last, equals: true}]\n"),
    ],
)  # fmt: skip
def test_only_the_value_changes(tmp_path: Path, before: str, value: Any, after: str) -> None:
    path = project(tmp_path, before, value=value)
    assert all(told.written for told in updated(path))
    assert tail(path) == after
    assert passes(path)


def test_shapes_and_dtypes_of_tensors_are_written_and_their_values_under_close(tmp_path: Path) -> None:
    said = "expect: [{output: t, shape: [1], dtype: float16, close: {to: 0}, length: 7}]\n"
    path = project(tmp_path, said, method="tensor")
    updated(path)
    wanted = "{to: [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]}"
    assert tail(path) == f"expect: [{{output: t, shape: [2, 3], dtype: float32, close: {wanted}, length: 2}}]\n"
    assert passes(path)


@pytest.mark.parametrize(
    "expect, method, why",
    [
        ("[{output: t, equals: 5}]", "count", "not the same in every iteration (e.g. 0 and 1)"),
        ("[{output: t, equals: 5}]", "tensor", "a tensor of float32 [2, 3] cannot be written under equals"),
        ("[{output: t, at: last, equals: 5}]", "pair", "a tuple is no literal: write {$expr: ..}, or expect close"),
        ("[{output: t, equals: {$expr: i}}]", "give", "a $ value"),
        ("[{output: t, equals: [$$a, $five]}]", "give", "a $ value"),
        ("[{output: t, equals: &a 5}]", "give", "behind an anchor"),
        ("[{output: t, equals: *five}]", "give", "behind an anchor"),
        ("[{output: t, equals: [1, *five]}]", "give", "behind an anchor"),
        ("\n- output: t\n  <<: *whole", "give", "behind an anchor"),
        ("\n- output: t\n  equals: [1, # one\n    2]", "give", "comments stand inside"),
        ("\n- output: t\n  equals:\n  - 1\n  # two\n  - 2", "give", "comments stand inside"),
        ("[{output: t, finite: true}]", "give", "finite says no value that could be written"),
        ("[{output: t, item: 3, equals: 1}]", "give", "which has no item 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_left_alone_and_said(tmp_path: Path, expect: str, method: str, why: str) -> None:
    said = f"x-five: &five 5\nx-whole: &whole {{equals: 5}}\nvars: {{five: 5}}\nexpect: {expect}\n"
    path = project(tmp_path, said, method=method, value=["s"])
    (told,) = updated(path)
    assert not told.written and why in told.why
    assert tail(path) == said


def test_what_comes_from_elsewhere_is_not_written(tmp_path: Path) -> None:
    said = "expect: [{output: t, equals: 5}]\nvariants: {six: {expect.0.equals: 6}}\n"
    path = project(tmp_path, said, value=7)
    (override,) = updated(path, "expect.0.equals=8")
    (variant,) = updated(path, variant="six")
    assert override.why == "it comes from the command line"
    assert variant.why == f"it comes from {path} (variant six)"
    assert tail(path) == said


def test_a_value_of_an_included_file_is_written_to_that_file(tmp_path: Path) -> None:
    base = project(tmp_path, "expect: [{output: t, equals: 5}]  # here\n", value=7, name="base.yaml")
    path = tmp_path / "spec.yaml"
    path.write_text("cgspec: 1\ninclude: [base.yaml]\n")
    (told,) = updated(path)
    assert (told.file, told.line) == (str(base), 9)
    assert tail(base) == "expect: [{output: t, equals: 7}]  # here\n"
    assert path.read_text() == "cgspec: 1\ninclude: [base.yaml]\n"


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    path = project(tmp_path, "expect: [{output: t, equals: 5}]\n", value=7)
    checked = check(path)
    result = run(Job.of(checked, out=tmp_path / "runs", observe=True))
    path.write_text(path.read_text() + "# mine\n")
    (told,) = update(checked.sources, checked.data, result.observed)
    assert told.why == "the file was changed since it was read"
    assert tail(path) == "expect: [{output: t, equals: 5}]\n# mine\n"
    assert not list(tmp_path.glob(".*new"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_the_encoding_the_mode_and_a_link_are_kept(tmp_path: Path, encoding: str) -> None:
    path = project(tmp_path, "expect: [{output: t, equals: 5}]\n", value="µ€😀")
    path.write_bytes(path.read_text().encode(encoding))
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    assert updated(link)[0].written
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes().decode(encoding).endswith('expect: [{output: t, equals: "µ€😀"}]\n')
    assert passes(path)


def test_the_command_line_says_what_it_wrote_and_exits_0_when_all_is_settled(tmp_path: Path) -> None:
    path = project(tmp_path, "expect:\n- {output: t, equals: 5}\n- {output: t, equals: {$expr: '7 - 1'}}\n", value=7)
    done = cgspec("run", path.name, "--update-expect", cwd=tmp_path)
    assert done.returncode == 1
    assert "1 of 2 failed expectations on outputs updated" in done.stdout
    assert "✓ output t equals (spec.yaml:10): 5 → 7" in done.stdout
    assert "✗ output t equals (spec.yaml:11) is as it was: it is a $ value" in done.stdout
    path.write_text(path.read_text().replace("equals: 7", "equals: 8").replace("7 - 1", "7 * 1"))
    again = cgspec("run", path.name, "--update-expect", "--json", cwd=tmp_path)
    assert again.returncode == 0
    assert json.loads(again.stdout)["updates"] == [
        {"what": "output t equals", "written": True, "file": "spec.yaml", "line": 10, "new": "7", "why": None}
    ]
    assert cgspec("run", path.name, cwd=tmp_path).returncode == 0


def test_a_run_that_does_not_end_updates_nothing(tmp_path: Path) -> None:
    path = project(tmp_path, "expect: [{output: t, equals: 5}]\n", method="stop")
    done = cgspec("run", path.name, "--update-expect", cwd=tmp_path)
    assert (done.returncode, "nothing was updated" in done.stdout) == (4, True)
    assert tail(path) == "expect: [{output: t, equals: 5}]\n"
    only = cgspec("run", path.name, "--update-expect", "--only", "1", cwd=tmp_path)
    assert (only.returncode, "--only" in only.stderr) == (2, True)


# --- random specs --------------------------------------------------------------------------------------------------

WORDS = ["a", "null", "~", "1", "0x1", "1e3", "on", " x ", "- a", "#", "a: b", "'", '"', "\\", "\n", "\t", "$", "$$a",
         "€", "😀", "", "{", "]", "&a", "*a", "!t", "%", "@", "`", ",", "?", "x" * 200, "\x07", "\x85",
         "a\u2028b"]  # fmt: skip


def literal(draw: random.Random, depth: int = 3) -> Any:
    """Anything that a spec can say as a literal."""
    kind = draw.choice("nbifs" + "ld" * (depth > 0))
    if kind == "l":
        return [literal(draw, depth - 1) for _ in range(draw.randrange(4))]
    if kind == "d":
        return {draw.choice([*WORDS, 3, -1]): literal(draw, depth - 1) for _ in range(draw.randrange(4))}
    if kind == "s":
        return "".join(draw.choice(WORDS) for _ in range(draw.randrange(3)))
    number = draw.choice([0.0, -0.0, 1e300, 5e-324, float("-inf"), draw.uniform(-9, 9), draw.gauss(0, 1) * 1e20])
    return {"n": None, "b": draw.random() < 0.5, "i": draw.randrange(-(10**20), 10**20), "f": number}[kind]


def test_flow_yaml_reads_back_as_the_same() -> None:
    draw = random.Random(1)
    for data in (literal(draw) for _ in range(1000)):
        for around, wanted in (("%s", data), ("[%s]", [data]), ("{a: %s}", {"a": data})):
            document = source.read(around % as_flow(data), "x")
            assert document.findings == []
            assert repr(document.data) == repr(wanted)


def block(draw: random.Random, data: Any, indent: int) -> str:
    """Some way of writing data in a file: flow, or over several lines, perhaps with a comment behind it."""
    low = indent - 2 * draw.randrange(2) if isinstance(data, list) else indent
    pad, comment = "\n" + " " * low, draw.choice(["", "  # why: {not, [yaml", " # 'x"])
    if isinstance(data, list) and data and draw.random() < 0.5:
        return "".join(f"{pad}- {as_flow(item)}" for item in data) + draw.choice(["", "\n\n# after\n"])
    if isinstance(data, dict) and data and draw.random() < 0.5:
        return "".join(f"{pad}{as_flow(key)}: {as_flow(item)}" for key, item in data.items())
    if isinstance(data, str) and data.isalnum() and draw.random() < 0.5:
        return f" '{data}'{comment}"
    return f" {as_flow(data)}{comment}"


@pytest.mark.parametrize("seed", range(24))
def test_random_specs_differ_only_in_the_values_and_pass_afterwards(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    value, count = literal(draw), draw.randrange(1, 5)
    heads = ["- output: t  # entry\n  at: last\n  equals:", "- output: t\n  # about it\n  equals:"]
    parts = [
        (draw.choice(heads), _escaped(literal(draw)), draw.choice(["", "\n# between", "\n"])) for _ in range(count)
    ]
    texts = [block(draw, data, 4) for _, data, _ in parts]
    before = "expect:\n" + "\n".join(head + text + end for (head, _, end), text in zip(parts, texts, strict=True))
    path = project(tmp_path, before + "\nx-end: 1 # end\n", value=value)
    told = updated(path)
    assert all(each.written for each in told), told
    rest = tail(path)
    for head, _, end in parts:
        assert rest.count("\n" + head) >= 1 and end in rest
    assert rest.endswith("\nx-end: 1 # end\n")
    assert _without_values(rest) == _without_values(before + "\nx-end: 1 # end\n")
    assert passes(path)


def _escaped(data: Any) -> Any:
    """No dollar sign: it would stand for something."""
    if isinstance(data, (list, tuple)):
        return [_escaped(item) for item in data]
    if isinstance(data, dict):
        return {_escaped(key): _escaped(item) for key, item in data.items()}
    return data.replace("$", "S") if isinstance(data, str) else data


def _without_values(text: str) -> str:
    """A text with the characters of every ``equals`` taken out."""
    document = source.read("cgspec: 1\n" + text, "x")
    spans = []
    for number in range(len(document.data["expect"])):
        found = document.nodes(("expect", number, "equals"))
        assert found is not None
        node = found[1]
        spans.append((node.start_mark.index, len(document.text[: _end(node)].rstrip())))
    kept, at = [], 0
    for start, end in spans:
        kept.append(document.text[at:start].rstrip(" \n"))
        at = max(start, end)
    return "".join([*kept, document.text[at:]])


def _end(node: Any) -> int:
    """The end of the last scalar in a node."""
    inner = [item for child in node.value for item in (child if isinstance(child, tuple) else (child,))] \
        if not isinstance(node.value, str) else []  # fmt: skip
    return max(map(_end, inner)) if inner and not node.flow_style else int(node.end_mark.index)


@pytest.mark.parametrize(
    "condition, value",
    [
        ("equals", float("nan")),
        ("equals", [torch.ones(2)]),
        ("equals", {1.5: 2}),
        ("equals", b"bytes"),
        ("equals", 10**400),
        ("equals", "x" * 10_000),
        ("equals", [[0] * 100] * 100),
        ("close", torch.ones(1000)),
        ("close", object()),
        ("shape", 5),
        ("dtype", "text"),
        ("length", torch.tensor(5)),
    ],
)
def test_what_is_no_literal_is_refused(condition: str, value: Any) -> None:
    with pytest.raises(CannotWrite):
        OBSERVABLE[condition](value)


@pytest.mark.parametrize(
    "condition, value, text",
    [
        ("equals", torch.tensor(3), "3"),
        ("equals", torch.tensor(0.5), "0.5"),
        ("close", [torch.tensor([1.5, 2]), (1, 2)], "[[1.5, 2.0], [1, 2]]"),
        ("dtype", torch.ones(1).bfloat16(), "bfloat16"),
        ("dtype", torch.int8, "int8"),
        ("shape", torch.ones(()), "[]"),
    ],
)
def test_what_is_written(condition: str, value: Any, text: str) -> None:
    assert OBSERVABLE[condition](value) == text


def test_a_sight_keeps_one_text_however_much_it_sees() -> None:
    sight = Sight("equals")
    for _ in range(10):
        sight.see([1, 2])
    assert (sight.text, sight.why) == ("[1, 2]", "")
    sight.see([1, 3])
    sight.see([1, 2])
    assert (sight.text, sight.why) == ("", "it is not the same in every iteration (e.g. [1, 2] and [1, 3])")
