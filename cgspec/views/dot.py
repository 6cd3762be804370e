"""A scene as DOT text: deterministic, self-contained, and safe for names of any kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cgspec.views.clearing import clear_names
from cgspec.views.labels import (
    MOST_PORTS,
    SANS,
    cluster_label,
    link_label,
    node_label,
    scene_label,
    task_label,
    terminal_label,
)
from cgspec.views.lanes import Pins, idle_box, pin_down
from cgspec.views.layout import place
from cgspec.views.palette import FRAME, GROUND, INK, MUTED, PAPER, PLATE, STROKES, Stroke, outline, wash
from cgspec.views.scene import Box, Cluster, Link, Node, Scene
from cgspec.views.taming import quote, quote_lines, tell_all

LABELLED = 150
"""Pictures with more links than this carry no labels on them; the legend and the tooltips still tell the transport."""

_SHAPES = {
    "input": 'shape=cds style="filled" fillcolor="#ffffff" margin="0.26,0.11"',
    "output": 'shape=ellipse peripheries=2 style="filled" fillcolor="#ffffff" margin="0.06,0.03"',
    "plate": f'shape=box style="filled" fillcolor="{PLATE}" color="#7B3F8C" penwidth=2 margin="0.1,0.05"',
}


def write_dot(scene: Scene, pins: Pins | None = None) -> str:
    """The scene as the text of a directed graph that reads from left to right; ``pins``: where everything is."""
    labelled = len(scene.links) <= LABELLED
    boxes = {box.id: box for box in scene.boxes}
    ranks = Counter(link.target for link in scene.links)
    lines = ["digraph cgspec {", *_defaults(scene)]
    lines += [_terminal(box, ranks[box.id]) for box in scene.terminals]
    lines += [line for node, clusters in scene.grouped for line in _on_node(node, clusters)]
    lines += [_link(link, labelled, boxes[link.source]) for link in scene.links]
    lines += [f"  {box.after} -> {box.id} [style=invis];" for box in scene.boxes if box.after is not None]
    lines += _pins(pins) if pins is not None else ()
    return "\n".join([*lines, "}", ""])


def place_scene(scene: Scene) -> str:
    """The scene as DOT text with the place of everything, found in seconds."""
    pins = pin_down(scene)
    engine = "dot" if pins is None else "nop"
    return place(write_dot(scene, pins), engine=engine, amend=lambda drawn: clear_names(drawn, scene))


def _pins(pins: Pins) -> Iterator[str]:
    yield "  graph [splines=line];"
    for box, (x, y) in pins.boxes.items():
        yield f'  {box} [pos="{x:.1f},{y:.1f}!"];'
    for cluster, (left, low, right, high) in pins.clusters.items():
        yield f'  subgraph cluster_{cluster} {{ graph [bb="{left:.1f},{low:.1f},{right:.1f},{high:.1f}"]; }}'


def _defaults(scene: Scene) -> Iterator[str]:
    yield "  graph [rankdir=LR newrank=true nodesep=0.22 ranksep=0.55 pad=0.25 outputorder=edgesfirst"
    yield f"    bgcolor=white labelloc=t labeljust=l fontname={quote(SANS)}"
    yield f"    tooltip={quote_lines(tell_all(scene.name, scene.subtitle, ()))}"
    yield f"    label={scene_label(scene)}];"
    yield f'  node [shape=plain fontname={quote(SANS)} fontsize=12 fontcolor="{INK}" color="{MUTED}"];'
    yield f"  edge [fontname={quote(SANS)} fontsize=9 arrowsize=0.7];"


def _on_node(node: Node | None, clusters: Sequence[Cluster]) -> Iterator[str]:
    """The actors of one node within its frame."""
    inside = [line for cluster in clusters for line in _cluster(cluster)]
    if node is None:
        yield from inside
        return
    yield f"  subgraph cluster_{node.id} {{"
    yield f'    graph [id="{node.id}" class="host" style=filled fillcolor="{GROUND}" color="{FRAME}" penwidth=1.5'
    yield f"      margin=10 labeljust=l label={node_label(node)}"
    yield f"      tooltip={quote_lines(tell_all(node.name, '', node.facts))}];"
    yield from (f"  {line}" for line in inside)
    yield "  }"


def _cluster(cluster: Cluster) -> Iterator[str]:
    yield f"  subgraph cluster_{cluster.id} {{"
    yield f'    graph [id="{cluster.id}" class="actor" style="rounded,filled" fillcolor="{wash(cluster.hue)}"'
    yield f'      color="{outline(cluster.hue)}"{_weight(cluster)} margin=12 labeljust=l label={cluster_label(cluster)}'
    yield f"      tooltip={quote_lines(tell_all(cluster.name, '', cluster.facts))}];"
    for box in cluster.boxes:
        tooltip = quote_lines(tell_all(box.name, box.note, box.facts))
        label = task_label(box, cluster.hue)
        yield f'    {box.id} [id="{box.id}" class="task {box.role}" label={label} tooltip={tooltip}];'
    if not cluster.boxes:
        yield f'    {idle_box(cluster.id)} [label="no tasks" fontsize=10 fontcolor="{MUTED}"];'
    yield "  }"


def _weight(cluster: Cluster) -> str:
    return " penwidth=3" if cluster.bottleneck else ""


def _terminal(box: Box, ranks: int) -> str:
    tooltip = quote_lines(tell_all(box.name, box.note, box.facts))
    height = f" height={min(0.45 * ranks, 3.0):.2f}" if box.kind == "plate" else ""
    return (
        f'  {box.id} [id="{box.id}" class="{box.kind}" {_SHAPES[box.kind]}{height}'
        f" label={terminal_label(box)} tooltip={tooltip}];"
    )


def _link(link: Link, labelled: bool, source: Box) -> str:
    stroke = STROKES[link.carrier]
    tooltip = quote_lines(tell_all(link.label or link.carrier, "", link.facts))
    label = f" label={link_label(link.label, stroke.ink)}" if labelled and link.label else ""
    style = _style(stroke, link) + (" dir=none" if link.carrier == "group" else "")
    return (
        f'  {link.source}{_tail(link, source)} -> {link.target} [id="{link.id}" class="{link.carrier}"{style}{label}'
        f" tooltip={tooltip} labeltooltip={tooltip}];"
    )


def _tail(link: Link, source: Box) -> str:
    """Where it begins: at the return that is read, at the tip of an input, or wherever Graphviz likes."""
    if source.kind == "input":
        return ":e"
    known = link.port is not None and link.port < min(len(source.ports), MOST_PORTS)
    return f":r{link.port}:e" if known else ""


def _style(stroke: Stroke, link: Link) -> str:
    """A link on the critical path is a double line, as wide as it would be otherwise."""
    width = stroke.width if link.width is None else round(link.width, 2)
    if link.critical:
        colour, width = f"{stroke.colour}:{PAPER}:{stroke.colour}", round(max(1.0, width / 3), 2)
    else:
        colour = stroke.colour
    return f' color="{colour}" style={stroke.dash} penwidth={width}'
