"""Every ``$`` value against hand-worked results, per iteration and per member, and what is wrong with bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from cgspec.classes import ClassRef
from cgspec.parsing import ValueReader
from cgspec.values import CannotMake, Literal, Scope, Value


def function(text: str, path: Any) -> ClassRef:
    file, _, name = text.partition(":")
    return ClassRef(file, name, file)


def reader(**variables: Any) -> ValueReader:
    found = ValueReader({}, function)
    for name, raw in variables.items():
        found.variables[name] = found.read(raw, ("vars", name))
    assert found.findings == []
    return found


def read(raw: Any, **variables: Any) -> Value:
    values = reader(**variables)
    value = values.read(raw, ("inputs", "x"))
    assert values.findings == [], values.findings
    return value


def made(raw: Any, *, scope: Scope | None = None, **variables: Any) -> Any:
    return read(raw, **variables).make(scope or Scope())


def per_iteration(raw: Any, count: int = 4, **variables: Any) -> list[Any]:
    value = read(raw, **variables)
    assert value.per_iteration
    return [value.make(Scope(i=i)) for i in range(count)]


def problems(raw: Any, **variables: Any) -> list[str]:
    values = reader(**variables)
    values.read(raw, ("inputs", "x"))
    return [finding.code for finding in values.findings]


# vars and text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("$rows", 4096),
        ("$ratio", 0.5),
        ("$flag", True),
        ("$shape", [4096, 2]),
        ("n=${rows}", "n=4096"),
        ("${rows}", "4096"),
        ("${name}_${rows}/x", "run_4096/x"),
        ("$$rows", "$rows"),
        ("cost: 5$$", "cost: 5$"),
        ("$${rows}", "${rows}"),
        ("plain", "plain"),
        ([1, "$rows", ["$name"]], [1, 4096, ["run"]]),
        ({"a": "$rows", "b": {"c": "${name}!"}}, {"a": 4096, "b": {"c": "run!"}}),
        ({"$$key": 1}, {"$key": 1}),
    ],
)
def test_vars_are_typed_as_a_whole_and_text_inside_text(raw: Any, expected: Any) -> None:
    variables = {"rows": 4096, "ratio": 0.5, "flag": True, "shape": [4096, 2], "name": "run"}
    value = read(raw, **variables)
    assert isinstance(value, Literal)
    assert value.data == expected


def test_a_var_may_use_the_vars_above_it() -> None:
    assert made("$c", a=2, b={"$expr": "a * 10"}, c=["$b", "${a}"]) == [20, "2"]


@pytest.mark.parametrize("raw", ["$nope", "${nope}", "a $ b", "$", "${}", {"$expr": "nope + 1"}])
def test_an_unknown_var_is_a_finding(raw: Any) -> None:
    assert problems(raw, rows=1) == ["unknown-var"]


# what is made once


def test_an_expression_of_constants_is_a_constant() -> None:
    assert read({"$expr": "(rows, 2 * rows)"}, rows=3) == Literal((3, 6))


def test_the_device_is_known_when_it_is_made() -> None:
    assert made({"to": "$device"}, scope=Scope(device="cuda")) == {"to": "cuda"}
    assert made({"$expr": "'gpu' if device == 'cuda' else 'host'"}) == "host"


def test_the_environment_is_read_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    value = read({"$env": "CGSPEC_X", "default": "none"})
    assert value.make(Scope()) == "none"
    monkeypatch.setenv("CGSPEC_X", "there")
    assert value.make(Scope()) == "there"
    assert "there" not in str(value)
    with pytest.raises(CannotMake, match="CGSPEC_Y"):
        made({"$env": "CGSPEC_Y"})


def test_a_call_gets_its_arguments_by_name_or_by_position() -> None:
    called: list[Any] = []

    def load(ref: ClassRef) -> Any:
        return lambda *args, **kwargs: called.append((str(ref), args, kwargs)) or 7

    scope = Scope(i=2, load=load)
    assert made({"$call": "data.py:batch", "args": {"n": {"$expr": "i"}, "k": "$rows"}}, scope=scope, rows=5) == 7
    assert made({"$call": "data.py:batch", "args": [1, {"$expr": "i + 1"}]}, scope=scope) == 7
    assert made({"$call": "data.py:batch"}, scope=scope) == 7
    assert called == [("data.py:batch", (), {"n": 2, "k": 5}), ("data.py:batch", (1, 3), {}), ("data.py:batch", (), {})]


def test_tensors_are_filled() -> None:
    import torch

    tensor = made({"$tensor": {"shape": ["$rows", 2], "dtype": "float16", "fill": 1.5}}, rows=3)
    assert tensor.dtype == torch.float16
    assert tensor.tolist() == [[1.5, 1.5]] * 3
    assert made({"$tensor": {"shape": [2], "dtype": "int64"}}).tolist() == [0, 0]
    assert made({"$dtype": "bfloat16"}) is torch.bfloat16
    assert made({"$expr": "(i, float16)"}, scope=Scope(i=1)) == (1, torch.float16)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_random_tensors_are_the_same_for_the_same_seed(dtype: str) -> None:
    import torch

    one, again, other = (made({"$random": {"shape": [64], "dtype": dtype, "seed": seed}}) for seed in (7, 7, 8))
    assert one.dtype == getattr(torch, dtype)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_values_nest() -> None:
    raw = {"a": [{"$expr": "i * 2"}, "$rows"], "b": {"c": {"$count": {"from": 5}}}}
    assert per_iteration(raw, 2, rows=9) == [{"a": [0, 9], "b": {"c": 5}}, {"a": [2, 9], "b": {"c": 6}}]


# what is made in every iteration


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"$count": {}}, [0, 1, 2, 3]),
        ({"$count": None}, [0, 1, 2, 3]),
        ({"$count": {"from": 10, "step": -3}}, [10, 7, 4, 1]),
        ({"$count": {"from": 0.5}}, [0.5, 1.5, 2.5, 3.5]),
        ({"$values": ["a", "b"], "cycle": True}, ["a", "b", "a", "b"]),
        ({"$values": [1, 2, 3, 4]}, [1, 2, 3, 4]),
        ({"$values": [{"$expr": "i + 100"}, 0], "cycle": True}, [100, 0, 102, 0]),
        ({"$expr": "(10 * (i + 1),)"}, [(10,), (20,), (30,), (40,)]),
        ("$i", [0, 1, 2, 3]),
        ("it${i}", ["it0", "it1", "it2", "it3"]),
    ],
)
def test_a_value_that_uses_the_iteration_is_made_anew(raw: Any, expected: list[Any]) -> None:
    assert per_iteration(raw) == expected


def test_values_that_run_out_say_so() -> None:
    value = read({"$values": [1, 2]})
    with pytest.raises(CannotMake, match="cycle: true"):
        value.make(Scope(i=2))


def test_feedback_is_first_until_there_is_an_output_to_feed_back() -> None:
    value = read({"$feedback": "tokens", "lag": 2, "first": {"$expr": "-i"}})
    scopes = [Scope(i=i, feedback=lambda output, lag, i=i: f"{output}@{i - lag}") for i in range(4)]  # type: ignore[misc]
    assert [value.make(scope) for scope in scopes] == [0, -1, "tokens@0", "tokens@1"]


# members


def test_index_and_size_are_filled_in_and_make_a_constant() -> None:
    value = read({"rank": "$index.tp", "of": "$size.tp", "half": {"$expr": "index.tp / size.tp"}})
    assert value.uses == {"index.tp", "size.tp"}
    assert value.bind({"index.tp": 1, "size.tp": 4}) == Literal({"rank": 1, "of": 4, "half": 0.25})


def test_a_member_that_uses_the_iteration_stays_per_iteration() -> None:
    raw = {"$call": "data.py:tokens", "args": {"n": {"$expr": "i"}, "mb": "$index.mb"}}
    bound = read(raw).bind({"index.mb": 3, "size.mb": 4})
    assert bound.per_iteration
    assert bound.uses == {"i", "call"}
    scope = Scope(i=5, load=lambda ref: lambda **given: given)
    assert bound.make(scope) == {"n": 5, "mb": 3}


def test_an_expression_that_fails_for_a_member_says_so() -> None:
    with pytest.raises(CannotMake, match=r"1 / index\.tp"):
        read({"$expr": "1 / index.tp"}).bind({"index.tp": 0})


# what is wrong


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({"$exp": "1"}, "unknown-value"),
        ({"$expr": "1 +"}, "bad-expression"),
        ({"$expr": "__import__('os')"}, "bad-expression"),
        ({"$expr": "1 / 0"}, "bad-value"),
        ({"$expr": ["1"]}, "wrong-type"),
        ({"$expr": "1", "axis": 2}, "unknown-key"),
        ({"$tensor": {"shape": [2]}}, "missing-key"),
        ({"$tensor": {"shape": [2], "dtype": "float17"}}, "unknown-dtype"),
        ({"$tensor": {"shape": [-1], "dtype": "float16"}}, "wrong-type"),
        ({"$tensor": {"shape": 2, "dtype": "float16"}}, "wrong-type"),
        ({"$tensor": [2]}, "wrong-type"),
        ({"$random": {"shape": [2], "dtype": "int8", "seed": -1}}, "wrong-type"),
        ({"$dtype": "half16"}, "unknown-dtype"),
        ({"$count": {"form": 1}}, "unknown-key"),
        ({"$values": []}, "wrong-type"),
        ({"$values": [1], "cycle": "yes"}, "wrong-type"),
        ({"$env": ""}, "wrong-type"),
        ({"$call": 3}, "wrong-type"),
        ({"$feedback": "x"}, "missing-key"),
        ({"$feedback": "x", "lag": 0, "first": 1}, "wrong-type"),
        ({"$each": 1, "axes": {"mb": 2}}, "misplaced-value"),
    ],
)
def test_a_bad_value_is_one_finding(raw: Any, code: str) -> None:
    assert problems(raw) == [code]


def test_vars_of_vars_cannot_grow_without_end() -> None:
    for grown in ("${x}${x}${x}${x}${x}${x}${x}${x}${x}", ["$x"] * 9, {"$expr": "(x, x, x, x, x, x, x, x, x)"}):
        values = reader(x=[1, 2] if isinstance(grown, list) else "xy" * 100)
        for _ in range(30):
            value = values.read(grown, ("vars", "x"))
            if values.findings:
                break
            values.variables["x"] = value
        assert [finding.code for finding in values.findings] == ["bad-value"]
