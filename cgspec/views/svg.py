"""A scene as one SVG document whose text is text and whose tooltips say what is known of each thing."""

from __future__ import annotations

import html
import re

from cgspec.views.dot import write_dot
from cgspec.views.layout import lay_out
from cgspec.views.scene import Scene
from cgspec.views.taming import tell_all

_DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\n")
_LINK = re.compile(r'<a xlink:title="[^"]*">')
_TITLE = re.compile(r'(<g id="(\w+)" class="[^"]*">\n)<title>.*?</title>')


def write_svg(scene: Scene) -> str:
    """Graphviz's SVG; browsers show ``title`` elements on hovering, so these say more than Graphviz's node ids."""
    texts = _tooltips(scene)

    def retitle(found: re.Match[str]) -> str:
        text = texts.get(found[2])
        return found[1] + (f"<title>{html.escape(text)}</title>" if text is not None else "")

    drawn = lay_out(write_dot(scene), "svg").decode()
    drawn = _LINK.sub("<a>", _DOCTYPE.sub("", drawn, count=1))
    return _TITLE.sub(retitle, drawn)


def _tooltips(scene: Scene) -> dict[str, str]:
    texts = {"graph0": tell_all(scene.name, scene.subtitle, ())}
    texts |= {cluster.id: tell_all(cluster.name, cluster.note, cluster.facts) for cluster in scene.clusters}
    texts |= {box.id: tell_all(box.name, box.note, box.facts) for box in scene.boxes}
    texts |= {link.id: tell_all(link.label or link.carrier, "", link.facts) for link in scene.links}
    return {key: "\n".join(lines) for key, lines in texts.items()}
