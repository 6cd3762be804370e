"""What equals what, what is close to what, and what a verdict says; against torch where torch has an opinion."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy
import pytest
import torch
from jobs import fan, graph, one, reader, spec

from cgspec.comparison import close, equal
from cgspec.conditions import CONDITIONS, Outcome, Seen
from cgspec.expectations import Judge, Verdict
from cgspec.metrics import Metrics, judge_metrics
from cgspec.values import Scope

NAN = float("nan")
Pair = namedtuple("Pair", "a b")


class Odd:
    """Cannot be compared, shown, hashed or measured."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparing")

    def __repr__(self) -> str:
        raise RuntimeError("no showing")

    def __len__(self) -> int:
        raise RuntimeError("no measuring")

    __hash__ = None  # type: ignore[assignment]


SAME: list[Any] = [
    (3, 3),
    (3, 3.0),
    (3, numpy.int64(3)),
    (0.5, torch.tensor(0.5)),
    (3, torch.tensor(3)),
    ("a", "a"),
    (None, None),
    (True, True),
    ((10,), torch.Size([10])),
    ((0, (10,), torch.float16), (0.0, torch.Size([10]), torch.float16)),
    ([1, [2, {"a": (3,)}]], [1, [2, {"a": (3,)}]]),
    ((1, 2), Pair(1, 2)),
    ({"a": 1, "b": 2}, OrderedDict(b=2, a=1)),
    (torch.ones(2, 3), torch.ones(2, 3)),
    (torch.ones(0, 3), torch.ones(0, 3)),
    (torch.ones(2).bfloat16(), torch.ones(2).bfloat16()),
    (torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2).to(torch.float8_e4m3fn)),
    (torch.ones(2, requires_grad=True), torch.ones(2)),
    (numpy.ones(3), numpy.ones(3)),
    (float("inf"), float("inf")),
    ({1, 2}, {2, 1}),
    pytest.param(10**5000, 10**5000, id="huge"),
]
DIFFERENT: list[Any] = [
    (3, 4, ""),
    (True, 1, ""),
    (1, True, ""),
    (3, "3", ""),
    (None, 0, ""),
    ([1], (1,), "a tuple is not a list"),
    ((1,), [1], "a list is not a tuple"),
    ([1, 2], [1, 2, 3], "3 elements, not 2"),
    ({"a": 1}, {"b": 1}, "without ['a'] and ['b'] beside it"),
    (NAN, NAN, "NaN equals nothing"),
    (torch.ones(2), torch.ones(2, dtype=torch.float64), "dtype float64, not float32"),
    (torch.ones(2), torch.ones(1, 2), "shape [1, 2], not [2]"),
    (torch.tensor([NAN]), torch.tensor([NAN]), "NaN equals nothing"),
    (torch.ones(2), numpy.ones(2, dtype="float32"), "numpy array"),
    ([1.0, 1.0], torch.ones(2), "a tensor of float32 [2] is not a list"),
    (numpy.ones(2), numpy.ones(2, dtype="float32"), "dtype float32, not float64"),
    (numpy.array(["a", "b"]), numpy.array(["a", "c"]), "1 of 2 elements"),
    pytest.param(10**5000, 10**5000 + 1, "", id="huge"),
    (Odd(), Odd(), "no comparing"),
    (3, Odd(), ""),
    ("aaa", b"aaa", ""),
]


@pytest.mark.parametrize("expected, found", SAME)
def test_equal_values_are_equal(expected: Any, found: Any) -> None:
    assert equal(expected, found) is None


@pytest.mark.parametrize("expected, found, note", DIFFERENT)
def test_different_values_are_told_apart_without_a_traceback(expected: Any, found: Any, note: str) -> None:
    difference = equal(expected, found)
    assert difference is not None
    assert note in str(difference)


def test_the_first_difference_is_placed() -> None:
    one_, other = torch.zeros(2, 3), torch.zeros(2, 3)
    other[1, 2] = 5
    difference = equal({"a": [0, one_]}, {"a": [0, other]})
    assert difference is not None
    assert str(difference) == "at .a[1][1][2]: 5.0 (1 of 6 elements differ)"
    assert difference.expected == "0.0"


@pytest.mark.parametrize("seed", range(40))
def test_close_agrees_with_torch_on_random_tensors(seed: int) -> None:
    torch.manual_seed(seed)
    dtype = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64][seed % 5]
    expected = torch.randn(3, 4).to(dtype)
    found = expected + torch.randn(3, 4).to(dtype) * 10.0 ** -(seed % 9)
    if seed % 7 == 0:
        expected[0, 0] = found[0, 0] = float("inf")
    if seed % 11 == 5:
        expected[1, 1] = found[1, 1] = NAN
    try:
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        agrees = True
    except AssertionError:
        agrees = False
    assert (close(expected, found, rtol=1e-3, atol=1e-4) is None) == agrees


@pytest.mark.parametrize(
    "expected, found, good",
    [
        (1.0, 1.0 + 5e-4, True),
        (1.0, 1.0 + 2e-3, False),
        (1.0, NAN, False),
        (float("inf"), float("inf"), True),
        (float("inf"), 1.0, False),
        ([1, 2], (1.0, 2.0001), True),
        ([1, 2], torch.tensor([1.0, 2.0001]), True),
        ([[1, 2]], torch.tensor([1.0, 2.0]), False),
        ([1, 2], numpy.array([1, 2]), True),
        (torch.ones(2), [1, 1], True),
        (0.5, torch.tensor(0.5001), True),
        ([0.5, [1.0]], [torch.tensor(0.5001), torch.tensor([1.0])], True),
        ({"a": 1.0}, {"a": 1.0001}, True),
        ({"a": 1.0}, {"b": 1.0001}, False),
        ("x", "x", True),
        ("x", 1.0, False),
        ([1, 2], [1, 2, 3], False),
        (torch.ones(2), "text", False),
        (1.0, None, False),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), True),
        pytest.param(10**5000, 1.0, False, id="huge"),
    ],
)
def test_close_takes_what_has_the_same_numbers(expected: Any, found: Any, good: bool) -> None:
    assert (close(expected, found, rtol=1e-3, atol=0) is None) == good


def look(condition: str, said: Any, found: Any, i: int = 3, **inputs: Any) -> Outcome:
    entry = spec(expect=[{"output": 0, condition: said}]).expect[0]
    made = CONDITIONS[condition](getattr(entry, condition), lambda data: reader().read(data, ()))
    return made(found, Seen(Scope(i=i), inputs))


@pytest.mark.parametrize(
    "condition, said, found, good",
    [
        ("equals", {"$expr": "i + 1"}, 4, True),
        ("equals", {"$tensor": {"shape": [2], "dtype": "float16", "fill": 1}}, torch.ones(2).half(), True),
        ("equals", None, None, True),
        ("finite", True, [1.0, {"a": torch.ones(2), "name": "x"}], True),
        ("finite", True, [1.0, {"a": torch.tensor([1.0, NAN])}], False),
        ("finite", True, float("inf"), False),
        ("finite", True, complex(0, NAN), False),
        ("finite", True, numpy.float32("nan"), False),
        ("finite", True, numpy.array([1.0, NAN]), False),
        ("finite", True, torch.ones(2).to(torch.float8_e5m2), True),
        ("finite", True, torch.ones(2, dtype=torch.int8), True),
        ("finite", True, [], True),
        ("finite", True, "text", False),
        ("finite", True, None, False),
        pytest.param("finite", True, 10**5000, True, id="huge"),
        ("shape", [2, 3], torch.ones(2, 3), True),
        ("shape", [{"$expr": "i"}, 3], torch.ones(3, 3), True),
        ("shape", [2, 3], torch.ones(3, 2), False),
        ("shape", [2], [1, 2], False),
        ("dtype", "float16", torch.ones(1).half(), True),
        ("dtype", "half", torch.ones(1).half(), True),
        ("dtype", "float32", torch.ones(1).half(), False),
        ("dtype", "float32", numpy.ones(1, dtype="float32"), True),
        ("dtype", "float32", torch.float32, True),
        ("dtype", "float32", 1.0, False),
        ("length", 2, [1, 2], True),
        ("length", 3, torch.ones(3, 1), True),
        ("length", 1, torch.tensor(1), False),
        ("length", 2, 5, False),
        ("all_equal", True, [torch.ones(2), torch.ones(2)], True),
        ("all_equal", True, [torch.ones(2), torch.zeros(2)], False),
        ("all_equal", True, torch.ones(4, 2), True),
        ("all_equal", True, torch.tensor([1, 2]), False),
        ("all_equal", True, torch.ones(0), True),
        ("all_equal", True, [], True),
        ("all_equal", True, 3, False),
        ("equals_input", "x", 7, True),
        ("equals_input", "inputs.x", 8, False),
        ("close", {"to": 1.0, "rtol": 1e-3}, 1.0001, True),
    ],
)
def test_conditions(condition: str, said: Any, found: Any, good: bool) -> None:
    assert look(condition, said, found, x=7).passed is good


def verdicts(entries: list[dict[str, Any]], outputs: list[list[object]], made: Any = None) -> tuple[Verdict, ...]:
    judge = Judge(made or fan(), spec(expect=entries).expect, reader().read)
    for i, values in enumerate(outputs):
        seen = Seen(Scope(i=i), {"x": i})
        if i == 0:
            judge.look("first", values, seen)
        judge.look("every", values, seen)
    judge.look("last", outputs[-1], Seen(Scope(i=len(outputs) - 1), {"x": len(outputs) - 1}))
    return judge.verdicts()


def test_a_verdict_tells_the_first_failure_and_counts_the_others() -> None:
    (found,) = verdicts([{"output": 1, "equals": {"$expr": "i if i < 2 else 9"}}], [[0, i] for i in range(5)])
    assert (found.passed, found.iteration, found.expected, found.found) == (False, 2, "9", "2")
    assert (found.looked, found.failed, found.what) == (5, 3, "output 1 equals")


def test_first_and_last_look_once() -> None:
    first, last = verdicts(
        [{"output": 0, "equals": 0, "at": "first"}, {"output": -1, "equals": 4, "at": "last"}],
        [[i, i] for i in range(5)],
    )
    assert (first.passed, first.iteration, first.looked) == (True, 0, 1)
    assert (last.passed, last.iteration, last.looked) == (True, 4, 1)


def test_an_item_is_picked_first_and_its_absence_is_told() -> None:
    good, missing, by_key = verdicts(
        [
            {"output": 0, "item": -1, "equals": 2},
            {"output": 0, "item": 5, "equals": 2},
            {"output": 1, "item": "a", "equals": 3},
        ],
        [[(1, 2), {"a": 3}]],
    )
    assert good.passed and by_key.passed
    assert not missing.passed and missing.found == "(1, 2), which has no item 5"


def test_several_conditions_of_one_entry_are_several_verdicts() -> None:
    found = verdicts([{"output": 0, "shape": [2], "finite": True}], [[torch.ones(2), 0]])
    assert [(verdict.what, verdict.passed) for verdict in found] == [
        ("output 0 finite", True),
        ("output 0 shape", True),
    ]


def test_outputs_are_found_by_name() -> None:
    (found,) = verdicts([{"output": "work", "length": 2}], [[[1, 2]]], one("echo", 1))
    assert found.passed


def test_odd_values_are_judged_without_a_traceback() -> None:
    said = {"equals": 3, "close": {"to": 3}, "finite": True, "shape": [1], "dtype": "float32", "length": 1}
    said |= {"all_equal": True, "equals_input": "x"}
    entries = [{"output": 0, name: value} for name, value in said.items()]
    odd_ones = [Odd(), [Odd()], {"a": Odd()}, object(), lambda: 0, NotImplemented, 1j, b"x", range(3), {1}, Exception()]
    for odd in odd_ones:
        found = verdicts(entries, [[odd, 0]])
        assert all(verdict.passed in (True, False) and len(verdict.found) < 1000 for verdict in found)


def test_a_list_that_holds_itself_is_judged() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    found = verdicts([{"output": 0, "equals": [1, [1, [1]]]}, {"output": 0, "finite": True}], [[loop, 0]])
    assert [verdict.passed for verdict in found] == [False, False]


def test_an_expected_value_that_cannot_be_made_fails_with_a_sentence() -> None:
    (found,) = verdicts([{"output": 0, "equals": {"$values": [5]}}], [[5, 0], [5, 0]])
    assert (found.passed, found.iteration) == (False, 1)
    assert "$values has 1 values" in found.expected


def test_what_was_never_looked_at_is_not_judged() -> None:
    judge = Judge(fan(), spec(expect=[{"output": 0, "equals": 1}]).expect, reader().read)
    (found,) = judge.verdicts()
    assert (found.passed, found.found) == (None, "not looked at")


def bounds(entry: dict[str, Any], measured: Metrics | None, *, rehearsal: bool = False) -> Verdict:
    (found,) = judge_metrics(fan(), spec(expect=[entry]).expect, reader().read, measured, rehearsal=rehearsal)
    return found


MEASURED = Metrics({"latency.p95": 0.004, "throughput": 150.0}, {0: {"busy.p50": 0.002}, 2: {"busy.p50": 0.003}})


@pytest.mark.parametrize(
    "entry, passed, found, margin",
    [
        ({"metric": "latency.p95", "below": "5ms"}, True, "4 ms, 20% inside the bound", 0.2),
        ({"metric": "latency.p95", "below": "2ms"}, False, "4 ms, 100% outside the bound", -1.0),
        ({"metric": "throughput", "above": 100}, True, "150/s, 50% inside the bound", 0.5),
        ({"metric": "busy.p50", "task": "double", "above": "1ms"}, True, "2 ms, 100% inside the bound", 1.0),
        ({"metric": "busy.p50", "task": "right", "below": "1ms"}, None, "not measured", None),
        ({"metric": "latency.p50", "below": "1ms"}, None, "not measured", None),
        ({"metric": "latency.p95", "below": "5"}, False, None, None),
    ],
)
def test_metrics_are_judged_with_their_margin(
    entry: dict[str, Any], passed: bool | None, found: str | None, margin: float | None
) -> None:
    verdict = bounds(entry, MEASURED)
    assert verdict.passed is passed
    assert found is None or verdict.found == found
    assert verdict.margin == (None if margin is None else pytest.approx(margin))


def test_metrics_are_not_judged_in_a_rehearsal() -> None:
    verdict = bounds({"metric": "latency.p95", "below": "1ms"}, MEASURED, rehearsal=True)
    assert (verdict.passed, verdict.found) == (None, "not judged in a rehearsal")


def test_of_a_family_the_member_that_is_furthest_out_counts() -> None:
    from jobs import actor, task

    from cgspec.graph import InputRef, TaskRef

    tasks = [task(f"part.{n}", n, "echo", {"x": InputRef(0)}) for n in range(3)]
    family = graph({"x": 1}, [actor(f"a.{n}", (n,)) for n in range(3)], tasks, [("p", TaskRef(0))])
    measured = Metrics({}, {n: {"busy.p50": 0.001 * (n + 1)} for n in range(3)})
    entries = spec(
        expect=[
            {"task": "part", "metric": "busy.p50", "below": "2ms"},
            {"task": "part.1", "metric": "busy.p50", "below": "2500us"},
            {"task": "part.*", "metric": "busy.p50", "above": "500us"},
            {"task": {"$at": "part", "axis0": -1}, "metric": "busy.p50", "above": "2ms"},
        ]
    ).expect
    found = judge_metrics(family, entries, reader().read, measured, rehearsal=False)
    assert [verdict.passed for verdict in found] == [False, True, True, True]
