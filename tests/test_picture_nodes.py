"""Which actors share a node, and that names can be read where links cross them; the expected frames were worked out by
hand."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pygraphviz
import pytest
from graphs_by_hand import Sketch, one_f_one_b, send_recv, tp_pp

from cgspec.graph import Graph
from cgspec.record import ActorRecord
from cgspec.views.clearing import Area, is_struck, title_of
from cgspec.views.dot import place_scene
from cgspec.views.hosts import put_where_it_ran
from cgspec.views.lanes import pin_down
from cgspec.views.layout import place
from cgspec.views.picture import compose, render, write
from cgspec.views.scene import Scene


def placed(graph: Graph, placement: str = "PACK", same_node: tuple[str, ...] = ()) -> Graph:
    actors = tuple(replace(actor, same_node=same_node) for actor in graph.actors)
    return replace(graph, placement=placement, actors=actors)


def frames(scene: Scene) -> dict[str, list[str]]:
    """The actors by node; where several nodes have one name, by its id too."""
    names = {cluster.id: cluster.name for cluster in scene.clusters}
    return {f"{node.name} {node.id}": [names[cluster] for cluster in node.clusters] for node in scene.nodes}


def test_strict_pack_is_one_node_and_strict_spread_one_for_each_bundle() -> None:
    assert frames(compose(placed(tp_pp(), "STRICT_PACK"))) == {
        "one node n0": ["stage.0.0", "stage.0.1", "stage.1.0", "stage.1.1"]
    }
    assert frames(compose(placed(send_recv(), "STRICT_SPREAD"))) == {
        "own node n0": ["sender"],
        "own node n1": ["receiver"],
    }
    assert frames(compose(placed(tp_pp(), "STRICT_SPREAD", ("tp",)))) == {
        "own node n0": ["stage.0.0", "stage.0.1"],
        "own node n1": ["stage.1.0", "stage.1.1"],
    }


def test_wishes_say_nothing_but_members_of_one_node_are_framed() -> None:
    assert frames(compose(placed(tp_pp(), "SPREAD"))) == frames(compose(placed(tp_pp(), "PACK"))) == {}
    assert frames(compose(placed(tp_pp(), "PACK", ("pp",)))) == {
        "same node n0": ["stage.0.0", "stage.1.0"],
        "same node n1": ["stage.0.1", "stage.1.1"],
    }
    assert frames(compose(placed(tp_pp(2, 1), "PACK", ("tp",)))) == {}  # each alone on that axis


def test_a_collapsed_family_on_several_nodes_says_how_it_is_spread() -> None:
    def told(placement: str, same_node: tuple[str, ...] = ()) -> tuple[str, dict[str, list[str]]]:
        scene = compose(placed(tp_pp(), placement, same_node), collapse=True)
        return scene.clusters[0].where, frames(scene)

    assert told("STRICT_SPREAD") == ("own nodes", {})
    assert told("STRICT_SPREAD", ("tp",)) == ("own node across tp", {})
    assert told("PACK", ("tp",)) == ("same node across tp", {})
    assert told("PACK", ("pp", "tp")) == ("", {"same node n0": ["stage [pp=2 × tp=2]"]})  # noqa: RUF001
    assert told("PACK") == ("", {})


def on(*addresses: str | None) -> list[ActorRecord]:
    names = ["stage.0.0", "stage.0.1", "stage.1.0", "stage.1.1"]
    return [
        ActorRecord(**{"name": name, "class": "m.py:C", "node": node})
        for name, node in zip(names, addresses, strict=True)
    ]


def test_a_run_says_where_actors_were_whatever_the_spec_promised() -> None:
    scene = compose(placed(tp_pp(), "STRICT_PACK"))
    ran = put_where_it_ran(scene, on("10.0.0.7", "10.0.0.8", "10.0.0.7", None))
    assert frames(ran) == {"node 10.0.0.7 n0": ["stage.0.0", "stage.1.0"], "node 10.0.0.8 n1": ["stage.0.1"]}
    assert {node.because for node in ran.nodes} == {"this run"}
    assert frames(put_where_it_ran(scene, on(None, None, None, None))) == {}  # the local engine has no nodes


def test_a_collapsed_family_counts_the_nodes_of_its_run() -> None:
    scene = compose(placed(tp_pp(), "STRICT_SPREAD"), collapse=True)
    (cluster,) = put_where_it_ran(scene, on("10.0.0.7", "10.0.0.8", "10.0.0.7", "10.0.0.8")).clusters
    assert cluster.where == "on 2 nodes"
    assert ("nodes", "node 10.0.0.7, node 10.0.0.8") in cluster.facts


GRAPH = placed(tp_pp(), "STRICT_SPREAD", ("tp",))


def test_every_format_shows_nodes_and_how_they_are_known() -> None:
    svg = ET.fromstring(render(GRAPH, "svg"))
    texts = ["".join(element.itertext()) for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("own node") == 2 and "one node (cluster.placement: STRICT_SPREAD)" in texts
    titles = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert titles.count("own node\nknown from: cluster.placement: STRICT_SPREAD") == 4  # frames, and their names
    assert re.findall(r"^ *subgraph (\w+)", render(GRAPH, "mmd").decode(), re.M) == ["n0", "a0", "a1", "n1", "a2", "a3"]
    assert "own node (cluster.placement: STRICT_SPREAD): stage.0.0, stage.0.1\n" in render(GRAPH, "txt").decode()
    dot: Any = pygraphviz.AGraph(string=render(GRAPH, "dot").decode())
    assert [[inner.name for inner in outer.subgraphs()] for outer in dot.subgraphs()] == [
        ["cluster_a0", "cluster_a1"],
        ["cluster_a2", "cluster_a3"],
    ]
    things = json.loads(render(GRAPH, "html").decode().split('id="things">')[1].split("</script>")[0])
    assert things["n1"]["inside"] == ["a2", "a3"] and things["n1"]["name"] == "own node"


def test_a_neighbourhood_keeps_the_nodes_of_what_is_left() -> None:
    assert frames(compose(GRAPH, around="part.1.1", hops=0)) == {"own node n1": ["stage.1.1"]}


def test_the_plain_layout_frames_the_lanes_of_a_node() -> None:
    sketch = Sketch("crossings")
    actors = [sketch.actor("a"), sketch.actor("b")]
    first = last = sketch.task("t0", actors[0])
    for number in range(1, 160):
        last = sketch.task(f"t{number}", actors[number % 2], reads={"x": first, "y": last})
    scene = compose(placed(sketch.graph(), "STRICT_PACK"), collapse=False)
    pins = pin_down(scene)
    assert pins is not None
    left, low, right, high = pins.clusters["n0"]
    lanes = [pins.clusters[cluster.id] for cluster in scene.clusters]
    assert all(left < lane[0] and low < lane[1] and lane[2] < right and lane[3] < high for lane in lanes)
    assert b'id="n0"' in write(scene, "svg")


def areas(scene: Scene) -> tuple[list[Area], list[Area]]:
    """Where names of actors and nodes, and where labels of links are."""
    drawn: Any = pygraphviz.AGraph(string=place(place_scene(scene), engine="nop2"))
    things = [*scene.nodes, *scene.clusters]
    names = [drawn.get_node(title_of(thing.id)).attr for thing in things]
    labels = [(edge.attr["lp"], re.sub(r"<[^>]*>", "", edge.attr["label"])) for edge in drawn.edges()]
    return (
        [Area.around(*xy(name["pos"]), 72 * float(name["width"]), 72 * float(name["height"])) for name in names],
        [Area.around(*xy(place), 4.5 * len(text), 9) for place, text in labels if place],
    )


def xy(text: str) -> tuple[float, float]:
    x, y = map(float, text.split(","))
    return x, y


@pytest.mark.parametrize("graph", [tp_pp(), GRAPH, tp_pp(4, 3), one_f_one_b()], ids=["pp2", "nodes", "pp4", "1f1b"])
def test_names_are_drawn_above_links_and_no_label_of_a_link_meets_one(graph: Graph) -> None:
    scene = compose(graph)
    svg = write(scene, "svg").decode()
    last = max(svg.index(f'id="{link.id}"') for link in scene.links)
    assert all(svg.index(f'id="{title_of(cluster.id)}"') > last for cluster in scene.clusters)
    names, labels = areas(scene)
    assert names and labels
    assert [(name, label) for name in names for label in labels if name.meets(label)] == []


def test_labels_are_not_struck_through_by_wide_lines() -> None:
    scene = compose(tp_pp())
    links = (replace(link, width=6.0) if link.carrier == "accelerator" else link for link in scene.links)
    wide = replace(scene, links=tuple(links))
    drawn: Any = pygraphviz.AGraph(string=place_scene(wide))
    assert [edge for edge in drawn.edges() if edge.attr["lp"] and is_struck(edge)] == []


def test_links_end_at_the_outer_ring_of_an_output() -> None:
    svg = write(compose(send_recv()), "svg").decode()
    ring = max(float(rx) for rx in re.findall(r'<ellipse [^>]* rx="([\d.]+)"', svg))
    drawn: Any = pygraphviz.AGraph(string=place_scene(compose(send_recv())))
    (end,) = (edge.attr["pos"] for edge in drawn.edges() if edge[1] == "o0")
    middle = xy(drawn.get_node("o0").attr["pos"])[0]
    assert middle - xy(end.split()[0].removeprefix("e,"))[0] == pytest.approx(ring, abs=1.5)
