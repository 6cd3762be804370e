"""No name, constant or path can break a picture or smuggle anything into it: structure never depends on texts."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pygraphviz
import pytest
from graphs_by_hand import Sketch, at
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgspec.graph import Graph, Payload, TaskRef, Transport
from cgspec.views import schedule
from cgspec.views.picture import FORMATS, dot_text, render

NASTY = [
    'say "hello"',
    "it's",
    "<b>bold</b>",
    "<script>alert(1)</script>",
    "</title></svg></script><script>alert(1)</script>",
    "a & b &amp; &lt; &#60; &nbsp;",
    "back\\slash \\N \\G \\l \\",
    "two\nlines\r\nand\ttabs",
    "]; evil [label=x]; }",
    ">>]; x -> y; //",
    "%%{init: {'theme': 'dark'}}%% --> x",
    'end"] --> click t0 call alert()',
    "#quot; #35; style x:#y;",
    "`**bold**` $HOME {{ 7 * 7 }} {% raw %}",
    "\x00\x01\x1b[31m\x7f\ufffe\ud800",
    "\u202eright to left\u2066 \ufeff \u00ad",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u65e5\u672c\u8a9e \u0639\u0631\u0628\u064a e\u0301",
    "x" * 200,
    " ",
    "--- !!python/object:os.system",
    "]]></svg>",
    "javascript:alert(1)",
    "<!--<SCRIPT\t>--!> <![CDATA[ &#x3c;img src=x onerror=alert(1)&#x3e; */ </style>",
    "%s %d %25%00 null None NaN __proto__ constructor -- ::: @{ shape: circle } e1@--> $$x^2$$ fa:fa-car",
    "\u202b\u05e9\u05dc\u05d5\u05dd\u2028line\u2029sep\u00a0\x7f\x80 \\E\\T\\H </TABLE>> a\\",
]


def named(text: str) -> Graph:
    """A graph with ``text`` wherever a user's text can stand."""
    sketch = Sketch(text)
    sketch.actor(text, at(pp=0), cls=f"{text.replace(':', ' ')}:{text.replace(':', ' ')}")
    sketch.actor(text, at(pp=1), cls="m.py:C")
    x = sketch.input(text, value=text)
    many = sketch.task(text, 0, text, at(pp=0), reads={text: x}, consts={text: text}, returns=(text, "b"))
    size = Payload(1, (1,), text)
    two = sketch.task(
        "two", 1, text, reads={text: [TaskRef(many.task, 0), many]}, transport=Transport("shm", text), payload=size
    )
    sums = sketch.allreduce(text, [(0, at(pp=0), TaskRef(many.task, 0)), (1, at(pp=1), two)])
    sketch.task(text, 1, text, at(pp=9), returns=(), consts={"k": text})
    sketch.output(text, sums)
    return sketch.graph(unread=((many.task, 1),))


PLAIN = named("plain")


def every_picture(graph: Graph, form: str) -> list[bytes]:
    pictures = [render(graph, form, collapse=collapse, constants=True) for collapse in (False, True)]
    return [*pictures, schedule.render(graph, form)] if form in schedule.FORMATS else pictures


def dot_structure(data: bytes) -> list[object]:
    graph: Any = pygraphviz.AGraph(string=data.decode())
    keys = [sorted(dict(node.attr).keys() - {"label"}) for node in graph.nodes()]
    return [
        list(map(str, graph.nodes())),
        [tuple(map(str, edge)) for edge in graph.edges()],
        keys,
        [each.name for each in graph.subgraphs()],
    ]


def svg_structure(data: bytes) -> list[tuple[str, list[str]]]:
    """Tags and attributes; a label of several runs of text (another font for a script) still is text and lines."""
    return [(element.tag, sorted(element.attrib)) for element in ET.fromstring(data).iter()]


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script":
            self.scripts.append(data)


def mermaid_structure(data: bytes) -> list[str]:
    return [re.sub(r'"[^"]*"', '""', line) for line in data.decode().splitlines()]


STRUCTURES: dict[str, Callable[[bytes], object]] = {
    "dot": dot_structure,
    "svg": svg_structure,
    "mmd": mermaid_structure,
    "html": lambda data: Tags(data.decode()).found,
}


@cache
def plain_structure(form: str) -> list[object]:
    return [STRUCTURES[form](data) for data in every_picture(PLAIN, form)]


def check(text: str) -> None:
    graph = named(text)
    for form, find_structure in STRUCTURES.items():
        pictures = every_picture(graph, form)
        assert [find_structure(data) for data in pictures] == plain_structure(form)
        assert form != "mmd" or not any(word in data for data in pictures for word in (b"%%", b"`"))
        assert form != "html" or json.loads(Tags(pictures[0].decode()).scripts[0])["i0"]["name"] == text
    for data in render(graph, "txt", constants=True).splitlines():
        assert data.isascii() and len(data) <= 80


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_names_change_no_structure(text: str) -> None:
    check(text)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(min_size=1, max_size=30))
def test_any_name_changes_no_structure(text: str) -> None:
    check(text)


@pytest.mark.parametrize("form", FORMATS)
def test_nasty_and_empty_names_can_be_rendered(form: str) -> None:
    for text in ["", *NASTY[14:18]]:
        assert len(render(named(text), form, constants=True)) > 500


def test_names_are_shown_as_they_are_and_whole_in_tooltips() -> None:
    name = r'a "b" <c> & \N \G \n \\ &lt;'
    for data, endings in (
        (render(named(name), "svg"), ("", ".0", ".1", ".9")),
        (schedule.render(named(name), "svg"), ("",)),
    ):
        texts = [
            "".join(element.itertext()) for element in ET.fromstring(data).iter("{http://www.w3.org/2000/svg}text")
        ]
        assert {name + ending for ending in endings} <= set(texts)
        assert [text for text in texts if 'a "b"' in text and name not in text and "…" not in text] == []
    long = "x" * 200
    titles = [
        element.text or "" for element in ET.fromstring(render(named(long), "svg")).iter() if "title" in element.tag
    ]
    assert any(title.startswith(f"{long}.0\n") for title in titles)
    assert f"{'x' * 26}…{'x' * 11}.0" in dot_text(named(long))


def test_every_format_is_tried_here() -> None:
    assert set(FORMATS) == {"dot", "svg", "mmd", "html", "txt", "png", "pdf"}
