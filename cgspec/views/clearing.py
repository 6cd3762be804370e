"""Clears what Graphviz lets run into each other once everything has its place: names, and the links that cross them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cgspec.views.labels import cluster_label, node_label
from cgspec.views.palette import GROUND, wash
from cgspec.views.scene import Scene

_RING = 8.0
"""What an outer ring adds to the width of an ellipse, in points."""

_LETTER, _LINE = 4.9, 17.0
"""The width of a letter and the height of the label of a link, in points, with its margin."""


@dataclass(frozen=True)
class Area:
    """A rectangle, in points from the bottom left."""

    left: float
    low: float
    right: float
    high: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Area:
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def meets(self, other: Area) -> bool:
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high

    def straddles(self, other: Area) -> bool:
        """Whether it meets the other's outline."""
        inside = other.left < self.left and self.right < other.right and other.low < self.low and self.high < other.high
        return self.meets(other) and not inside


def title_of(thing: str) -> str:
    """The id of the name of an actor or a node, which is drawn by itself."""
    return f"{thing}_name"


def clear_names(drawn: Any, scene: Scene) -> None:
    """Draws the names of actors and nodes above the links that cross them, and moves labels of links off them.

    Args:
        drawn: the scene as a ``pygraphviz.AGraph`` with the place of everything.
    """
    _trim_rings(drawn)
    raised = list(_raise_names(drawn, scene))
    _move_labels(drawn, [name for name, _ in raised], [frame for _, frame in raised])


def _trim_rings(drawn: Any) -> None:
    """Graphviz tells the size of an output with its outer ring, and would draw one more around it."""
    for node in drawn.nodes():
        if node.attr["peripheries"] == "2":
            for side in ("width", "height"):
                node.attr[side] = f"{float(node.attr[side]) - _RING / 72:.5f}"


def _raise_names(drawn: Any, scene: Scene) -> Iterator[tuple[Area, Area]]:
    """Puts each name, with its ground, into a node: Graphviz draws clusters first, then links, then nodes.

    Yields where each name is, and what it is the name of.
    """
    for node, clusters in scene.grouped:
        outer = drawn
        if node is not None:
            outer = drawn.get_subgraph(f"cluster_{node.id}")
            yield _raise(drawn, outer, node.id, node_label(node, GROUND))
        for cluster in clusters:
            label = cluster_label(cluster, wash(cluster.hue))
            yield _raise(drawn, outer.get_subgraph(f"cluster_{cluster.id}"), cluster.id, label)


def _raise(drawn: Any, frame: Any, thing: str, label: str) -> tuple[Area, Area]:
    area, name = _name(frame), title_of(thing)
    frame.graph_attr["label"] = ""
    drawn.add_node(name, id=name, label=label, pos=frame.graph_attr["lp"], tooltip=frame.graph_attr["tooltip"])
    drawn.get_node(name).attr["class"] = "name"
    return area, Area(*map(float, frame.graph_attr["bb"].split(",")))


def _name(frame: Any) -> Area:
    """Where the label of a cluster, or of the whole picture, is."""
    x, y = map(float, frame.graph_attr["lp"].split(","))
    return Area.around(x, y, *(72 * float(frame.graph_attr[side]) for side in ("lwidth", "lheight")))


def _move_labels(drawn: Any, names: Sequence[Area], frames: Sequence[Area]) -> None:
    """Labels that meet a name go to the place on their link that is nearest and free."""
    labelled = [edge for edge in drawn.edges() if edge.attr["lp"]]
    boxes = [_extent(node) for node in drawn.nodes() if not node.endswith("_name")] if labelled else []
    areas = [_label(edge, *_place(edge)) for edge in labelled]
    for number, edge in enumerate(labelled):
        if any(areas[number].meets(name) for name in names):
            taken = [_name(drawn), *names, *boxes, *areas[:number], *areas[number + 1 :]]
            for x, y in _beside(edge, names):
                area = _label(edge, x, y)
                if not any(map(area.meets, taken)) and not any(map(area.straddles, frames)):
                    edge.attr["lp"], areas[number] = f"{x:.2f},{y:.2f}", area
                    break


def _place(edge: Any) -> tuple[float, float]:
    x, y = map(float, edge.attr["lp"].split(","))
    return x, y


def _extent(node: Any) -> Area:
    x, y = map(float, node.attr["pos"].rstrip("!").split(","))
    return Area.around(x, y, 72 * float(node.attr["width"]), 72 * float(node.attr["height"]))


def _label(edge: Any, x: float, y: float) -> Area:
    """Where the label of a link would be, by the number of its letters."""
    text = edge.attr["label"].partition('POINT-SIZE="9">')[2].partition("<")[0]
    return Area.around(x, y, _LETTER * len(text) + 6, _LINE)


def _beside(edge: Any, names: Sequence[Area]) -> list[tuple[float, float]]:
    """Places above and below its line, nearest first: where that is to be seen and does not strike the label."""
    line, (x, y) = [Area.around(*point, 2, 2) for point in _curve(edge)], _place(edge)
    seen = [spot for spot in line if not any(map(spot.meets, names))]
    beside = [
        ((spot.left + spot.right) / 2, at) for spot in seen for at in (spot.high + _LINE / 2, spot.low - _LINE / 2)
    ]
    clear = [place for place in beside if not any(map(_label(edge, *place).meets, line))]
    return sorted(clear, key=lambda place: abs(place[0] - x) + abs(place[1] - y))


def _curve(edge: Any) -> Iterator[tuple[float, float]]:
    """Points on its line, a chain of cubic Bezier curves; where it ends is said with a letter."""
    said = [point for point in edge.attr["pos"].split() if not point.startswith(("e,", "s,"))]
    points = [(float(x), float(y)) for x, y in (point.split(",") for point in said)]
    for start in range(0, len(points) - 3, 3):
        for step in range(8):
            t = step / 8
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
            x, y = (sum(map(operator.mul, weights, axis)) for axis in zip(*points[start : start + 4], strict=True))
            yield x, y
