"""Independent mistakes are found at once, cascades are not, and what users expect to work is clean."""

from __future__ import annotations

import pathlib

import pytest
from check_cases import SPEC, codes, marked, of, spec


def test_the_spec_that_the_mistakes_are_made_in_is_clean() -> None:
    checked = of(SPEC)
    assert checked.findings == ()
    assert checked.graph is not None


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


@pytest.mark.parametrize(
    ("said", "message", "fix"),
    [
        ("yes", "finite cannot be 'yes'; it is true", "in YAML 1.2 yes is text: write true"),
        ('"True"', "finite cannot be 'True'; it is true", "write true without quotes"),
        ("false", "finite cannot be false; it is true", ""),
        ("null", "nothing is expected of the output", "add equals, "),
    ],
)
def test_truth_values_are_spoken_of_in_the_words_of_yaml(said: str, message: str, fix: str) -> None:
    (finding,) = of(spec(more=f"expect: [{{output: u, finite: {said}}}]\n")).findings
    assert finding.message == message and finding.fix.startswith(fix)
