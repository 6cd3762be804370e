"""Mermaid, text and HTML: each shows every task, actor, input, output and transport, and stays within its medium."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from graphs_by_hand import Sketch, kinds, one_f_one_b, send_recv, tp_pp

from cgspec.graph import Graph
from cgspec.views.picture import FORMATS, render

GRAPHS = {graph.name: graph for graph in (send_recv(), kinds(), tp_pp(), one_f_one_b())}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def text_of(graph: Graph, form: str, **options: Any) -> str:
    return render(graph, form, **options).decode()


@every_graph
@pytest.mark.parametrize("form", sorted(FORMATS.keys() - {"png", "pdf"}))
def test_every_format_names_everything(graph: Graph, form: str) -> None:
    text = html.unescape(text_of(graph, form))
    wanted = {graph.name, *(actor.name for actor in graph.actors), *(item.name for item in graph.inputs)}
    wanted |= {word for task in graph.tasks for word in (task.name, task.label, *(task.returns or ()))}
    wanted |= {str(name) for name, _ in graph.outputs}
    wanted |= {"host", "local", *({"auto", "shm"} if graph.name == "kinds" else {"accelerator"})} - (
        {"local"} if graph.name == "send-recv" else set()
    )
    assert [word for word in sorted(wanted) if word not in text] == []


def test_mermaid_has_a_node_for_each_box_and_a_styled_link_for_each_link() -> None:
    lines = [line.strip() for line in text_of(tp_pp(), "mmd").splitlines()]
    assert lines[:4] == ["---", 'title: "tp-pp | 4 actors · 16 tasks · 16 edges"', "---", "flowchart LR"]
    assert sum(line.startswith("subgraph a") for line in lines) == sum(line == "end" for line in lines) == 4
    assert sum(re.match(r"t\d+\(", line) is not None for line in lines) == 16
    assert 't4 ==>|"accelerator 4 MiB"| t8' in lines
    assert "t2 --- g0" in lines
    links = [line for line in lines if re.match(r"[a-z]\d+ [-=~.]", line)]
    styled = [place for line in lines if line.startswith("linkStyle") for place in line.split()[1].split(",")]
    assert sorted(map(int, styled)) == list(range(len(links))) == list(range(24))


def test_text_shows_each_actors_tasks_and_where_their_results_go() -> None:
    assert text_of(kinds(), "txt").splitlines()[7:13] == [
        "+- enc - model.py:Encoder",
        "|  [part] split; returns hidden, mask, aux (not read)",
        "|      .hidden --> [join]                           shm",
        "|      .mask --> [join]                             shm",
        "|      .(all of it) --> [gather]                    shm",
        "|      .mask ..> (mask)                             host",
    ]


@every_graph
def test_text_fits_a_terminal(graph: Graph) -> None:
    lines = text_of(graph, "txt", constants=True).splitlines()
    assert max(map(len, lines)) <= 80 and all(line.isascii() for line in lines)


def test_text_counts_what_it_leaves_out() -> None:
    sketch = Sketch("wide")
    first = sketch.task("first", sketch.actor("a"))
    for number in range(40):
        sketch.output(number, sketch.task(f"t{number}", sketch.actor(f"b{number}"), reads={"x": first}))
    assert "|      ... and 28 more\n" in text_of(sketch.graph("list"), "txt")


def test_page_loads_nothing_and_carries_its_data() -> None:
    page = text_of(kinds(), "html")
    loads = re.findall(r"""(?:src|href|action)\s*=|@import|url\(|fetch\(|XMLHttp|import\(""", page)
    assert loads == [] and "default-src 'none'" in page
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not addresses
    things = json.loads(page.split('id="things">')[1].split("</script>")[0])
    links = json.loads(page.split('id="links">')[1].split("</script>")[0])
    assert things["t0"]["returns"] == ["hidden", "mask", "aux", "(all of it)"]
    assert things["t0"]["actor"] == "a0" and things["a1"]["inside"] == ["t1", "t2"]
    assert ["class", "model.py:Encoder"] in things["t0"]["facts"] and ["constants", "scale = 2"] in things["t0"][
        "facts"
    ]
    assert len(links) == 10 and all(f'id="{each["id"]}"' in page for each in (*links, *({"id": key} for key in things)))
