"""A scene as text for terminals: plain ASCII, 80 columns, each actor's tasks in order and where their results go."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from cgspec.views.labels import MOST_LINES, ROLES
from cgspec.views.palette import Carrier
from cgspec.views.scene import Box, Link, Scene
from cgspec.views.selections import TIMES
from cgspec.views.taming import shorten, tame

WIDTH = 80
MOST_NAME = 34
MOST_TARGETS = 12
"""A box that more links leave shows this many and counts the others."""

_ARROWS: dict[Carrier, str] = {
    "accelerator": "==>",
    "auto": "~~>",
    "shm": "-->",
    "local": "->",
    "host": "..>",
    "group": "<=>",
}
_PLAINER = str.maketrans({TIMES: "x", "µ": "u", "…": "~", "↵": "|"})


def write_ascii(scene: Scene) -> str:
    """The text, with a newline at its end; what is not ASCII is written as an escape."""
    boxes = {box.id: box for box in scene.boxes}
    leaving: dict[str, list[Link]] = {box.id: [] for box in scene.boxes}
    for link in scene.links:
        leaving[link.source].append(link)
    lines = [*_wrap(scene.name), *_wrap(scene.subtitle), *_wrap(scene.remark), ""]
    lines += [line for box in scene.terminals if box.kind == "input" for line in _box(box, leaving, boxes)]
    lines += _nodes(scene)
    for cluster in scene.clusters:
        lines += ["", *_wrap(f"+- {_short(cluster.name, MOST_NAME)} - {cluster.about}", "|  ")]
        lines += [f"|  {line}" for box in cluster.boxes for line in _box(box, leaving, boxes)] or ["|  no tasks"]
        lines.append("+-")
    lines += _plates(scene, boxes)
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, "", *_key(scene), ""]))


def _nodes(scene: Scene) -> Iterator[str]:
    names = {cluster.id: cluster.name for cluster in scene.clusters}
    for node in scene.nodes:
        members = ", ".join(_short(names[cluster], MOST_NAME) for cluster in node.clusters)
        yield from ["", *_wrap(f"{_short(node.name, MOST_NAME)} ({node.because}): {members}", "    ")]


def _plates(scene: Scene, boxes: dict[str, Box]) -> Iterator[str]:
    """Each collective with its members."""
    members: dict[str, list[str]] = {}
    for link in scene.links:
        if link.carrier == "group":
            members.setdefault(link.target, []).append(f"[{_short(boxes[link.source].name, MOST_NAME)}]")
    for plate, names in members.items():
        shown = ", ".join(names[:MOST_TARGETS]) + (
            f", ... and {len(names) - MOST_TARGETS} more" * (len(names) > MOST_TARGETS)
        )
        yield from ["", *_wrap(f"<{_short(boxes[plate].name, MOST_NAME)}> {boxes[plate].note}: {shown}", "    ")]


def _box(box: Box, leaving: dict[str, list[Link]], boxes: dict[str, Box]) -> Iterator[str]:
    about = [box.note if box.note != box.name else "", ROLES[box.role], box.returned]
    head = f"[{_short(box.name, MOST_NAME)}] " if box.kind == "task" else f"({_short(box.name, MOST_NAME)}) "
    yield from _wrap(head + "; ".join(part for part in about if part), "    ", WIDTH - 3)
    for line in box.lines[:MOST_LINES]:
        yield f"    {_short(line, 60)}"
    links = leaving[box.id]
    for link in links[:MOST_TARGETS]:
        yield _link(link, box, boxes[link.target])
    if len(links) > MOST_TARGETS:
        yield f"    ... and {len(links) - MOST_TARGETS} more"


def _link(link: Link, source: Box, target: Box) -> str:
    port = f".{_short(source.ports[link.port].name, 12)} " if link.port is not None else ""
    name = _short(target.name, MOST_NAME)
    ends = {"task": f"[{name}]", "output": f"({name})", "plate": f"<{name}>", "input": f"({name})"}[target.kind]
    return (f"    {port}{_ARROWS[link.carrier]} {ends}".ljust(48) + f" {_short(link.label, 28)}").rstrip()


def _key(scene: Scene) -> Iterator[str]:
    used = [carrier for carrier in _ARROWS if any(link.carrier == carrier for link in scene.links)]
    yield from _wrap("   ".join(f"{_ARROWS[carrier]} {carrier}" for carrier in used))


def _wrap(text: str, indent: str = "", width: int = WIDTH) -> list[str]:
    return textwrap.wrap(_short(text, 400), width, subsequent_indent=indent)


def _short(text: str, most: int) -> str:
    """At most ``most`` characters of ASCII; those that people know have stand-ins, the others are escaped."""
    plainer = tame(text).replace(" · ", ", ").translate(_PLAINER)
    return shorten(plainer.encode("ascii", "backslashreplace").decode("ascii"), most).translate(_PLAINER)
