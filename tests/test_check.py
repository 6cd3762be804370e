"""What ``check`` says of whole specs: independent mistakes, cascades, places, and what must be clean."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap

import pytest
from click.testing import CliRunner, Result

from cgspec.checking import Checked, check
from cgspec.cli import cli
from cgspec.rules.actors import OPTIONS, SET_BY_CGSPEC
from cgspec.spec import ActorSpec

MODEL = """
class Stage:
    def __init__(self, size=4):
        self.size = size

    def forward(self, x, scale=1):
        return x

    def add(self, x, y):
        return x + y

    def several(self, *values, last=None):
        return values

    def named(self, *, x):
        return x

    def split(self, x):
        return x, x

    def constant(self, value=1):
        return value

    def reset(self):
        return None
"""

SPEC = """\
cgspec: 1
actors:
  a: {class: model.py:Stage}
  b: {class: model.py:Stage}
inputs: {x: 1}
tasks:
  t: {call: a.forward, in: {x: inputs.x}}
  u: {call: b.forward, in: {x: t}}
outputs: u
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(text: str | bytes, name: str = "spec.yaml", **options: object) -> Checked:
    raw = text if isinstance(text, bytes) else text.encode()
    pathlib.Path(name).write_bytes(raw)
    return check(name, **options)  # type: ignore[arg-type]


def spec(*changes: tuple[str, str], more: str = "") -> str:
    """The clean spec with some of its text replaced, each of which must be there."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text + more


def codes(checked: Checked) -> list[str]:
    return [finding.code for finding in checked.findings]


def place(checked: Checked, number: int = 0) -> str:
    return str(checked.findings[number].place)


def marked(checked: Checked, number: int = 0) -> str:
    """The characters over the caret."""
    found = checked.findings[number].place
    assert found is not None
    return found.excerpt[found.column - 1 : found.end_column - 1]


def run(*arguments: str, **options: object) -> Result:
    return CliRunner().invoke(cli, ["check", *arguments], standalone_mode=False, **options)  # type: ignore[arg-type]


def test_the_spec_that_the_mistakes_are_made_in_is_clean() -> None:
    checked = of(SPEC)
    assert checked.findings == ()
    assert checked.graph is not None


# Independent mistakes, all at once.

FIVE = """\
cgspec: 1
actors:
  a: {class: model.py:Stage, num_gpu: 1}
  b: {class: model.py:Stgae}
inputs: {x: 1, spare: 2}
tasks:
  t: {call: a.froward, in: {x: inputs.x}}
  u: {call: b.forward, in: {x: t}}
outputs: u
run: {duration: 30}
"""


def test_five_independent_mistakes_are_exactly_five_findings_in_order() -> None:
    checked = of(FIVE)
    assert codes(checked) == ["unknown-key", "unknown-class", "unused-input", "unknown-method", "bad-unit"]
    assert [finding.place.line for finding in checked.findings if finding.place] == [3, 4, 5, 7, 10]
    assert [marked(checked, number) for number in range(5)] == ["num_gpu", "Stgae", "spare", "froward", "30"]


def test_five_mistakes_in_one_task() -> None:
    task = "{call: a.forward, in: {x: tt}, with: {scal: 2}, wiht: 3, timeout: 5, transport: ncl}"
    checked = of(spec(("{call: b.forward, in: {x: t}}", task)))
    assert codes(checked) == ["unknown-reference", "unknown-argument", "unknown-key", "bad-unit", "wrong-type"]
    assert [marked(checked, number) for number in range(5)] == ["tt", "scal", "wiht", "5", "ncl"]


def test_five_mistakes_in_five_sections() -> None:
    text = spec(
        ("actors:\n", "vars: {rows: 4, 1st: 2}\nactors:\n"),
        ("{x: 1}", "{x: $row}"),
        ("in: {x: t}}", "in: {x: t.0}}"),
        more="run: {inflight: 8}\nengine: {max_inflight: 2}\nexpect:\n  - {output: v, equals: 1}\n",
    )
    assert codes(of(text)) == ["bad-name", "unknown-var", "wrong-selectors", "inflight", "unbound-expectation"]


def test_a_cycle_is_found_beside_faults_that_do_not_shape_the_graph() -> None:
    text = spec(("in: {x: inputs.x}", "in: {x: u}"), ("inputs: {x: 1}\n", ""), more="run: {iteratons: 3}\n")
    assert codes(of(text)) == ["cycle", "unknown-key"]


def test_each_finding_is_said_once_even_where_many_members_have_it() -> None:
    text = spec(
        ("a: {class: model.py:Stage}", "a: {class: model.py:Stage, axes: {dp: 50}}"),
        ("in: {x: inputs.x}}", 'in: {x: inputs.x}, with: {scale: {$expr: "1 // 0 * index.dp"}}}'),
        ("in: {x: t}", "in: {x: t.*}"),
    )
    assert codes(of(text)) == ["bad-value"]


# Cascades.

ONE_MISTAKE = {
    "an unknown task does not also report its readers": (spec(("in: {x: t}", "in: {x: tt}")), "unknown-reference"),
    "nor what it most likely meant": (spec(("outputs: u", "outputs: uu")), "unknown-reference"),
    "nor, where it is nothing like a name, what is now unread": (
        spec(("in: {x: t}", "in: {x: nothing}")),
        "unknown-reference",
    ),
    "an unknown input does not call the input unused": (
        spec(("in: {x: inputs.x}", "in: {x: inputs.tokens}")),
        "unknown-reference",
    ),
    "an unknown actor does not also report the task's readers": (spec(("a.forward", "aa.forward")), "unknown-actor"),
    "an unknown key near with does not also miss the argument": (
        spec(("{call: b.forward, in: {x: t}}", "{call: b.add, in: {x: t}, wiht: {y: 1}}")),
        "unknown-key",
    ),
    "nor an unknown key near in": (spec(("in: {x: t}", "inn: {x: t}")), "unknown-key"),
    "a faulty actor is not reported again by its calls": (
        spec(("a: {class: model.py:Stage}", "a: {class: [model.py:Stage]}")),
        "wrong-type",
    ),
    "nor an actor without a class": (spec(("a: {class: model.py:Stage}", "a: {num_gpus: 1}")), "missing-key"),
    "nor one with a name that is none": (spec(("  a: {", "  1a: {"), ("a.forward", "1a.forward")), "bad-name"),
    "an unknown class does not also miss its methods": (
        spec(("a: {class: model.py:Stage}", "a: {class: model.py:Stgae}")),
        "unknown-class",
    ),
    "an unknown var is nothing else beside": (
        spec(("a: {class: model.py:Stage}", "a: {class: model.py:Stage, num_gpus: $gpus}")),
        "unknown-var",
    ),
    "nor where a whole class is one": (spec(("a: {class: model.py:Stage}", "a: {class: $kind}")), "unknown-var"),
    "nor in the run's settings": (spec(more="run: {iterations: $n, warmup: 1}\n"), "unknown-var"),
    "a faulty var is not unknown where it is used": (
        spec(("{x: 1}", "{x: $rows}"), more='vars: {rows: {$expr: "1 +"}}\n'),
        "bad-expression",
    ),
    "nor one with a name that is none, where it is used": (
        spec(("{x: 1}", "{x: $my-rows}"), more="vars: {my-rows: 2}\n"),
        "bad-name",
    ),
    "vars that are no map are not unknown": (spec(("{x: 1}", "{x: $rows}"), more="vars: [rows]\n"), "wrong-type"),
    "a misspelt section is not missing": (spec(("actors:", "actor:")), "unknown-key"),
    "nor are misspelt tasks": (spec(("tasks:", "taks:")), "unknown-key"),
    "nor misspelt inputs": (spec(("inputs: {", "input: {")), "unknown-key"),
    "nor misspelt outputs": (spec(("outputs: u", "output: u")), "unknown-key"),
    "nor misspelt vars": (spec(("{x: 1}", "{x: $rows}"), more="var: {rows: 2}\n"), "unknown-key"),
    "tasks that are no map are all that is said": (SPEC.split("tasks:")[0] + "tasks: []\noutputs: u\n", "wrong-type"),
    "a missing include is all that is said of what it held": (
        spec(("inputs: {x: 1}\n", "include: [base.yaml]\n")),
        "include",
    ),
    "a faulty included file, too": (spec(("inputs: {x: 1}\n", "include: [tab.yaml]\n")), "syntax"),
    "a misspelt include neither": (spec(("inputs: {x: 1}\n", "inclde: [base.yaml]\n")), "unknown-key"),
    "an argument that lacks does not also leave the input of its name unread": (
        spec(("{call: a.forward, in: {x: inputs.x}}", "{call: a.forward}")),
        "missing-argument",
    ),
    "a misspelt argument does not also lack": (
        spec(("in: {x: t}", "in: {xx: t}")),
        "unknown-argument",
    ),
    "a misspelt key of a value does not also lack": (
        spec(("{x: 1}", "{x: {$tensor: {shpe: [4], dtype: float16}}}")),
        "unknown-key",
    ),
    "misspelt axes do not also make every index unknown": (
        spec(
            ("a: {class: model.py:Stage}", "a: {class: model.py:Stage, axs: {dp: 2}, args: {size: $index.dp}}"),
            ("in: {x: t}", "in: {x: t.*}"),
        ),
        "unknown-key",
    ),
    "a wrong in does not miss its arguments or leave its input unused": (
        spec(("in: {x: inputs.x}", "in: inputs.x")),
        "wrong-type",
    ),
    "a key that stands twice is not unread the second time": (
        spec(("{x: 1}", "{x: 1, y: 2}"), ("outputs:", "  u: {call: b.forward, in: {x: inputs.y}}\noutputs:")),
        "duplicate-key",
    ),
    "wrong outputs do not leave tasks dangling": (spec(("outputs: u", "outputs: 3")), "wrong-type"),
    "a faulty reference in outputs neither": (spec(("outputs: u", "outputs: {loss: {task: u}}")), "bad-reference"),
    "a neighbour without its edge does not leave an input unused": (
        spec(
            ("a: {class: model.py:Stage}", "a: {class: model.py:Stage, axes: {pp: 2}}"),
            ("in: {x: inputs.x}", "in: {x: {$prev: t, axis: pp}}"),
            ("in: {x: t}", "in: {x: t.-1}"),
        ),
        "missing-key",
    ),
    "a payload with a fault is not half a payload": (
        spec(("in: {x: inputs.x}}", "in: {x: inputs.x}, payload: {shape: [-1], dtype: float16}}")),
        "out-of-range",
    ),
    "an expectation with a fault is not empty": (
        spec(more="expect:\n  - {output: u, close: {rtol: 0.1}}\n"),
        "missing-key",
    ),
    "an entry with a fault does not move those behind it": (
        spec(more="expect:\n  - three\n  - {output: u, equals: 1}\n"),
        "wrong-type",
    ),
}


@pytest.mark.parametrize("what", ONE_MISTAKE)
def test_one_mistake_is_one_finding(what: str) -> None:
    pathlib.Path("tab.yaml").write_text("cgspec: 1\ninputs:\n\tx: 1\n")
    text, code = ONE_MISTAKE[what]
    checked = of(text)
    assert codes(checked) == [code], [finding.message for finding in checked.findings]


def test_an_unread_task_is_found_beside_a_typo_elsewhere() -> None:
    text = spec(("outputs: u", "  spare: {call: a.forward, in: {x: inputs.x}}\noutputs: uu"))
    assert codes(of(text)) == ["dangling-task", "unknown-reference"]


# Where Ray refuses a thing that users expect to work, cgspec makes it work.

CLEAN = {
    "a reference to a keyword-only parameter": spec(("b.forward, in: {x: t}", "b.named, in: {x: t}")),
    "a list as one argument": spec(("b.forward, in: {x: t}", "b.forward, in: {x: [t, inputs.x]}")),
    "a positional list in a list": spec(("b.forward, in: {x: t}", "b.several, in: [t, [t, inputs.x]]")),
    "a task whose arguments are all constants": spec(("in: {x: inputs.x}", "in: {x: inputs.x}"))
    .replace("u: {call: b.forward, in: {x: t}}", "u: {call: b.constant, with: {value: 2}}")
    .replace("outputs: u", "outputs: [t, u]"),
    "a graph with no input": SPEC.replace("inputs: {x: 1}\n", "").replace("forward, in: {x: inputs.x}", "constant"),
    "an input returned as an output": spec(("outputs: u", "outputs: [u, inputs.x]")),
    "an input as the only output": SPEC.split("tasks:")[0] + "tasks: {}\noutputs: inputs.x\n",
    "the same task twice in the outputs": spec(("outputs: u", "outputs: [u, u]")),
    "the same task under two names": spec(("outputs: u", "outputs: {first: u, second: u}")),
    "unread returns": spec(
        ("t: {call: a.forward, in: {x: inputs.x}}", "t: {call: a.split, in: {x: inputs.x}, returns: [left, right]}"),
        ("in: {x: t}", "in: {x: t.left}"),
    ),
    "a multi-return read whole": spec(
        ("t: {call: a.forward, in: {x: inputs.x}}", "t: {call: a.split, in: {x: inputs.x}, returns: [left, right]}")
    ),
    "members that nobody reads": spec(
        ("a: {class: model.py:Stage}", "a: {class: model.py:Stage, axes: {dp: 4}}"), ("in: {x: t}", "in: {x: t.0}")
    ),
    "a task that is called for its effect": spec(
        ("outputs:", "  reset: {call: a.reset, returns: []}\noutputs:"),
    ),
    "a collective over one member": spec(
        ("a: {class: model.py:Stage}", "a: {class: model.py:Stage, num_gpus: 1, axes: {tp: 1}}"),
        ("in: {x: t}", "in: {x: total.0}"),
        ("  u:", "  total: {allreduce: t}\n  u:"),
    ),
    "a reference to a later task of another actor": SPEC.replace(
        "  t: {call: a.forward, in: {x: inputs.x}}\n  u: {call: b.forward, in: {x: t}}\n",
        "  u: {call: b.forward, in: {x: t}}\n  t: {call: a.forward, in: {x: inputs.x}}\n",
    ),
    "an input and a task of one name": spec(("inputs: {x", "inputs: {t"), ("inputs.x", "inputs.t")),
    "an index from the end": spec(
        ("a: {class: model.py:Stage}", "a: {class: model.py:Stage, axes: {dp: 4}}"), ("in: {x: t}", "in: {x: t.-1}")
    ),
}


@pytest.mark.parametrize("what", CLEAN)
def test_what_users_expect_to_work_is_clean(what: str) -> None:
    checked = of(CLEAN[what])
    assert checked.findings == ()
    assert checked.graph is not None


# Places.


def test_a_place_in_a_block_scalar() -> None:
    checked = of(spec(("inputs: {x: 1}", "inputs:\n  x: |\n    one\n    costs ${rows} here")))
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-var"], "spec.yaml:8:11", "${rows}")


def test_a_place_in_a_folded_expression() -> None:
    checked = of(spec(("inputs: {x: 1}", "inputs:\n  x:\n    $expr: >-\n      1 +\n      rows * 2")))
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-var"], "spec.yaml:9:7", "rows")


def test_a_place_in_a_flow_list_over_several_lines() -> None:
    checked = of(spec(("outputs: u", "outputs: [\n  u,\n  t, uu]")))
    assert (place(checked), marked(checked)) == ("spec.yaml:11:6", "uu")


def test_a_place_in_a_quoted_reference() -> None:
    checked = of(spec(("in: {x: t}", 'in: {x: "t.0"}')))
    assert (codes(checked), marked(checked)) == (["wrong-selectors"], "0")


def test_a_place_in_an_included_file_is_that_file_and_shows_the_include(folder: pathlib.Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "base.yaml").write_text("cgspec: 1\ninputs:\n  x: $rows\n  x: 2\n")
    checked = of(spec(("inputs: {x: 1}", "include: [parts/base.yaml]")))
    assert codes(checked) == ["unknown-var", "duplicate-key"]
    assert place(checked, 0) == "parts/base.yaml:3:6"
    assert place(checked, 1) == "parts/base.yaml:4:3"
    related = [(item.message, str(item.place)) for item in checked.findings[1].related]
    assert related[-1] == ("parts/base.yaml is included here", "spec.yaml:5:11")


def test_findings_of_the_main_file_come_first() -> None:
    pathlib.Path("base.yaml").write_text("cgspec: 1\ninputs: {x: $rows}\n")
    checked = of(spec(("inputs: {x: 1}", "include: base.yaml"), ("in: {x: t}", "in: {x: tt}")))
    assert [place(checked, number).split(":")[0] for number in range(2)] == ["spec.yaml", "base.yaml"]


def test_a_place_in_an_override_is_the_command_line() -> None:
    checked = of(SPEC, overrides=["run.iterations=many", "tasks.u.timeout=3", "runn.warmup=3"])
    assert codes(checked) == ["unknown-key", "wrong-type", "bad-unit"]
    found = {finding.code: finding.place for finding in checked.findings}
    assert found["wrong-type"] is not None
    assert found["wrong-type"].file == "command line"
    assert found["wrong-type"].excerpt == "run.iterations=many"
    assert [marked(checked, number) for number in (1, 2)] == ["many", "3"]


def test_a_reference_in_an_override_has_its_place_there() -> None:
    checked = of(SPEC, overrides=["tasks.u.in={x: tt}"])
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-reference"], "command line:1:16", "tt")
    assert checked.findings[0].place is not None
    assert checked.findings[0].place.excerpt == "tasks.u.in={x: tt}"


def test_a_place_in_a_variant_is_the_variant() -> None:
    checked = of(spec(more="variants:\n  fast: {run.iterations: many}\n"), variant="fast")
    assert (codes(checked), place(checked), marked(checked)) == (["wrong-type"], "spec.yaml:11:26", "many")


def test_a_place_behind_an_alias_and_a_merge_key_is_where_the_text_stands() -> None:
    text = spec(
        ("actors:\n", "x-base: &base {class: model.py:Stgae}\nactors:\n"), ("a: {class: model.py:Stage}", "a: *base")
    )
    assert place(of(text)) == "spec.yaml:2:32"
    merged = text.replace("a: *base", "a: {<<: *base, num_gpus: 1}")
    assert (place(of(merged)), marked(of(merged))) == ("spec.yaml:2:32", "Stgae")


def test_of_several_merged_maps_the_first_that_has_a_key_has_the_place() -> None:
    bases = "x-one: &one {class: model.py:Stgae}\nx-two: &two {class: model.py:Other}\n"
    merged = ("a: {class: model.py:Stage}", "a: {<<: [*one, *two]}")
    checked = of(spec(("actors:\n", f"{bases}actors:\n"), merged))
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-class"], "spec.yaml:2:30", "Stgae")


def test_one_thing_that_stands_for_a_list_has_a_place_of_its_own() -> None:
    checked = of(spec(more="profile: {kind: torch, actors: [aa]}\n"))
    assert (codes(checked), marked(checked)) == (["profile-actor"], "aa")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_are_counted_with_any_line_end(end: str) -> None:
    checked = of(spec(("outputs: u", "outputs: uu")).replace("\n", end).encode())
    assert (place(checked), marked(checked)) == ("spec.yaml:9:10", "uu")


def test_a_byte_order_mark_is_no_column() -> None:
    checked = of(b"\xef\xbb\xbf" + spec(("cgspec: 1\n", "cgspec: 1\nnaem: x\n")).encode())
    assert place(checked) == "spec.yaml:2:1"
    assert place(of(b"\xef\xbb\xbfcgspec: 2\n")) == "spec.yaml:1:9"


def test_utf_16_is_read() -> None:
    assert place(of(spec(("outputs: u", "outputs: uu")).encode("utf-16"))) == "spec.yaml:9:10"


def test_carets_stand_under_what_is_meant_behind_tabs_and_wide_characters() -> None:
    of(spec(("outputs: u", "outputs:\t{日本: uu}")))
    lines = run("spec.yaml").stdout.splitlines()
    assert lines[1] == "    9 | outputs:\t{日本: uu}"
    assert lines[2] == "        " + " " * 8 + "\t" + " " * 7 + "^^"


def test_a_long_line_is_cut_around_the_caret() -> None:
    of(spec(("in: {x: t}}", f"in: {{x: t}}, with: {{scale: [{'1, ' * 500}1]}}, timeout: 3}}")))
    lines = run("spec.yaml").stdout.splitlines()
    column = lines[2].index("^")
    assert lines[1][column] == "3"
    assert len(lines[1]) < 200


# What the command line prints.


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


# Nothing of the user's is imported.

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


# Inputs that nobody thought of.

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
