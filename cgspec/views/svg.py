"""SVG documents whose text is text and whose tooltips say what is known of each thing."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from cgspec.views.dot import prepare
from cgspec.views.layout import lay_out
from cgspec.views.scene import Scene
from cgspec.views.taming import tell_all

_DOCTYPE = re.compile(r"<!DOCTYPE[^>]*>\n")
_LINK = re.compile(r'<a xlink:title="[^"]*">')
_TITLE = re.compile(r'(<g id="(\w+)" class="[^"]*">\n)<title>.*?</title>')


def write_svg(scene: Scene) -> str:
    """The scene as one SVG document."""
    text, engine = prepare(scene)
    return lay_out_svg(text, tell_tooltips(scene), engine=engine)


def lay_out_svg(text: str, tooltips: Mapping[str, Sequence[str]], *, engine: str = "dot") -> str:
    """Graphviz's SVG; browsers show ``title`` elements on hovering, so these get the lines that ``tooltips`` has for
    an id instead of Graphviz's names of nodes."""

    def retitle(found: re.Match[str]) -> str:
        lines = tooltips.get(found[2], ())
        return found[1] + (f"<title>{html.escape(chr(10).join(lines))}</title>" if lines else "")

    drawn = lay_out(text, "svg", engine=engine).decode()
    return _TITLE.sub(retitle, _LINK.sub("<a>", _DOCTYPE.sub("", drawn, count=1)))


def tell_tooltips(scene: Scene) -> dict[str, list[str]]:
    """What is said on hovering over the thing with each id."""
    texts = {"graph0": tell_all(scene.name, scene.subtitle, ())}
    texts |= {cluster.id: tell_all(cluster.name, cluster.note, cluster.facts) for cluster in scene.clusters}
    texts |= {box.id: tell_all(box.name, box.note, box.facts) for box in scene.boxes}
    return texts | {link.id: tell_all(link.label or link.carrier, "", link.facts) for link in scene.links}
