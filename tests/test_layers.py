"""Merging by the rules of the language, against hand-worked results: include < file < variant < command line."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from cgspec.checking import Checked, check
from cgspec.merging import merge, put

BASE = """
cgspec: 1
vars: {a: 1, b: 2}
actors: {w: {class: w.py:W, num_cpus: 2}}
inputs: {x: $a}
tasks:
  one: {call: w.run, in: {x: inputs.x}}
  two: {call: w.run, in: {x: one}, with: {k: 1}}
outputs: [one, two]
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "w.py").write_text("class W:\n    def run(self, x, k=0, q=0): ...\n")
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def spec(folder: pathlib.Path, text: str, *overrides: str, variant: str | None = None, name: str = "s.yaml") -> Checked:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return check(folder / name, overrides=overrides, variant=variant)


def data(checked: Checked) -> dict[str, Any]:
    assert checked.errors == (), [finding.message for finding in checked.errors]
    return checked.data


def codes(checked: Checked) -> list[str]:
    return [finding.code for finding in checked.findings]


# the rules, on plain data


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3, "z": 4}}, {"a": {"x": 1, "y": 3, "z": 4}}),
        ({"a": [1, 2, 3]}, {"a": [4]}, {"a": [4]}),
        ({"a": {"x": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None}}, {"a": {"y": 2}}),
        ({"a": {"$expr": "1"}}, {"a": {"$count": {}}}, {"a": {"$count": {}}}),
        ({"a": {"$tensor": {"shape": [1]}}}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": {"$env": "HOME"}}, {"a": {"$env": "HOME"}}),
        ({"a": {"$$x": 1}}, {"a": {"y": 2}}, {"a": {"$$x": 1, "y": 2}}),
        ({"a": 1, "b": 2, "c": 3}, {"b": 9, "d": 4}, {"a": 1, "b": 9, "c": 3, "d": 4}),
    ],
)
def test_maps_merge_and_everything_else_is_replaced(base: Any, over: Any, expected: Any) -> None:
    merged = merge(base, over)
    assert merged == expected
    assert list(merged) == list(expected)


def test_merging_changes_neither_side() -> None:
    base, over = {"a": {"x": [1]}}, {"a": {"y": 2}}
    merge(base, over)["a"]["x"] = 5
    assert (base, over) == ({"a": {"x": [1]}}, {"a": {"y": 2}})


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("a", "x"), 5, {"a": {"x": 5, "y": 2}, "l": [1, 2]}),
        (("a", "x"), None, {"a": {"y": 2}, "l": [1, 2]}),
        (("a", "z", "w"), 1, {"a": {"x": 1, "y": 2, "z": {"w": 1}}, "l": [1, 2]}),
        (("l", 1), 9, {"a": {"x": 1, "y": 2}, "l": [1, 9]}),
        (("a",), {"x": 3}, {"a": {"x": 3, "y": 2}, "l": [1, 2]}),
        (("l",), [7], {"a": {"x": 1, "y": 2}, "l": [7]}),
    ],
)
def test_a_dotted_path_replaces_what_it_names(path: tuple[str | int, ...], value: Any, expected: Any) -> None:
    before = {"a": {"x": 1, "y": 2}, "l": [1, 2]}
    assert put(before, path, value) == expected
    assert before == {"a": {"x": 1, "y": 2}, "l": [1, 2]}


# files, variants, the command line


def test_each_layer_is_upon_the_one_before(folder: pathlib.Path) -> None:
    text = "cgspec: 1\ninclude: [base.yaml]\nvars: {b: 20}\nvariants: {v: {vars.b: 200, run.iterations: 3}}\n"
    assert data(spec(folder, text))["vars"] == {"a": 1, "b": 20}
    chosen = data(spec(folder, text, variant="v"))
    assert (chosen["vars"], chosen["run"]) == ({"a": 1, "b": 200}, {"iterations": 3})
    last = data(spec(folder, text, "vars.b=2000", "run.iterations=4", variant="v"))
    assert (last["vars"], last["run"]) == ({"a": 1, "b": 2000}, {"iterations": 4})


def test_later_includes_are_upon_earlier_ones(folder: pathlib.Path) -> None:
    (folder / "more.yaml").write_text("cgspec: 1\nvars: {a: 10}\n")
    merged = data(spec(folder, "cgspec: 1\ninclude: [base.yaml, more.yaml]\n"))
    assert merged["vars"] == {"a": 10, "b": 2}
    assert "include" not in merged


def test_a_task_is_replaced_whole_and_keeps_its_place(folder: pathlib.Path) -> None:
    more = "tasks:\n  three: {call: w.run, in: {x: two}}\n  one: {call: w.run, in: {x: inputs.x, q: inputs.x}}\n"
    checked = spec(folder, f"cgspec: 1\ninclude: [base.yaml]\n{more}outputs: three\n")
    tasks = data(checked)["tasks"]
    assert list(tasks) == ["one", "two", "three"]
    assert tasks["one"] == {"call": "w.run", "in": {"x": "inputs.x", "q": "inputs.x"}}
    replaced = spec(folder, "cgspec: 1\ninclude: [base.yaml]\ntasks: {two: {call: w.run, in: {x: one}}}\n")
    assert "with" not in data(replaced)["tasks"]["two"]


def test_a_dotted_path_overrides_a_key_of_a_task(folder: pathlib.Path) -> None:
    tasks = data(spec(folder, BASE, "tasks.two.with.k=7"))["tasks"]
    assert tasks["two"] == {"call": "w.run", "in": {"x": "one"}, "with": {"k": 7}}


def test_null_deletes(folder: pathlib.Path) -> None:
    text = "cgspec: 1\ninclude: [base.yaml]\ntasks: {two: null}\nactors: {w: {num_cpus: null}}\noutputs: one\n"
    merged = data(spec(folder, text))
    assert list(merged["tasks"]) == ["one"]
    assert merged["actors"] == {"w": {"class": "w.py:W"}}
    assert list(data(spec(folder, BASE, "tasks.two=null", "outputs=one"))["tasks"]) == ["one"]


def test_values_of_overrides_are_yaml(folder: pathlib.Path) -> None:
    merged = data(spec(folder, BASE, "inputs.x={$count: {from: 2}}", "vars.b=[1, 2.5, yes]", "vars.a=a=b"))
    assert merged["inputs"]["x"] == {"$count": {"from": 2}}
    assert merged["vars"] == {"a": "a=b", "b": [1, 2.5, "yes"]}


@pytest.mark.parametrize(
    ("override", "code"),
    [
        ("vars.aa=1", "unknown-override"),
        ("tasks.too.with.k=1", "unknown-override"),
        ("actors.v.num_gpus=1", "unknown-override"),
        ("a=1", "unknown-override"),
        ("run.iteration=3", "unknown-key"),
        ("run.iterations=many", "wrong-type"),
        ("nonsense", "bad-override"),
        ("=3", "bad-override"),
        ("vars.a=[1", "bad-override"),
    ],
)
def test_an_override_that_goes_nowhere_is_placed_on_the_command_line(
    folder: pathlib.Path, override: str, code: str
) -> None:
    (finding,) = spec(folder, BASE, override).errors
    assert finding.code == code
    assert finding.place is not None
    assert (finding.place.file, finding.place.excerpt) == ("command line", override)


def test_an_unknown_variant_offers_the_nearest(folder: pathlib.Path) -> None:
    (finding,) = spec(folder, f"{BASE}variants: {{smoke: {{vars.a: 2}}}}\n", variant="smok").errors
    assert finding.code == "unknown-variant"
    assert "smoke" in finding.message + finding.fix


# where things were said


def test_positions_keep_their_own_file(folder: pathlib.Path) -> None:
    checked = spec(folder, "cgspec: 1\ninclude: [base.yaml]\ntasks:\n  two: {call: w.run, in: {x: oen}}\n")
    (finding,) = checked.errors
    assert finding.place is not None
    assert (pathlib.Path(finding.place.file).name, finding.place.line, finding.place.column) == ("s.yaml", 4, 30)
    line = checked.line_of(("tasks", "one", "call"))
    assert line is not None
    assert (pathlib.Path(line[0]).name, line[1]) == ("base.yaml", 7)


def test_a_fault_in_an_included_file_is_placed_there(folder: pathlib.Path) -> None:
    (folder / "base.yaml").write_text(BASE.replace("w.run, in: {x: one}", "w.rum, in: {x: one}"))
    (finding,) = spec(folder, "cgspec: 1\ninclude: [base.yaml]\n").errors
    assert finding.code == "unknown-method"
    assert finding.place is not None
    assert (pathlib.Path(finding.place.file).name, finding.place.line) == ("base.yaml", 8)


def test_origins_say_which_layer_spoke(folder: pathlib.Path) -> None:
    text = "cgspec: 1\ninclude: [base.yaml]\nvars: {b: 20}\nvariants: {v: {run.iterations: 3}}\n"
    sources = spec(folder, text, "run.warmup=1", variant="v").sources
    origins = [
        sources.origin(path) for path in (("vars", "a"), ("vars", "b"), ("run", "iterations"), ("run", "warmup"))
    ]
    assert origins[0].endswith("base.yaml:3")
    assert origins[1].endswith("s.yaml:3")
    assert origins[2].endswith("s.yaml (variant v):4")
    assert origins[3] == "command line"


# includes


def test_a_circle_of_includes_is_reported_with_its_chain(folder: pathlib.Path) -> None:
    (folder / "b.yaml").write_text("cgspec: 1\ninclude: [c.yaml]\n")
    (folder / "c.yaml").write_text("cgspec: 1\ninclude: [s.yaml]\n")
    checked = spec(folder, BASE.replace("cgspec: 1", "cgspec: 1\ninclude: [b.yaml]"))
    (finding,) = checked.errors
    assert finding.code == "include-cycle"
    assert "s.yaml -> b.yaml -> c.yaml -> s.yaml" in finding.message
    assert finding.place is not None
    assert pathlib.Path(finding.place.file).name == "c.yaml"


def test_one_file_may_be_included_twice(folder: pathlib.Path) -> None:
    assert codes(spec(folder, "cgspec: 1\ninclude: [base.yaml, base.yaml]\n")) == []


def test_an_include_that_is_not_there_offers_the_nearest(folder: pathlib.Path) -> None:
    (finding,) = spec(folder, BASE.replace("cgspec: 1", "cgspec: 1\ninclude: [bse.yaml]")).errors
    assert finding.code == "include"
    assert "base.yaml" in finding.message


def test_class_files_are_relative_to_the_file_that_says_them(folder: pathlib.Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "v.py").write_text("class V:\n    def run(self, x): ...\n\ndef batch(): ...\n")
    part = "cgspec: 1\nactors: {v: {class: v.py:V}, u: {class: ../w.py:W}}\ninputs: {y: {$call: 'v.py:batch'}}\n"
    (folder / "parts" / "part.yaml").write_text(part)
    more = "include: [base.yaml, parts/part.yaml]\ntasks:\n  three: {call: v.run, in: {x: inputs.y}}\n"
    checked = spec(folder, f"cgspec: 1\n{more}  four: {{call: u.run, in: {{x: two}}}}\noutputs: [one, three, four]\n")
    merged = data(checked)
    assert merged["actors"]["v"] == {"class": "parts/v.py:V"}
    assert merged["actors"]["u"] == {"class": "w.py:W"}
    assert merged["inputs"]["y"] == {"$call": "parts/v.py:batch"}
    assert checked.root == folder


def test_root_says_what_class_files_are_relative_to(folder: pathlib.Path) -> None:
    text = BASE.replace("cgspec: 1", "cgspec: 1\nroot: ..")
    checked = spec(folder, text, name="deep/s.yaml")
    assert data(checked)["actors"]["w"]["class"] == "w.py:W"
    assert checked.root == folder
    assert "unknown-class-file" in codes(spec(folder, BASE, name="deep/s.yaml"))
