"""``export``: the script is plain Ray, runs by itself, and gives what cgspec gives."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import yaml

from cgspec.checking import Checked, check
from cgspec.running import Job, run
from cgspec.views.export import script
from tests.plain_ray import run_script

HERE = pathlib.Path(__file__).parent
SPECS = sorted((HERE.parent / "specs").rglob("*.yaml"))
EXAMPLES = sorted((HERE / "examples").glob("*.yaml"))

PARTS = """
import ray


class Part:
    def __init__(self, base=0, *, tag="-"):
        self.base, self.tag, self.count = base, tag, 0
        self.set_here = lambda x: x + 100

    def add(self, x, y=1): return x + y + self.base
    def only(self, *, x, scale=1): return x * scale
    def total(self, items): return sum(items)
    def join(self, items, extra, *, sep="+"): return self.tag + sep.join(map(str, items)) + f"|{extra}"
    def pair(self, x): return x, x + 1
    def listed(self, x): return [x, x * 2]
    def lone(self, x): return (x + 7,)
    def unpacked(self, both): return both[0] * both[1]
    def nested(self, items): return [len(item) if isinstance(item, tuple) else item for item in items]
    def note(self, x):
        self.count += x
        return object
    def seen(self, x): return self.count
    def tick(self, n=1): return n + self.base
    def many(self, *args, **named): return [*args, sorted(named.items())]
    def default(self, a, b=10, c=5): return (a, b, c)
    def placed(self, a, /, b): return a - b
    def reset(self, count=0): self.count = count


@ray.remote
class Decorated(Part):
    pass


def batch(n, k=1):
    return n * k
"""

ACTORS = """
a: {class: parts.py:Part, axes: {n: 2}, args: {base: $index.n, tag: "q'\\"\\n\\\\"}}
b: {class: parts.py:Part}
d: {class: parts.py:Decorated, args: [3]}
"""
INPUTS = """
x: {$count: {from: 1, step: 2}}
y: {$call: "parts.py:batch", args: {n: {$expr: "i + 2"}, k: 3}}
z: {$values: [1, 2, 3], cycle: true}
"""
TRICKY = {
    "by name, with gaps and constants between": """
        plus: {call: a.add, in: {x: inputs.x}, with: {y: 5}}
        mid:  {call: b.default, in: {a: inputs.x, c: inputs.y}, with: {b: 2}}
        gap:  {call: b.default, in: {a: inputs.x, c: inputs.y}}
        swap: {call: b.placed, in: {b: inputs.x, a: inputs.y}}
        kw:   {call: b.only, in: {x: inputs.z}, with: {scale: 3}}
        OUT plus.*, mid, gap, swap, kw""",
    "lists": """
        plus: {call: a.add, in: {x: inputs.x}}
        tot:  {call: b.total, in: {items: plus.*}}
        joined: {call: b.join, in: {items: [tot, inputs.y, plus.*], extra: tot}, with: {sep: "'\\"\\n"}}
        twice: {call: d.many, in: [[tot, inputs.z], tot]}
        OUT joined, tot, twice, inputs.x, inputs.y, inputs.z""",
    "returns": """
        two:  {call: a.pair, in: [inputs.x], returns: [l, r]}
        lst:  {call: a.1.listed, in: [two.1.l], returns: [p, q]}
        lone: {call: b.lone, in: [lst.p], returns: [v]}
        unp:  {call: b.unpacked, in: {both: two.0}}
        deep: {call: b.nested, in: {items: [two.0, lone.v]}}
        OUT unp, two.1, lone.v, deep, lone, inputs.x, inputs.y, inputs.z""",
    "effects": """
        plus: {call: a.add, in: {x: inputs.x}}
        eff:  {call: b.note, in: [plus.1], returns: []}
        seen: {call: b.seen, in: [inputs.y]}
        none: {call: d.reset, in: [inputs.z], returns: []}
        OUT seen, plus.0, seen""",
    "constants only": """
        tick: {call: a.tick, with: {n: 4}}
        fix:  {call: b.many, with: {k: 3, "odd key": [1, {u: null}]}}
        use:  {call: b.add, in: {x: tick.1}}
        OUT use, fix, tick.0, inputs.x, inputs.y, inputs.z""",
    "no inputs read": """
        tick: {call: b.tick}
        OUT tick, inputs.x, inputs.y, inputs.z""",
    "a name into **named": """
        free: {call: d.many, in: {u: inputs.x, v: inputs.y}, with: {w: 1}}
        more: {call: d.many, in: [inputs.x, inputs.y, inputs.z]}
        OUT free, more""",
    "a callable of the object": """
        here: {call: b.set_here, in: [inputs.x]}
        OUT here, inputs.y, inputs.z""",
    "the same twice, and twice in a call": """
        one: {call: b.add, in: {x: inputs.x, y: inputs.x}}
        two: {call: a.add, in: {x: one, y: one}}
        OUT one, one, two.*, two.0, inputs.x, inputs.y, inputs.z""",
    "every value": """
        one: {call: b.many, in: [inputs.x], with: {
            a: {$expr: "(1, [2, 3], 'it''s', -2 ** 2)"}, b: {$tensor: {shape: [2], dtype: int64, fill: 3}},
            c: {$dtype: half}, d: {$random: {shape: [2], dtype: int8, seed: 4}}, e: .inf, f: "say \\"${n}\\"",
            g: {$env: CGSPEC_NOT_THERE, default: none}, h: {$random: {shape: [1], dtype: bfloat16}}, k: $n, l: $device,
            m: {$random: {shape: [2], dtype: bool}}, o: {$dtype: {$expr: float16}}}}
        OUT one, inputs.y, inputs.z""",
}


def _text(body: str) -> str:
    lines = textwrap.dedent(body).strip("\n").splitlines()
    outputs = lines.pop().removeprefix("OUT ")
    parts = {"actors": ACTORS, "inputs": INPUTS, "tasks": "\n".join(lines)}
    sections = "".join(f"{name}:\n{textwrap.indent(text.strip(), '  ')}\n" for name, text in parts.items())
    return f"cgspec: 1\nvars: {{n: 3}}\n{sections}outputs: [{outputs}]\nrun: {{iterations: 5, warmup: 1}}\n"


def _export(checked: Checked, beside: pathlib.Path | None = None) -> str:
    assert checked.graph is not None and checked.spec is not None, [finding.message for finding in checked.errors]
    return script(checked.graph, checked.spec, checked.values.read, checked.root, beside=beside)


def _local(file: pathlib.Path, out: pathlib.Path) -> object:
    """The last outputs by cgspec's local engine."""
    checked = check(file, overrides=["engine.kind=local", "profile=[]"])
    assert checked.graph is not None and checked.spec is not None, [finding.message for finding in checked.errors]
    read, root, data = checked.values.read, checked.root, checked.data
    with contextlib.redirect_stderr(io.StringIO()):
        result = run(Job(checked.spec, checked.graph, read, root, checked.text, data, file=str(file), out=out))
    assert result.exit_code == 0, result.error
    return result.last


def _spec(folder: pathlib.Path, text: str) -> pathlib.Path:
    (folder / "parts.py").write_text(PARTS)
    file = folder / "tricky.yaml"
    file.write_text(text)
    return file


def _last(printed: str) -> str:
    return printed.partition("last outputs: ")[2].strip()


@pytest.mark.parametrize("file", [*SPECS, *EXAMPLES], ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_script_is_python_without_cgspec(file: pathlib.Path) -> None:
    text = _export(check(file))
    tree = ast.parse(text)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("cgspec") for name in imported)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert {"build", "run", "main"} <= set(functions)


def test_a_gpu_graph_has_its_transports_devices_and_collectives() -> None:
    text = _export(check(HERE / "examples" / "tp_pp.yaml"))
    assert "stage_0_0 = ray.remote(Stage).options(num_cpus=1, num_gpus=1).remote(" in text
    assert 'device="cuda"' in text
    assert "total_0_0, total_0_1 = allreduce.bind([part_0_0, part_0_1], ReduceOp.SUM)" in text
    assert 'hop_0_0 = stage_0_0.hand_off.bind(total_0_0).with_tensor_transport("accelerator")' in text
    assert "part_1_0 = stage_1_0.forward.bind(hop_0_0)" in text


def test_each_actor_s_order_is_the_graph_s() -> None:
    checked = check(HERE / "examples" / "1f1b.yaml")
    text = _export(checked)
    assert checked.graph is not None
    for actor in checked.graph.actors:
        name = actor.name.replace(".", "_")
        bound = [line.split(" = ")[0].strip() for line in text.splitlines() if f" = {name}." in line]
        assert bound == [checked.graph.tasks[task].name.replace(".", "_") for task in actor.tasks]


@pytest.mark.parametrize("body", TRICKY.values(), ids=TRICKY.keys())
def test_tricky_graphs_give_the_same_in_plain_ray(body: str, tmp_path: pathlib.Path) -> None:
    file = _spec(tmp_path, _text(body))
    (tmp_path / "script.py").write_text(_export(check(file)))
    expected = _local(file, tmp_path / "runs")
    assert _last(run_script(tmp_path / "script.py")) == repr(expected)


FEEDBACK = """
cgspec: 1
actors: {b: {class: parts.py:Part}}
inputs:
  x: {$feedback: one, lag: 2, first: {$expr: "(i, 7)[1]"}}
  y: {$expr: "i"}
tasks:
  one: {call: b.add, in: {x: inputs.x, y: inputs.y}}
  two: {call: b.note, in: [one], returns: []}
  three: {call: b.seen, in: [one]}
outputs: {one: one, three: three}
setup: [{call: b.reset, with: {count: 5}, at: phase}]
run: {iterations: 7, warmup: 2, inflight: 2}
expect:
  - {output: one, equals: 7, at: first}
  - {output: three, equals: 88, at: last}
  - {metric: latency.p95, below: 1h}
  - {metric: throughput, above: 0}
"""


def test_feedback_setup_and_a_window(tmp_path: pathlib.Path) -> None:
    file = _spec(tmp_path, FEEDBACK)
    (tmp_path / "script.py").write_text(_export(check(file)))
    expected = _local(file, tmp_path / "runs")
    assert expected == {"one": 19, "three": 88}  # 5 and 7 8 9 11 13 16 19
    assert _last(run_script(tmp_path / "script.py")) == repr(expected)


def test_a_failed_expectation_fails_the_script(tmp_path: pathlib.Path) -> None:
    file = _spec(tmp_path, FEEDBACK.replace("equals: 7", "equals: 8"))
    (tmp_path / "script.py").write_text(_export(check(file)))
    with pytest.raises(AssertionError, match="7"):
        run_script(tmp_path / "script.py")


def test_collectives_sum_over_their_groups(tmp_path: pathlib.Path) -> None:
    text = """
    cgspec: 1
    actors:
      w: {class: parts.py:Part, axes: {dp: 2}, num_gpus: 1}
      one: {class: parts.py:Part, axes: {k: 1}, num_gpus: 1}
    inputs: {x: {$each: {$expr: "i + 10 * index.dp"}, axes: {dp: 2}}}
    tasks:
      grad: {call: w.pair, in: [inputs.x], returns: [a, b]}
      sync: {allreduce: [grad.a, grad.b], returns: [a, b]}
      whole: {allreduce: grad.a}
      use: {call: w.add, in: [sync.a, whole]}
      solo: {call: one.add, in: [inputs.x.0]}
      alone: {allreduce: solo}
      end: {call: one.add, in: [alone]}
    outputs: {use: use.*, end: end.*, b: sync.*.b}
    run: {iterations: 2, warmup: 0}
    """
    (tmp_path / "script.py").write_text(_export(check(_spec(tmp_path, textwrap.dedent(text)))))
    # i = 1: grad.a is 1 and 11, their sum 12, twice and no base; solo adds 1 to 1, end another 1; b is 2 + 12
    assert _last(run_script(tmp_path / "script.py")) == repr({"use": [24, 24], "end": [3], "b": [14, 14]})


def test_what_a_spec_says_is_never_code(tmp_path: pathlib.Path) -> None:
    bad = "boom\"\"\"'''\nimport os\nraise SystemExit(9)\n\\"
    spec = {
        "cgspec": 1,
        "name": bad,
        "description": bad,
        "actors": {"b": {"class": "parts.py:Part", "args": {"tag": bad}}},
        "inputs": {"x": bad},
        "tasks": {"many": {"call": "b.many", "in": ["inputs.x"], "with": {bad: bad}}},
        "outputs": {"m": "many"},
        "run": {"iterations": 1, "warmup": 0},
        "expect": [{"output": "m", "length": 2}],
    }
    file = _spec(tmp_path, yaml.safe_dump(spec))
    (tmp_path / "script.py").write_text(_export(check(file)))
    assert _last(run_script(tmp_path / "script.py")) == repr({"m": [bad, [(bad, bad)]]})


def test_nothing_of_the_user_s_is_imported(tmp_path: pathlib.Path) -> None:
    file = _spec(tmp_path, _text(TRICKY["lists"]))
    with open(tmp_path / "parts.py", "a") as parts:
        parts.write("\nraise RuntimeError('imported')\n")
    assert "from parts import" in _export(check(file))


def test_a_file_that_no_import_can_name_is_loaded(tmp_path: pathlib.Path) -> None:
    file = _spec(tmp_path, _text(TRICKY["lists"]).replace("parts.py", "my-parts.py"))
    (tmp_path / "parts.py").rename(tmp_path / "my-parts.py")
    (tmp_path / "script.py").write_text(_export(check(file), tmp_path))
    assert _last(run_script(tmp_path / "script.py")) == repr(_local(file, tmp_path / "runs"))


def test_beside_the_spec_the_script_needs_no_path(tmp_path: pathlib.Path) -> None:
    checked = check(_spec(tmp_path, _text(TRICKY["lists"])))
    assert "sys.path" not in _export(checked, tmp_path)
    elsewhere = _export(checked, tmp_path / "scripts")
    assert 'ROOT = Path(__file__).resolve().parent / ".."' in elsewhere and "sys.path.insert(0, str(ROOT))" in elsewhere


def _run_for_real(arguments: list[str], folder: pathlib.Path) -> str:
    path = os.pathsep.join([str(HERE.parent / "specs"), str(folder)])
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_fan_s_script_runs_by_itself(tmp_path: pathlib.Path) -> None:
    (tmp_path / "fan.py").write_text(_export(check(HERE.parent / "specs" / "fan.yaml")))
    printed = _run_for_real(["fan.py"], tmp_path)
    assert "latency p50 " in printed and _last(printed) == "[1000, 1998]"


def test_scripts_give_the_same_on_ray(tmp_path: pathlib.Path) -> None:
    quickstart = check(HERE.parent / "specs" / "quickstart.yaml", overrides=["run.iterations=20"])
    bodies = [TRICKY[name].strip("\n").splitlines() for name in ("returns", "constants only")]
    (tmp_path / "quickstart.py").write_text(_export(quickstart))
    texts = [_text("\n".join(body)) for body in bodies]
    expected = []
    for number, text in enumerate(texts):
        file = _spec(tmp_path, text)
        (tmp_path / f"tricky_{number}.py").write_text(_export(check(file)))
        expected.append(repr(_local(file, tmp_path / "runs")))
    scripts = ["quickstart.py", *(f"tricky_{number}.py" for number in range(len(texts)))]
    printed = _run_for_real([str(HERE / "run_exported.py"), *scripts], tmp_path)
    shown = [_last(part) for part in printed.split("script ")[1:]]
    assert shown[0].startswith("tensor(") and shown[1:] == expected
