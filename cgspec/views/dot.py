"""A scene as DOT text; deterministic, self-contained, and safe for names of any kind."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.views.palette import INK, MUTED, STROKES, fill, outline, wash
from cgspec.views.scene import Box, Cluster, Link, Scene
from cgspec.views.taming import mark_up, quote, quote_lines, tell_all

SANS = "Helvetica,Arial,DejaVu Sans,sans-serif"
MONO = "DejaVu Sans Mono,Menlo,Consolas,monospace"
NAME_LENGTH = 40
LINE_LENGTH = 60
LABELLED = 150
"""Pictures with more links than this carry no labels on them; the legend and tooltips still tell the transport."""


def write_dot(scene: Scene, *, legend: bool = True) -> str:
    """The scene as the text of a directed graph that reads from left to right."""
    hues = {box.id: cluster.hue for cluster in scene.clusters for box in cluster.boxes}
    labelled = len(scene.links) <= LABELLED
    lines = ["digraph cgspec {", *_defaults(scene)]
    lines += [f"  {_terminal(box)}" for box in scene.terminals]
    for cluster in scene.clusters:
        lines += _cluster(cluster)
    lines += [f"  {_link(link, labelled)}" for link in scene.links]
    lines += [f"  {box.after} -> {box.id} [style=invis];" for box in scene.boxes if box.after is not None]
    lines += _legend(scene, labelled) if legend else []
    assert all(hue >= 0 for hue in hues.values())
    return "\n".join([*lines, "}", ""])
