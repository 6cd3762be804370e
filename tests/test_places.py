"""Where actors live, on two nodes: placement strategies, members that share a node, and a graph and a group across."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import ray
from engines_running import options, run
from graphs import Drawing
from ray.cluster_utils import Cluster

from cgspec.graph import Graph

pytestmark = pytest.mark.slow

WHO = "grouped.py:Who"


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    cluster.add_node(num_cpus=4)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()
    cluster.shutdown()


def nodes(graph: Graph, placement: str) -> list[object]:
    (found,) = run(graph, [[1]], options(cluster={"address": "auto", "placement": placement}))
    return found


def crew(count: int) -> Drawing:
    drawing = Drawing().input("x")
    for n in range(count):
        drawing.actor(f"a.{n}", WHO, num_cpus=1).task(f"t.{n}", f"a.{n}.node", {"x": "inputs.x"})
    return drawing


def test_strategies_pack_and_spread() -> None:
    graph = crew(2).graph("t.0", "t.1")
    assert len(set(nodes(graph, "STRICT_PACK"))) == 1
    assert len(set(nodes(graph, "STRICT_SPREAD"))) == 2


def test_members_that_share_a_node_share_it_where_others_are_spread() -> None:
    graph = crew(4).graph("t.0", "t.1", "t.2", "t.3")
    actors = [
        replace(actor, index=(("pp", n // 2), ("tp", n % 2)), same_node=("tp",)) for n, actor in enumerate(graph.actors)
    ]
    found = nodes(replace(graph, actors=tuple(actors)), "STRICT_SPREAD")
    assert found[0] == found[1] != found[2] == found[3]


@pytest.mark.parametrize("kind", ["compiled", "direct"])
def test_a_collective_spans_nodes(kind: str) -> None:
    drawing = Drawing().input("x")
    for rank in range(2):
        drawing.actor(f"m.{rank}", "ranks.py:Member", rank, num_cpus=1)
        drawing.task(f"p.{rank}", f"m.{rank}.make", {"x": "inputs.x"}, consts={"rows": 1})
    drawing.collective("s", "allreduce", ["p.0", "p.1"]).task("l", "m.0.listed", {"t": "s.1"})
    given = options(kind, rehearse=True, cluster={"address": "auto", "placement": "STRICT_SPREAD"})
    assert run(drawing.graph("l", unread=("s.0",)), [[1], [2]], given) == [[[[3.0, 3.0]]], [[[5.0, 5.0]]]]
