"""The command line: exit codes, what goes to stdout and what to stderr, and every verb on a real spec."""

import json
import pathlib
import subprocess
import sys
import textwrap

import jsonschema
import pytest

from cgspec import source
from cgspec.views.schema import schema

SPECS = pathlib.Path(__file__).parent.parent / "specs"
ACTORS = """
class Counter:
    def inc(self, x):
        return x + 1

    def fail(self, x):
        if x == 3:
            raise ValueError(f"three is {x}")
        return x
"""


def cgspec(*arguments, cwd=None, env=None):
    command = [sys.executable, "-m", "cgspec", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=120, check=False)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "actors.py").write_text(ACTORS)
    return tmp_path


def spec_in(folder, text, name="spec.yaml"):
    (folder / name).write_text(textwrap.dedent(text))
    return folder / name


GOOD = """\
    cgspec: 1
    actors: {a: {class: actors.py:Counter}}
    inputs: {x: {$count: {from: 0}}}
    tasks: {t: {call: a.inc, in: {x: inputs.x}}}
    outputs: t
    run: {iterations: 20, warmup: 2}
    expect: [{output: t, equals: {$expr: "i + 1"}}]
    variants: {short: {run.iterations: 3}}
"""


def test_a_clean_check_says_so_on_stderr_and_nothing_on_stdout(project):
    done = cgspec("check", spec_in(project, GOOD))
    assert (done.returncode, done.stdout) == (0, "")
    assert "ok (1 actor, 1 task, 1 output)" in done.stderr


def test_findings_go_to_stdout_and_the_exit_code_is_1(project):
    done = cgspec("check", spec_in(project, GOOD.replace("a.inc", "a.icn")).name, cwd=project)
    assert done.returncode == 1
    assert "spec.yaml:4:21: error: Counter has no method icn; did you mean inc? [unknown-method]" in done.stdout


def test_a_missing_file_is_a_finding(project):
    done = cgspec("check", "nowhere.yaml", cwd=project)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "nowhere.yaml cannot be read: there is no such file" in done.stdout


def test_an_unknown_command_is_a_usage_error_with_the_nearest_one():
    done = cgspec("chekc", "x.yaml")
    assert done.returncode == 2
    assert "did you mean check?" in done.stderr


def test_an_unknown_option_is_a_usage_error(project):
    assert cgspec("run", spec_in(project, GOOD), "--profiel", "torch").returncode == 2


def test_a_run_prints_its_summary_and_leaves_its_folder(project):
    done = cgspec("run", spec_in(project, GOOD).name, "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout and "Traceback" not in done.stderr
    folder = project / "runs" / "spec" / "latest"
    assert json.loads((folder / "run.json").read_text())["status"] == "passed"
    assert len((folder / "samples.csv").read_text().splitlines()) >= 20


def test_a_run_as_json_is_one_object_in_the_stable_shape(project):
    done = cgspec("run", spec_in(project, GOOD).name, "--engine", "local", "--json", "-n", "7", cwd=project)
    told = json.loads(done.stdout)
    assert list(told) == [
        "run_dir", "status", "rehearsal", "engine", "fused", "phases", "startup", "first_result_s", "outputs", "expect",
        "limits", "tasks", "metrics", "failure", "findings",
    ]  # fmt: skip
    assert [(phase["name"], phase["iterations"]) for phase in told["phases"]] == [("warmup", 2), ("measure", 7)]
    assert told["outputs"] == {"first": 1, "last": 7}
    assert (told["status"], told["failure"], told["engine"]) == ("passed", None, "local")


def test_a_variant_and_an_override_change_the_run(project):
    spec_in(project, GOOD)
    short = cgspec("run", "spec.yaml", "--variant", "short", "--engine", "local", "--json", cwd=project)
    shorter = cgspec(
        "run", "spec.yaml", "run.iterations=2", "--variant", "short", "--engine", "local", "--json", cwd=project
    )
    measured = [json.loads(done.stdout)["phases"][-1]["iterations"] for done in (short, shorter)]
    assert measured == [3, 2]


def test_a_wrong_expectation_exits_1_and_shows_both_values(project):
    done = cgspec("run", spec_in(project, GOOD.replace('"i + 1"', '"i + 2"')).name, "--engine", "local", cwd=project)
    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    assert "expected 2 found 1" in told


def test_a_method_that_raises_exits_4_and_names_task_iteration_line_and_frames(project):
    done = cgspec(
        "run", spec_in(project, GOOD.replace("a.inc", "a.fail").replace("warmup: 2", "warmup: 0")).name,
        "--engine", "local", cwd=project,
    )  # fmt: skip
    assert done.returncode == 4
    for part in ("three is 3", "t", "iteration 3", "spec.yaml:4", "actors.py", 'raise ValueError(f"three is {x}")'):
        assert part in done.stdout + done.stderr
    assert "cgspec/worker.py" not in done.stdout + done.stderr


def test_an_input_that_cannot_be_made_exits_1_and_shows_its_place_and_the_sentence(project):
    text = GOOD.replace("$count: {from: 0}", "$values: [0, 1]")
    done = cgspec("run", spec_in(project, text).name, "--engine", "local", cwd=project)
    assert done.returncode == 1
    assert "spec.yaml:3:13: the input x cannot be made for iteration 2: $values has 2 values" in done.stdout
    told = json.loads(cgspec("run", "spec.yaml", "--engine", "local", "--json", cwd=project).stdout)
    assert (told["status"], told["failure"]["file"], told["failure"]["line"]) == ("invalid", "spec.yaml", 3)


def test_an_invalid_spec_as_json_says_invalid(project):
    done = cgspec("run", spec_in(project, GOOD.replace("a.inc", "a.icn")).name, "--json", cwd=project)
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["status"], [finding["code"] for finding in told["findings"]]) == ("invalid", ["unknown-method"])


def test_viz_writes_a_png_named_after_the_spec_and_prints_its_name(project):
    done = cgspec("viz", spec_in(project, GOOD).name, cwd=project)
    assert (done.returncode, done.stdout) == (0, "spec.png\n")
    assert (project / "spec.png").read_bytes().startswith(b"\x89PNG")


def test_viz_to_stdout_is_the_picture_alone(project):
    done = cgspec("viz", spec_in(project, GOOD).name, "-o", "-", "--format", "dot", cwd=project)
    assert done.stdout.startswith("digraph")


@pytest.mark.parametrize("verb", ["viz", "export"])
def test_what_is_written_gets_the_folders_above_it_or_a_sentence(project, verb):
    name = spec_in(project, GOOD).name
    done = cgspec(verb, name, "-o", "new/folder/made.svg", cwd=project)
    assert (done.returncode, done.stdout) == (0, "new/folder/made.svg\n")
    assert (project / "new/folder/made.svg").stat().st_size > 500
    done = cgspec(verb, name, "-o", f"{name}/made.svg", cwd=project)  # a file is in the way
    assert (done.returncode, "cannot be written" in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_names_cannot_drive_the_terminal(project):
    name = 'name: "\\e[31mred\\e]0;title\\a \\u202eabc"'
    wrong = GOOD.replace("i + 1", "i + 2").replace("cgspec: 1", f"cgspec: 1\n    {name}\n    engine: local")
    spec = spec_in(project, wrong)
    for verb in (["run"], ["plan"], ["run", "sweep={matrix: {run.iterations: [1, 2]}}"]):
        done = cgspec(verb[0], spec, *verb[1:], cwd=project)
        assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout + done.stderr), verb
        assert "·[31mred·]0;title· ·abc" in done.stdout, verb
    assert "·[31mred" in cgspec("runs", cwd=project).stdout


def test_a_plan_without_ray_does_not_speak_of_it(project):
    spec = spec_in(project, GOOD)
    assert "engine local; in this process, without Ray\n" in cgspec("plan", spec, "engine=local").stdout
    assert "engine compiled; Ray local, placement PACK\n" in cgspec("plan", spec).stdout


def test_plan_as_json_has_the_stable_shape(project):
    done = cgspec("plan", spec_in(project, GOOD).name, "--json", cwd=project)
    assert json.loads(done.stdout) == {
        "actors": [{"name": "a", "class": "actors.py:Counter", "num_gpus": 0, "tasks": ["t"]}],
        "edges": [{"from": "inputs.x", "return": None, "to": "t", "arg": "x", "transport": "host", "bytes": None}],
    }


def test_plan_says_which_tasks_are_one_call(project):
    task = "t: {call: a.inc, in: {x: inputs.x}}"
    two = GOOD.replace(task, task.replace("t:", "s:", 1) + ", " + task.replace("inputs.x", "s"))
    plans = [cgspec("plan", spec_in(project, two), *more, cwd=project).stdout for more in ((), ("engine.fuse=false",))]
    assert [order for plan in plans for order in ("      s + t", "      s → t") if order in plan.splitlines()] == [
        "      s + t",
        "      s → t",
    ]


def test_what_show_prints_is_a_spec_that_plans_the_same(project):
    spec_in(project, GOOD)
    shown = cgspec("show", "spec.yaml", "--variant", "short", cwd=project)
    (project / "elsewhere").mkdir()
    again = spec_in(project / "elsewhere", shown.stdout)
    plans = [cgspec("plan", path, cwd=project).stdout for path in ("spec.yaml", again)]
    assert cgspec("check", again).returncode == 0
    assert plans[0].replace("measure 20", "measure 3") == plans[1] != ""


def test_show_origin_says_who_said_what(project):
    spec_in(project, GOOD)
    done = cgspec("show", "spec.yaml", "run.warmup=9", "--variant", "short", "--origin", "--json", cwd=project)
    told = json.loads(done.stdout)
    assert told["run.warmup"] == {"value": 9, "from": "command line"}
    assert told["run.iterations"] == {"value": 3, "from": "spec.yaml (variant short):8"}
    assert told["tasks.t.call"] == {"value": "a.inc", "from": "spec.yaml:4"}


def test_the_starter_checks_clean_runs_and_is_never_overwritten(tmp_path):
    assert cgspec("init", tmp_path).returncode == 0
    assert cgspec("init", tmp_path).returncode == 2
    done = cgspec("run", "graph.yaml", "--engine", "local", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_spec_is_clean():
    done = cgspec("check", SPECS)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", sorted(SPECS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_spec_fits_the_schema(path):
    jsonschema.validate(source.read(path.read_bytes(), path.name).data, schema())


@pytest.mark.parametrize(
    "wrong", [{"rnu": {}}, {"run": {"iterations": "x"}}, {"run": {"duration": 5}}, {"engine": "locl"}], ids=str
)
def test_the_schema_refuses_what_the_models_refuse(wrong):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"cgspec": 1, **wrong}, schema())


def test_check_and_viz_load_neither_ray_nor_torch(project):
    spec_in(project, GOOD)
    for verb in (["check"], ["viz", "-o", "out.svg"], ["plan"], ["show"]):
        command = [sys.executable, "-X", "importtime", "-m", "cgspec", verb[0], "spec.yaml", *verb[1:]]
        told = subprocess.run(command, capture_output=True, text=True, cwd=project, check=True).stderr
        loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in told.splitlines() if "|" in line}
        assert loaded.isdisjoint({"ray", "torch", "numpy"}), verb


@pytest.mark.parametrize(("switch", "kind"), [("TORCH_PROFILING", "torch"), ("PROFILING", "timeline")])
def test_ray_own_switch_chooses_the_profiler(project, switch, kind):
    import os

    env = {**os.environ, f"RAY_CGRAPH_ENABLE_{switch}": "1"}
    done = cgspec("run", spec_in(project, GOOD).name, "--engine", "local", "--json", cwd=project, env=env)
    assert json.loads(done.stdout)["phases"][-1]["profiled"] == kind
    done = cgspec("run", "spec.yaml", "profile=none", "--engine", "local", "--json", cwd=project, env=env)
    assert json.loads(done.stdout)["phases"][-1]["profiled"] is None


def test_a_variant_that_is_wrong_is_found_by_check_and_does_not_keep_the_spec_from_running(project):
    spec_in(project, GOOD.replace("short: {run.iterations: 3}", "short: {run.iteration: 3}"))
    done = cgspec("check", "spec.yaml", cwd=project)
    assert (done.returncode, "iteration is no key of run" in done.stdout) == (1, True)
    assert "(in the variant short)" in done.stdout
    assert cgspec("run", "spec.yaml", "--engine", "local", cwd=project).returncode == 0


@pytest.mark.parametrize(
    ("body", "shown"),
    [("l = []; l.append(l); return l", "[["), ('return "a\\udc80b"', "a\\\\udc80b")],
    ids=["itself", "surrogate"],
)
def test_results_that_cannot_be_written_as_they_are_end_the_run_in_order(project, body, shown):
    (project / "actors.py").write_text(f"class Counter:\n    def inc(self, x):\n        {body}\n")
    done = cgspec("run", spec_in(project, GOOD).name, "--engine", "local", "--json", cwd=project)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert json.loads(done.stdout)["status"] == "expectation-failed"
    assert shown in done.stdout


def test_what_user_code_prints_does_not_mix_with_json(project):
    (project / "actors.py").write_text(
        "class Counter:\n    def inc(self, x):\n        print('noise')\n        return x + 1\n"
    )
    done = cgspec("run", spec_in(project, GOOD).name, "--engine", "local", "--json", cwd=project)
    assert json.loads(done.stdout)["status"] == "passed"
    assert "noise" in done.stderr


def test_runs_of_a_name_that_there_is_not_offers_the_nearest(project):
    cgspec("run", spec_in(project, GOOD).name, "--engine", "local", cwd=project)
    done = cgspec("runs", "spce", cwd=project)
    assert (done.returncode, "did you mean spec?" in done.stderr) == (2, True)
