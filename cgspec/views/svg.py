"""SVG documents whose text is text and whose tooltips say what is known of each thing."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from cgspec.views.clearing import title_of
from cgspec.views.dot import place_scene
from cgspec.views.layout import draw
from cgspec.views.scene import Scene
from cgspec.views.taming import tell_all

_DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\n")
_LINK = re.compile(r'<a xlink:title="[^"]*">')
_TITLE = re.compile(r'(<g id="(\w+)" class="[^"]*">\n)<title>.*?</title>')


def write_svg(scene: Scene) -> str:
    """The scene as one SVG document."""
    return draw_svg(place_scene(scene), tell_tooltips(scene))


def draw_svg(text: str, tooltips: Mapping[str, Sequence[str]], *, engine: str = "nop2") -> str:
    """DOT text as Graphviz's SVG; ``engine``: as ``draw`` takes it.

    Browsers show ``title`` elements on hovering, so these get the lines that ``tooltips`` has for an id instead of
    Graphviz's names of nodes.
    """

    def retitle(found: re.Match[str]) -> str:
        lines = tooltips.get(found[2], ())
        return found[1] + (f"<title>{html.escape(chr(10).join(lines))}</title>" if lines else "")

    drawn = draw(text, "svg", engine=engine).decode()
    return _TITLE.sub(retitle, _LINK.sub("<a>", _DOCTYPE.sub("", drawn, count=1)))


def tell_tooltips(scene: Scene) -> dict[str, list[str]]:
    """What is said on hovering over the thing with each id."""
    texts = {"graph0": tell_all(scene.name, scene.subtitle, ())}
    texts |= {node.id: tell_all(node.name, "", node.facts) for node in scene.nodes}
    texts |= {cluster.id: tell_all(cluster.name, cluster.about, cluster.facts) for cluster in scene.clusters}
    named = [*(node.id for node in scene.nodes), *(cluster.id for cluster in scene.clusters)]
    texts |= {title_of(thing): texts[thing] for thing in named}
    texts |= {box.id: tell_all(box.name, box.note, box.facts) for box in scene.boxes}
    return texts | {link.id: tell_all(link.label or link.carrier, "", link.facts) for link in scene.links}
