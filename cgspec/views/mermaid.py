"""A scene as a Mermaid flowchart, as GitHub shows it in a fenced ``mermaid`` block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgspec.views.labels import LINE_LENGTH, MARKS, MOST_LINES, NAME_LENGTH, ROLES
from cgspec.views.palette import FRAME, GROUND, INK, MUTED, PAPER, PLATE, STROKES, Carrier, fill, outline, wash
from cgspec.views.scene import Box, Cluster, Link, Node, Scene
from cgspec.views.taming import shorten

_ARROWS: dict[Carrier, str] = {
    "accelerator": "==>",
    "auto": "-.->",
    "shm": "-->",
    "local": "-->",
    "host": "-.->",
    "group": "---",
}
_SHAPES = {"task": ("(", ")"), "input": (">", "]"), "output": ("([", "])"), "plate": ("[[", "]]")}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,-+=()")


def write_mermaid(scene: Scene) -> str:
    """The text of the flowchart, without the fence."""
    boxes = {box.id: box for box in scene.boxes}
    hidden = [box for box in scene.boxes if box.after is not None]
    lines = ["---", f"title: {_title(scene)}", "---", "flowchart LR"]
    lines += [f"  {_box(box)}" for box in scene.terminals]
    lines += [line for node, clusters in scene.grouped for line in _on_node(node, clusters)]
    lines += [f"  {_link(link, boxes)}" for link in scene.links]
    lines += [f"  {box.after} ~~~ {box.id}" for box in hidden]
    return "\n".join([*lines, *_styles(scene), ""])


def _title(scene: Scene) -> str:
    """A quoted YAML string; directives would be found even in here, hence no per cent sign or brace."""
    text = shorten(" | ".join(part for part in (scene.name, scene.subtitle, scene.remark) if part), 200)
    return '"' + "".join(c if c in _PLAIN or c in "|:[];" or ord(c) > 127 else f"\\u{ord(c):04x}" for c in text) + '"'


def _on_node(node: Node | None, clusters: Sequence[Cluster]) -> Iterator[str]:
    inside = [line for cluster in clusters for line in _cluster(cluster)]
    if node is None:
        yield from inside
        return
    yield f'  subgraph {node.id}["{_bold(node.name)} {_text(node.because, LINE_LENGTH)}"]'
    yield from (f"  {line}" for line in inside)
    yield "  end"


def _cluster(cluster: Cluster) -> Iterator[str]:
    yield f'  subgraph {cluster.id}["{_bold(cluster.name)} {_text(cluster.about, LINE_LENGTH)}"]'
    yield from (f"    {_box(box)}" for box in cluster.boxes)
    if not cluster.boxes:
        yield f'    {cluster.id}_none["no tasks"]'
    yield "  end"


def _box(box: Box) -> str:
    left, right = _SHAPES[box.kind]
    if box.role == "effect":
        left, right = "[[", "]]"
    lines = [_bold(box.name), *([_text(box.note, NAME_LENGTH)] if box.note else [])]
    lines += [_text(line, LINE_LENGTH) for line in box.lines[:MOST_LINES]]
    lines += [f"<i>{ROLES[box.role]}</i>"] if ROLES[box.role] else []
    lines += [_text(box.returned, LINE_LENGTH)] if box.returned else []
    return f'{box.id}{left}"{"<br/>".join(lines)}"{right}'


def _link(link: Link, boxes: dict[str, Box]) -> str:
    port = boxes[link.source].ports[link.port].name if link.port is not None else ""
    label = ", ".join(part for part in (port, link.label) if part)
    words = f'|"{_text(label, LINE_LENGTH)}"|' if label else ""
    return f"{link.source} {_ARROWS[link.carrier]}{words} {link.target}"


def _styles(scene: Scene) -> Iterator[str]:
    """Colours; every style names all that it applies to, by id or by the place of a link."""
    for hue in sorted({cluster.hue for cluster in scene.clusters}):
        members = [cluster for cluster in scene.clusters if cluster.hue == hue]
        yield f"  classDef hue{hue} fill:{fill(hue)},stroke:{outline(hue)},color:{INK}"
        yield f"  classDef ground{hue} fill:{wash(hue)},stroke:{outline(hue)},color:{INK}"
        boxes = [box.id for cluster in members for box in cluster.boxes]
        yield from [f"  class {','.join(boxes)} hue{hue}"] if boxes else []
        yield f"  class {','.join(cluster.id for cluster in members)} ground{hue}"
    if scene.nodes:
        yield f"  classDef host fill:{GROUND},stroke:{FRAME},color:{INK}"
        yield f"  class {','.join(node.id for node in scene.nodes)} host"
    grounds = {"plate": (PLATE, STROKES["group"].colour), "terminal": (PAPER, MUTED)}
    for kind, (ground, stroke) in grounds.items():
        boxes = [box.id for box in scene.terminals if (box.kind == "plate") == (kind == "plate")]
        if boxes:
            yield f"  classDef {kind} fill:{ground},stroke:{stroke},color:{INK}"
            yield f"  class {','.join(boxes)} {kind}"
    unread = [box.id for box in scene.boxes if box.role == "unread"]
    yield from [f"  style {box} stroke-dasharray:5 3" for box in unread]
    yield from (f"  style {box.id} {_measured(box)}" for box in scene.boxes if box.heat)
    for carrier, line in STROKES.items():
        places = [str(place) for place, link in enumerate(scene.links) if link.carrier == carrier]
        if places:
            yield f"  linkStyle {','.join(places)} stroke:{line.colour},stroke-width:{line.width}px"


def _measured(box: Box) -> str:
    """The colour of a task's busy time, and the outline that a run marks it with."""
    found = [f",stroke:{colour},stroke-width:{border}px" for mark, border, colour, _ in MARKS if mark in box.marks]
    return f"fill:{box.heat}" + (found[-1] if found else "")


def _bold(text: str) -> str:
    return f"<b>{_text(text, NAME_LENGTH)}</b>"


def _text(text: str, most: int) -> str:
    """Text that is no syntax: whatever could be is written as Mermaid's ``#number;``."""
    short = shorten(text, most) or " "
    return "".join(c if c in _PLAIN or ord(c) > 127 else f"#{ord(c)};" for c in short)
