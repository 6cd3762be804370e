"""What ``check`` prints, whatever it is given; it executes nothing."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap

import pytest
from check_cases import MODEL, SPEC, codes, of, run, spec

from cgspec.checking import check
from cgspec.rules.actors import OPTIONS, SET_BY_CGSPEC
from cgspec.spec import ActorSpec


def test_several_files_and_a_folder(folder: pathlib.Path) -> None:
    (folder / "more" / "deep").mkdir(parents=True)
    (folder / "more" / "model.py").write_text(MODEL)
    of(SPEC, "more/good.yaml")
    of(spec(("outputs: u", "outputs: uu")), "more/bad.yaml")
    (folder / "more" / "deep" / "none.yaml").write_text("a: 1\n")
    of(spec(("in: {x: t}", "in: {x: tt}")))
    both = run("spec.yaml", "more/bad.yaml")
    assert both.return_value == 1
    assert [line.split(":")[0] for line in both.stdout.splitlines() if "error:" in line] == [
        "spec.yaml",
        "more/bad.yaml",
    ]
    in_folder = run("more")
    assert [line.split(":")[0] for line in in_folder.stdout.splitlines() if "error:" in line] == ["more/bad.yaml"]
    good = run("more/good.yaml")
    assert (good.return_value, good.stdout, good.stderr) == (
        0,
        "",
        "more/good.yaml: ok (2 actors, 2 tasks, 1 output)\n",
    )


def test_a_folder_without_a_spec_is_a_usage_error(folder: pathlib.Path) -> None:
    (folder / "empty").mkdir()
    done = subprocess.run([sys.executable, "-m", "cgspec", "check", "empty"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no spec in empty" in done.stderr


def test_json_has_the_shape_that_the_design_fixes() -> None:
    of(spec(("outputs: u", "  u: {call: b.forward, in: {x: t}}\noutputs: u")))
    shown = run("spec.yaml", "--format", "json")
    assert json.loads(shown.stdout) == {
        "findings": [
            {
                "code": "duplicate-key",
                "severity": "error",
                "message": "u stands here twice",
                "file": "spec.yaml",
                "line": 9,
                "column": 3,
                "path": [],
                "why": "",
                "fix": "remove one of the two, or give one another name",
                "related": [{"message": "it is here first", "file": "spec.yaml", "line": 8, "column": 3}],
            }
        ]
    }
    assert shown.return_value == 1


def test_json_paths_are_keys_and_indices() -> None:
    of(spec(("outputs: u", "outputs: [u, uu]")))
    found = json.loads(run("spec.yaml", "--json").stdout)["findings"]
    assert found[0]["path"] == ["outputs", 1]


def test_json_of_a_clean_spec_is_an_empty_list() -> None:
    of(SPEC)
    shown = run("spec.yaml", "--format", "json")
    assert (json.loads(shown.stdout), shown.return_value) == ({"findings": []}, 0)


def test_a_warning_or_a_note_alone_exits_0() -> None:
    of(spec(more="profile: {kind: timeline, stacks: true}\n"))
    shown = run("spec.yaml")
    assert (shown.return_value, "warning" in shown.stdout) == (0, True)


def test_nothing_is_coloured_where_there_is_no_terminal() -> None:
    of(spec(("outputs: u", "outputs: uu")))
    assert "\033" not in run("spec.yaml", env={"FORCE_COLOR": "1"}).stdout


def test_control_characters_of_a_spec_do_not_reach_the_terminal() -> None:
    of(spec(more='"na\\e[31mme": 3\n'))
    assert "\033" not in run("spec.yaml").stdout


TRAP = """
import pathlib

pathlib.Path("imported").touch()


def trap(function):
    pathlib.Path("decorated").touch()
    return function


@trap
class Stage:
    pathlib.Path("body").touch()

    @trap
    def forward(self, x=pathlib.Path("default").touch()):
        return x


def batch(size):
    pathlib.Path("called").touch()
    return size
"""


@pytest.mark.parametrize("command", ["check", "viz", "plan", "show", "export"])
def test_nothing_of_the_users_is_executed(command: str, folder: pathlib.Path) -> None:
    (folder / "model.py").write_text(textwrap.dedent(TRAP))
    of(spec(("{x: 1}", '{x: {$call: "model.py:batch", args: {size: 3}}}')))
    done = subprocess.run([sys.executable, "-m", "cgspec", command, "spec.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"imported", "decorated", "body", "default", "called"} & {path.name for path in folder.iterdir()}


FAMILY = SPEC.replace("a: {class: model.py:Stage}", "a: {class: model.py:Stage, axes: {pp: 2}}").replace(
    "{x: t}", "{x: t.*}"
)
ODD: dict[str, tuple[str | bytes, list[str]]] = {
    "nothing": ("", ["not-a-spec"]),
    "a comment": ("# soon\n", ["not-a-spec"]),
    "a word": ("hello", ["not-a-spec"]),
    "the version alone": ("cgspec: 1\n", ["missing-key", "missing-key"]),
    "the version as text": ('cgspec: "1"\n', ["not-a-spec"]),
    "the version as truth": ("cgspec: true\n", ["not-a-spec"]),
    "a null byte": (SPEC.encode() + b"\0", ["syntax"]),
    "latin-1": (SPEC.encode() + b"# caf\xe9\n", ["syntax"]),
    "empty tasks": (spec(("tasks:", "tasks: {}\nx-tasks:"), ("outputs: u\n", "")), ["unused-input", "no-outputs"]),
    "tasks as a list": (spec(("tasks:", "tasks: []\nx-tasks:")), ["wrong-type"]),
    "actors as nothing": (spec(("actors:\n", "actors: null\nx-actors:\n")), ["wrong-type"]),
    "a task as nothing": (spec(("u: {call: b.forward, in: {x: t}}", "u: null")), ["wrong-type"]),
    "a task as text": (spec(("u: {call: b.forward, in: {x: t}}", "u: b.forward")), ["wrong-type"]),
    "in as a number": (spec(("in: {x: t}", "in: 5")), ["wrong-type"]),
    "in with a number as name": (spec(("in: {x: t}", "in: {1: t}")), ["wrong-type"]),
    "a call of dots": (spec(("b.forward", "b..")), ["bad-call"]),
    "a call of nothing": (spec(("b.forward", '""')), ["unknown-actor"]),
    "outputs in outputs": (spec(("outputs: u", "outputs: {a: {b: u}}")), ["bad-reference"]),
    "outputs of dots": (spec(("outputs: u", "outputs: u..")), ["bad-reference"]),
    "axes of none": (FAMILY.replace("pp: 2", "pp: 0"), ["out-of-range"]),
    "each without axes": (spec(("{x: 1}", "{x: {$each: 1}}")), ["missing-key"]),
    "returns as text": (spec(("in: {x: t}}", "in: {x: t}, returns: x}")), ["wrong-type"]),
    "a key that is a number": (spec(more="5: x\n"), ["unknown-key"]),
    "a key that is true": (spec(more="true: x\n"), ["unknown-key"]),
    "a key that is nothing": (spec(more="null: x\n"), ["unknown-key"]),
    "a key that is a list": (spec(more="[1]: x\n"), ["wrong-type"]),
    "a reference to everything": (spec(("outputs: u", 'outputs: "*"')), ["unknown-reference"]),
    "two marks": (FAMILY.replace("{x: t.*}", "{x: {$at: t, $all: t, axis: pp}}"), ["bad-reference"]),
    "an axis that is a number": (FAMILY.replace("t.*", "{$all: t, axis: 5}"), ["wrong-type"]),
    "a slot that is not a number": (spec(("in: {x: t}}", "in: {x: t}, slot: .nan}")), ["wrong-type"]),
    "a spec that includes itself": (spec(more="include: spec.yaml\n"), ["include-cycle"]),
    "a folder as include": (spec(more="include: .\n"), ["include"]),
    "a null byte in an include": (spec(more='include: "a\\0b"\n'), ["include"]),
    "a huge number": (spec(("{x: 1}", f"{{x: {'9' * 400}}}")), ["bad-value"]),
    "a huge axis": (FAMILY.replace("pp: 2", "pp: 1000000000000"), ["too-large"]),
    "an unknown word of 5000 letters": (spec(("outputs: u", f"outputs: {'u' * 5000}")), ["unknown-reference"]),
    "an emoji as a task": (spec(("  u:", "  🙂:"), ("outputs: u", "outputs: t")), ["bad-name"]),
    "a profile that is a number": (spec(more="profile: 5\n"), ["wrong-type"]),
    "an expectation that is a map": (spec(more="expect: {output: u, equals: 1}\n"), ["wrong-type"]),
    "a lone surrogate": (spec(("{x: 1}", '{x: "\\ud800"}')), ["syntax"]),
    "a reference where a constant goes": (
        spec(("{call: a.forward, in: {x: inputs.x}}", "{call: a.forward, with: {x: inputs.x}}")),
        ["unused-input"],
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_input_has_a_clear_finding(what: str) -> None:
    text, expected = ODD[what]
    checked = of(text)
    assert codes(checked) == expected, [finding.message for finding in checked.findings]
    shown = run("spec.yaml")
    assert (shown.exception, shown.return_value) == (None, 1)
    assert all(len(line) < 1000 for line in shown.stdout.splitlines())


@pytest.mark.parametrize("name", ["-", "no-such.yaml", "a\0b.yaml", "model.py/spec.yaml"])
def test_a_spec_that_cannot_be_opened_is_a_finding(name: str) -> None:
    assert codes(check(name)) == ["no-file"]


def test_a_folder_as_a_spec_is_a_finding(folder: pathlib.Path) -> None:
    (folder / "specs").mkdir()
    assert codes(check("specs")) == ["no-file"]


def test_ray_has_no_options_of_actors_that_cgspec_does_not_know() -> None:
    from ray._common.ray_option_utils import actor_options as options

    own = {field.alias or name for name, field in ActorSpec.model_fields.items()}
    assert {name for name in options if not name.startswith("_")} - own == {*OPTIONS, *SET_BY_CGSPEC}
