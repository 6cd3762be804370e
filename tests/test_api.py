"""The Python interface, on the local engine; the compiled engine's is in test_engines."""

import asyncio
import textwrap

import pytest

import cgspec
from cgspec.errors import SpecError, TaskRaised, UsageError

SPEC = """\
    cgspec: 1
    actors: {a: {class: actors.py:Counter}}
    inputs: {x: {$count: {from: 0}}, y: 10}
    tasks: {s: {call: a.add, in: {x: inputs.x, y: inputs.y}}}
    outputs: {sum: s}
    run: {iterations: 3, warmup: 0, inflight: 4}
    engine: local
"""
ACTORS = """
class Counter:
    def add(self, x, y):
        if x < 0:
            raise ValueError("negative")
        return x + y
"""


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "actors.py").write_text(ACTORS)
    (tmp_path / "spec.yaml").write_text(textwrap.dedent(SPEC))
    return tmp_path / "spec.yaml"


def test_check_gives_findings_and_never_raises(spec):
    assert cgspec.check(spec) == ()
    assert [finding.code for finding in cgspec.check(spec, **{"tasks.s.call": "a.ad"})] == ["unknown-method"]
    assert [finding.code for finding in cgspec.check("nowhere.yaml")] == ["no-file"]


def test_a_spec_with_errors_cannot_be_loaded(spec):
    with pytest.raises(SpecError, match="did you mean add"):
        cgspec.load(spec, **{"tasks.s.call": "a.ad"})


def test_a_loaded_spec_draws_itself(spec):
    assert cgspec.load(spec)._repr_svg_().lstrip().startswith(("<?xml", "<svg"))


def test_a_live_graph_is_called_with_inputs_by_name_and_makes_the_others(spec):
    with cgspec.start(cgspec.load(spec)) as graph:
        assert graph() == {"sum": 10}  # x counts from 0
        assert graph(y=1) == {"sum": 2}
        assert graph(x=5, y=6) == {"sum": 11}


def test_results_of_overlapping_calls_come_in_order(spec):
    with cgspec.start(spec) as graph:
        futures = [graph.submit(x=x) for x in range(20)]
        assert [future.result()["sum"] for future in futures] == list(range(10, 30))


def test_asyncio_calls_do_not_block_each_other(spec):
    async def many(graph):
        return await asyncio.gather(*(graph.call(x=x, y=0) for x in range(10)))

    with cgspec.start(spec) as graph:
        results = asyncio.run(many(graph))
    assert sorted(result["sum"] for result in results) == list(range(10))


def test_an_unknown_input_is_a_usage_error_and_the_graph_goes_on(spec):
    with cgspec.start(spec) as graph:
        with pytest.raises(UsageError, match="there is no input z"):
            graph(z=1)
        assert graph(x=1, y=1) == {"sum": 2}


def test_a_task_that_raises_raises_in_the_caller_and_the_graph_goes_on(spec):
    with cgspec.start(spec) as graph:
        with pytest.raises(TaskRaised, match="negative"):
            graph(x=-1)
        assert graph(x=1, y=1) == {"sum": 2}


def test_run_is_the_command_line_s_run(spec):
    result = cgspec.run(spec, out="elsewhere", **{"run.iterations": 2})
    assert (result.status, result.last, result.run_dir.parent.parent.name) == ("passed", {"sum": 11}, "elsewhere")


def test_ray_s_own_switches_mean_the_same_as_on_the_command_line(spec, monkeypatch):
    monkeypatch.setenv("RAY_CGRAPH_ENABLE_PROFILING", "1")
    assert [phase.profiled for phase in cgspec.run(spec).record.phases][-1] == "timeline"
    said = cgspec.run(spec, profile="none")
    assert [phase.profiled for phase in said.record.phases][-1] is None


def test_there_is_nothing_else_in_the_interface():
    with pytest.raises(AttributeError):
        cgspec.nothing  # noqa: B018
    assert sorted(cgspec.__all__) == ["LiveGraph", "Loaded", "OpenRun", "check", "load", "open_run", "run", "start"]


def test_a_closed_graph_says_that_it_is(spec):
    with cgspec.start(spec) as graph:
        assert graph() == {"sum": 10}
    with pytest.raises(UsageError, match="is closed"):
        graph()


def test_a_live_graph_makes_the_calls_of_setup_first(spec):
    spec.write_text(spec.read_text() + "setup: [{call: a.reset, with: {y: 100}}]\n")
    (spec.parent / "actors.py").write_text(
        "class Counter:\n"
        "    base = 0\n"
        "    def reset(self, y):\n        self.base = y\n"
        "    def add(self, x, y):\n        return self.base + x + y\n"
    )
    with cgspec.start(spec) as graph:
        assert graph(x=1, y=1) == {"sum": 102}


def test_a_function_of_setup_that_raises_is_the_user_s_failure(spec):
    (spec.parent / "data.py").write_text("def broken():\n    raise ValueError('no data')\n")
    text = spec.read_text().replace("engine: local", "engine: local\nsetup: [{call: a.add, with: {x: 1, y: 2}}]")
    spec.write_text(text.replace("y: 2}", 'y: {$call: "data.py:broken"}}'))
    result = cgspec.run(spec)
    assert (result.status, result.record.failure.kind) == ("task-raised", "raised")
    assert "no data" in result.record.failure.message


def test_a_loaded_spec_takes_no_more_overrides(spec):
    loaded = cgspec.load(spec)
    with pytest.raises(UsageError, match="give rehearse and overrides to load"), cgspec.start(loaded, rehearse=True):
        pass
