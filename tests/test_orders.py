"""Orders of whole schedules: 1F1B, GPipe, tensor parallel stages, and what file order and slots decide."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator

import pytest

from cgspec.checking import Checked, check
from cgspec.graph import Graph, TaskRef

EXAMPLES = pathlib.Path(__file__).parent / "examples"
SIZES = [(2, 2), (2, 4), (3, 5), (4, 2), (4, 4), (4, 8), (8, 32)]
NO_SLOTS = [f"tasks.{name}.slot=null" for name in ("fwd", "loss", "bwd", "step")]


def checked(name: str, *overrides: str) -> Graph:
    result = check(EXAMPLES / name, overrides=overrides)
    assert result.graph is not None, [finding.message for finding in result.errors]
    return result.graph


def orders(graph: Graph) -> dict[str, list[str]]:
    return {actor.name: [graph.tasks[number].name for number in actor.tasks] for actor in graph.actors}


def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> Iterator[str]:
    """Warm up with forwards, then one backward and one forward in turn, then the remaining backwards."""
    forwards, backwards = iter(range(microbatches)), iter(range(microbatches))
    for mb in itertools.islice(forwards, min(stages - stage, microbatches)):
        yield from forward(stage, stages, mb)
    for mb in backwards:
        yield f"bwd.{stage}.{mb}"
        for following in itertools.islice(forwards, 1):
            yield from forward(stage, stages, following)
    yield f"step.{stage}"


def forward(stage: int, stages: int, mb: int) -> Iterator[str]:
    yield f"fwd.{stage}.{mb}"
    if stage == stages - 1:
        yield f"loss.{mb}"


def gpipe(stage: int, stages: int, microbatches: int) -> Iterator[str]:
    yield from (f"fwd.{stage}.{mb}" for mb in range(microbatches))
    if stage == stages - 1:
        yield from (f"loss.{mb}" for mb in range(microbatches))
    yield from (f"bwd.{stage}.{mb}" for mb in range(microbatches))
    yield f"step.{stage}"


def test_the_generator_itself_on_two_stages_and_four_microbatches() -> None:
    shown = [name.replace("wd", "").replace(".0.", "") for name in one_forward_one_backward(0, 2, 4)]
    assert " ".join(shown) == "f0 f1 b0 f2 b1 f3 b2 b3 step.0"


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_1f1b_expands_to_the_schedule_of_its_name(stages: int, microbatches: int) -> None:
    graph = checked("1f1b.yaml", f"vars.pp={stages}", f"vars.mb={microbatches}")
    expected = {f"stage.{p}": list(one_forward_one_backward(p, stages, microbatches)) for p in range(stages)}
    assert orders(graph) == expected
    assert_bound_after_what_it_waits_for(graph)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_1f1b_without_its_slots_is_gpipe(stages: int, microbatches: int) -> None:
    graph = checked("1f1b.yaml", f"vars.pp={stages}", f"vars.mb={microbatches}", *NO_SLOTS)
    assert orders(graph) == {f"stage.{p}": list(gpipe(p, stages, microbatches)) for p in range(stages)}
    assert_bound_after_what_it_waits_for(graph)


@pytest.mark.parametrize(("stages", "ranks"), [(1, 2), (2, 1), (2, 2), (4, 1), (8, 8)])
def test_tensor_parallel_stages_expand_at_any_size(stages: int, ranks: int) -> None:
    graph = checked("tp_pp.yaml", f"vars.pp={stages}", f"vars.tp={ranks}")
    assert orders(graph) == {
        f"stage.{p}.{t}": [f"{task}.{p}.{t}" for task in ("part", "total", "hop", "norm")]
        for p in range(stages)
        for t in range(ranks)
    }
    assert [[graph.tasks[n].name for n in group.members] for group in graph.groups] == [
        [f"total.{p}.{t}" for t in range(ranks)] for p in range(stages)
    ]
    crossing = {(graph.source_name(edge.source), graph.tasks[edge.to].name) for edge in graph.edges if edge.crosses}
    assert crossing == {(f"hop.{p - 1}.{t}", f"part.{p}.{t}") for p in range(1, stages) for t in range(ranks)}
    assert_bound_after_what_it_waits_for(graph)


def assert_bound_after_what_it_waits_for(graph: Graph) -> None:
    """Every task once, after its producers and after what its actor runs before it."""
    place = {number: at for at, number in enumerate(graph.bind)}
    assert sorted(place) == list(range(len(graph.tasks)))
    for edge in graph.edges:
        if isinstance(edge.source, TaskRef):
            assert place[edge.source.task] < place[edge.to]
    for actor in graph.actors:
        assert all(place[a] < place[b] for a, b in itertools.pairwise(actor.tasks))


COUNTERS = """
cgspec: 1
actors: {A: {class: counters.py:Counter}, B: {class: counters.py:Counter}}
inputs: {x: 1}
tasks:
  %s
outputs: [q, s]
"""
P = "p: {call: A.inc, in: {x: inputs.x}}"
Q = "q: {call: B.dbl_inc, in: {x: p}}"
R = "r: {call: B.inc, in: {x: inputs.x}}"
S = "s: {call: A.dbl_inc, in: {x: r}}"


def counters(tmp_path: pathlib.Path, *tasks: str) -> Checked:
    methods = "\n".join(f"    def {name}(self, x):\n        ..." for name in ("inc", "dbl_inc"))
    (tmp_path / "counters.py").write_text(f"class Counter:\n{methods}\n")
    spec = tmp_path / "counters.yaml"
    spec.write_text(COUNTERS % "\n  ".join(tasks))
    return check(spec)


@pytest.mark.parametrize(
    ("tasks", "a", "b", "bind"),
    [
        ((P, Q, R, S), "ps", "qr", "pqrs"),
        ((P, R, Q, S), "ps", "rq", "prqs"),
        ((R, S, P, Q), "sp", "rq", "rspq"),
        ((R, P, S, Q), "ps", "rq", "rpsq"),
        ((Q, R, P, S), "ps", "qr", "pqrs"),
    ],
)
def test_each_actor_runs_its_tasks_in_the_order_of_the_file(
    tmp_path: pathlib.Path, tasks: tuple[str, ...], a: str, b: str, bind: str
) -> None:
    graph = counters(tmp_path, *tasks).graph
    assert graph is not None
    assert orders(graph) == {"A": list(a), "B": list(b)}
    assert "".join(graph.tasks[number].name for number in graph.bind) == bind


def test_an_order_that_would_block_is_refused(tmp_path: pathlib.Path) -> None:
    result = counters(tmp_path, S, P, Q, R)
    assert result.graph is None
    (finding,) = result.errors
    assert finding.code == "cycle"
    assert all(step in finding.message for step in ("s -order-> p", "p -data-> q", "q -order-> r", "r -data-> s"))


def test_a_slot_lifts_a_later_task_above_an_earlier_one(tmp_path: pathlib.Path) -> None:
    slotted = S.replace("in:", "slot: 2, in:"), P.replace("in:", "slot: 1, in:"), Q, R
    graph = counters(tmp_path, *slotted).graph
    assert graph is not None
    assert orders(graph) == {"A": ["p", "s"], "B": ["q", "r"]}
