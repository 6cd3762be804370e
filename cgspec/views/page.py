"""A scene as one self-contained HTML page to pan, zoom, search and click in; it loads nothing from anywhere."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from cgspec.views.labels import MARKS
from cgspec.views.scene import Scene
from cgspec.views.svg import write_svg
from cgspec.views.taming import tame

_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_GROUND = re.compile(r'<polygon fill="white" stroke="none"[^>]*/>\n')


def write_page(scene: Scene) -> str:
    """The page; the template escapes every text, the drawing was escaped when it was made."""
    from jinja2 import Environment
    from markupsafe import Markup

    source = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    drawing = _GROUND.sub("", _PROLOGUE.sub("", write_svg(scene)), count=1)
    about = {"name": tame(scene.name), "subtitle": tame(scene.subtitle), "remark": tame(scene.remark)}
    return template.render(about, drawing=Markup(drawing), things=tell_things(scene), links=tell_links(scene))


def tell_things(scene: Scene) -> dict[str, dict[str, Any]]:
    """What the page can say of each box and actor, by id."""
    things: dict[str, dict[str, Any]] = {}
    for node in scene.nodes:
        things[node.id] = {"kind": "node", "name": node.name, "note": "", "facts": node.facts, "inside": node.clusters}
    for cluster in scene.clusters:
        inside = [box.id for box in cluster.boxes]
        things[cluster.id] = {"kind": "actor", "name": cluster.name, "note": cluster.about, "facts": cluster.facts}
        things[cluster.id] |= {"inside": inside, "source": cluster.source}
        things |= {box: {"actor": cluster.id} for box in inside}
    for box in scene.boxes:
        marks = [("of this run", words.partition(" (")[0]) for mark, _, _, words in MARKS if mark in box.marks]
        facts = [*marks, *box.facts]
        told = {"kind": box.kind, "name": box.name, "note": box.note, "facts": facts, "source": box.source}
        things[box.id] = {**things.get(box.id, {}), **told, "returns": [port.name for port in box.ports]}
    return things


def tell_links(scene: Scene) -> list[dict[str, Any]]:
    """What the page can say of each link."""
    return [
        {
            "id": link.id,
            "from": link.source,
            "to": link.target,
            "port": link.port,
            "label": link.label or link.carrier,
            "facts": link.facts,
        }
        for link in scene.links
    ]
