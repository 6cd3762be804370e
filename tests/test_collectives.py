"""Collectives give the same on every engine: values by hand, every reduction, every dtype, failures without a hang."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray
import torch
from engines_running import Shared, error_of, one, options, started
from graphs import Drawing

from cgspec import collectives
from cgspec.engines import Phase
from cgspec.graph import Collective

pytestmark = pytest.mark.slow

MEMBER = "ranks.py:Member"
REDUCTIONS = {
    "sum": lambda xs: sum(xs),
    "product": lambda xs: torch.stack(xs).prod(0).to(xs[0].dtype),
    "max": lambda xs: torch.stack(xs).amax(0),
    "min": lambda xs: torch.stack(xs).amin(0),
    "avg": lambda xs: sum(xs).div(len(xs), rounding_mode=None if xs[0].is_floating_point() else "trunc"),
}


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    SHARED.end()
    ray.shutdown()


@pytest.fixture(params=["local", "compiled", "direct"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


SHARED = Shared()
run = SHARED.run


def opt(kind: str, **more: Any) -> Any:
    return options(kind, rehearse=True, **more)


def members(size: int) -> Drawing:
    """Four actors, whatever the size: all graphs can use the same ones."""
    drawing = Drawing().input("x")
    for rank in range(max(size, 4)):
        drawing.actor(f"m.{rank}", MEMBER, rank)
    return drawing


def made(drawing: Drawing, size: int, task: str = "p", method: str = "make", **consts: Any) -> list[str]:
    for rank in range(size):
        drawing.task(f"{task}.{rank}", f"m.{rank}.{method}", {"x": "inputs.x"}, consts=consts)
    return [f"{task}.{rank}" for rank in range(size)]


def listed(drawing: Drawing, names: list[str]) -> list[str]:
    """Each member's result, read on the member's own actor."""
    found = []
    for name in names:
        rank = name.rsplit(".", 1)[1]
        drawing.task(f"l.{name}", f"m.{rank}.listed", {"t": name})
        found.append(f"l.{name}")
    return found


def test_allreduce_allgather_and_reducescatter_as_worked_out_by_hand(kind: str) -> None:
    drawing = members(2)
    parts = made(drawing, 2)
    drawing.collective("s", "allreduce", [*parts]).collective("g", "allgather", [*parts])
    drawing.collective("r", "reducescatter", [*parts], op="max")
    outputs = listed(drawing, ["s.0", "s.1", "g.0", "g.1", "r.0", "r.1"])
    # x = 1: member 0 has rows 1, 11, 21, 31, member 1 has 2, 12, 22, 32, each twice
    total = [[3.0, 3.0], [23.0, 23.0], [43.0, 43.0], [63.0, 63.0]]
    gathered = [[float(row)] * 2 for row in (1, 11, 21, 31, 2, 12, 22, 32)]
    upper, lower = [[2.0, 2.0], [12.0, 12.0]], [[22.0, 22.0], [32.0, 32.0]]
    found = run(drawing.graph(*outputs), [[1], [1]], opt(kind))
    assert found == [[total, total, gathered, gathered, upper, lower]] * 2


def test_every_reduction_of_every_dtype(kind: str) -> None:
    dtypes = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool"]
    drawing, size = members(3), 3
    for dtype in dtypes:
        parts = made(drawing, size, dtype, dtype=dtype, rows=3)
        for op in REDUCTIONS:
            drawing.collective(f"{dtype}-{op}", "allreduce", [*parts], op=op)
    graph = drawing.graph(*(f"{dtype}-{op}.{rank}" for dtype in dtypes for op in REDUCTIONS for rank in range(3)))
    (values,) = run(graph, [[1]], opt(kind))
    for dtype in dtypes:
        kinds = torch.int32 if dtype == "bool" else getattr(torch, dtype)
        rows = [(torch.arange(3).reshape(-1, 1) * 10 + 1 + rank).expand(-1, 2) for rank in range(size)]
        rows = [row.to(getattr(torch, dtype)).to(kinds) for row in rows]
        for op, reduce in REDUCTIONS.items():
            expected = reduce(rows).to(getattr(torch, dtype))
            for _ in range(size):
                torch.testing.assert_close(values.pop(0), expected, msg=f"{dtype} {op}")


def test_fused_operands_differ_in_shape(kind: str) -> None:
    drawing = members(2)
    for rank in range(2):
        drawing.task(f"p.{rank}", f"m.{rank}.pair", {"x": "inputs.x"}, returns=("a", "b"))
    drawing.collective("f", "allreduce", [["p.0.a", "p.0.b"], ["p.1.a", "p.1.b"]], returns=("a", "b"))
    graph = drawing.graph("f.0.a", "f.1.b", "f.1", unread=("f.0.b",))
    (found,) = run(graph, [[3]], opt(kind))
    a, b = torch.full((2, 3), 7.0), torch.full((5,), 3.0)
    assert torch.equal(found[0], a) and torch.equal(found[1], b)
    assert isinstance(found[2], tuple) and torch.equal(found[2][0], a) and torch.equal(found[2][1], b)


def test_fused_allgathers_and_reducescatters_are_one_after_the_other(kind: str) -> None:
    drawing = members(2)
    for rank in range(2):
        drawing.task(f"p.{rank}", f"m.{rank}.pair", {"x": "inputs.x"}, returns=("a", "b"))
        drawing.task(f"q.{rank}", f"m.{rank}.make", {"x": "inputs.x"}, consts={"rows": 2, "dtype": "int64"})
    drawing.collective("g", "allgather", [["p.0.a", "q.0"], ["p.1.a", "q.1"]], returns=("a", "b"))
    drawing.collective("r", "reducescatter", [["p.0.a", "q.0"], ["p.1.a", "q.1"]], returns=("a", "b"))
    unread = ("g.0.b", "g.1.a", "r.0.a", "r.1.b", "p.0.b", "p.1.b")
    graph = drawing.graph("g.0.a", "g.1.b", "r.0.b", "r.1.a", unread=unread)
    (found,) = run(graph, [[3]], opt(kind))
    assert found[0].tolist() == [[3.0] * 3] * 2 + [[4.0] * 3] * 2
    assert found[1].tolist() == [[3, 3], [13, 13], [4, 4], [14, 14]]
    assert (found[2].tolist(), found[3].tolist()) == ([[7, 7]], [[7.0] * 3])


def test_a_group_of_one_gives_the_operand_itself_as_another_tensor(kind: str) -> None:
    drawing = members(1)
    drawing.task("p.0", "m.0.make", {"x": "inputs.x"})
    for name in ("allreduce", "allgather", "reducescatter"):
        drawing.collective(name, name, ["p.0"], op="avg")
    drawing.task("d", "m.0.spoil", {"t": "allreduce.0"})
    drawing.task("l", "m.0.listed", {"t": "p.0"})
    (found,) = run(drawing.graph("l", "allgather.0", "reducescatter.0", "d"), [[1]], opt(kind))
    rows = [[1.0, 1.0], [11.0, 11.0], [21.0, 21.0], [31.0, 31.0]]
    assert (found[0], found[1].tolist(), found[2].tolist()) == (rows, rows, rows)


def test_results_belong_to_their_member_alone(kind: str) -> None:
    drawing = members(2)
    parts = made(drawing, 2)
    drawing.collective("s", "allreduce", [*parts]).collective("g", "allgather", [*parts])
    for name in ("s.0", "g.0"):
        drawing.task(f"d.{name}", "m.0.spoil", {"t": name})
    outputs = listed(drawing, ["p.0", "p.1", "s.1", "g.1"])
    (found,) = run(drawing.graph(*outputs, "d.s.0", "d.g.0"), [[1]], opt(kind))
    assert [rows[0][0] for rows in found[:4]] == [1.0, 2.0, 3.0, 1.0]


def test_operands_with_history_and_strides_are_taken(kind: str) -> None:
    drawing = members(2)
    parts = made(drawing, 2, method="transposed")
    drawing.collective("s", "allreduce", [*parts]).collective("g", "allgather", [*parts])
    (found,) = run(drawing.graph("s.1", "g.0"), [[0]], opt(kind))
    own = torch.arange(6.0).reshape(2, 3).t()
    assert torch.equal(found[0], own + own + 1) and torch.equal(found[1], torch.cat([own, own + 1]))


def test_several_groups_of_one_size_are_apart(kind: str) -> None:
    """Two pairs in one graph, and a second collective over a pair that crosses them."""
    drawing = members(4)
    parts = made(drawing, 4)
    drawing.collective("a", "allreduce", parts[:2]).collective("b", "allreduce", parts[2:])
    drawing.collective("c", "allreduce", ["a.1", "b.0"])
    outputs = listed(drawing, ["a.0"])
    drawing.task("l.c.0", "m.1.listed", {"t": "c.0"}).task("l.b.1", "m.3.listed", {"t": "b.1"})
    (found, again) = run(drawing.graph(*outputs, "l.b.1", "l.c.0", unread=("c.1",)), [[0], [100]], opt(kind))
    assert [rows[0][0] for rows in found] == [1.0, 5.0, 6.0]
    assert [rows[0][0] for rows in again] == [201.0, 205.0, 406.0]


def test_collectives_are_pipelined_and_timed(kind: str) -> None:
    drawing = members(2)
    parts = made(drawing, 2)
    drawing.collective("s", "allreduce", [*parts])
    graph = drawing.graph("s.0", "s.1")
    with SHARED.started(graph, opt(kind, inflight=3), Phase("measure", 20)) as engine:
        for i in range(3):
            engine.submit([i])
        for i in range(20):
            assert engine.fetch().values[0][0, 0] == 2 * i + 1
            if i < 17:
                engine.submit([i + 3])
        times = engine.end().times
    assert len(times) == 4
    for task in times[2:]:
        assert len(task.start) == 20 and all(a < b for a, b in zip(task.start, task.end, strict=True))
    assert all(made <= met for made, met in zip(times[0].end, times[2].start, strict=True))


@pytest.mark.parametrize(
    ("method", "consts", "said"),
    [
        ("make", {"fail": 5}, r"task p.1 (m.1.make) raised in iteration 0: ValueError: member 1 has had enough"),
        ("plain", {}, "an operand of allreduce has to be a tensor, and it is a int"),
        ("uneven", {}, "rank 0 brings [2] float32, rank 1 brings [3] float32"),
    ],
)
def test_a_member_that_does_not_come_ends_the_run_by_name(
    kind: str, method: str, consts: dict[str, Any], said: str
) -> None:
    drawing = members(2)
    drawing.task("p.0", f"m.0.{'make' if method == 'plain' else method}", {"x": "inputs.x"})
    drawing.task("p.1", f"m.1.{method}", {"x": "inputs.x"}, consts=consts)
    drawing.collective("s", "allreduce", ["p.0", "p.1"])
    began = time.monotonic()
    error = error_of(drawing.graph("s.0", "s.1"), [5], opt(kind))
    assert error.exit_code == 4 and said in error.failure.message
    assert time.monotonic() - began < 20


def test_a_member_that_never_comes_is_a_stall_that_names_it() -> None:
    drawing = members(2)
    parts = made(drawing, 2, method="sleep")
    drawing.collective("s", "allreduce", [*parts])
    given = opt("compiled", timeouts={"stall": 3.0, "first": 8.0})
    with started(drawing.graph("s.0", "s.1"), given) as engine:
        one(engine, 0)
        with pytest.raises(Exception, match=r"has been in task") as caught:
            one(engine, 1000)
    assert caught.value.failure.task == "p.1" and caught.value.exit_code == 5  # type: ignore[attr-defined]
    assert any("is in s.0, iteration 1" in line for line in caught.value.failure.waiting)  # type: ignore[attr-defined]


def test_what_cannot_be_reduced_is_said() -> None:
    boxes = [[torch.ones(2, dtype=torch.complex64)], [torch.ones(2, dtype=torch.complex64)]]
    (found, _) = collectives.together(Collective("allreduce", "sum", 0, 0), boxes)
    assert found[0].tolist() == [2 + 0j, 2 + 0j]
    with pytest.raises(ValueError, match=r"max of torch\.complex64"):
        collectives.together(Collective("allreduce", "max", 0, 0), boxes)
    assert "3 equal parts, and it is 2" in str(
        collectives.unfit(Collective("reducescatter", "sum", 0, 0), 3, [torch.ones(2)])
    )
    assert "has none" in str(collectives.unfit(Collective("allgather", None, 0, 0), 3, [torch.tensor(1)]))
