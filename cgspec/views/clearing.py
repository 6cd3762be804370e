"""Clears what Graphviz lets run into each other once everything has its place: names, and the links that cross them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cgspec.views.labels import cluster_label, node_label
from cgspec.views.palette import GROUND, wash
from cgspec.views.scene import Scene

_STEPS = 20
"""The pieces that a curve is looked at in."""

_RING = 8.0
"""What an outer ring adds to the width of an ellipse, in points."""

_LETTER, _LETTERS, _LINE = 4.9, 7.0, 12.0
"""The width and the height of letters in the label of a link, and its height with its margin, in points."""


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
    """Labels that meet a name, or that their own wide line strikes through, go to the best place beside that line."""
    labelled = [edge for edge in drawn.edges() if edge.attr["lp"]]
    boxes = [_extent(node) for node in drawn.nodes() if not node.endswith("_name")] if labelled else []
    areas = [_label(edge, *_place(edge)) for edge in labelled]
    for number, edge in enumerate(labelled):
        if any(map(areas[number].meets, names)) or is_struck(edge):
            others = [*areas[:number], *areas[number + 1 :]]
            around = _Around([_name(drawn), *names], boxes, others, frames, _line(edge), _place(edge), len(_text(edge)))
            x, y, _ = min(around.places(), key=around.harm)
            edge.attr["lp"], areas[number] = f"{x:.2f},{y:.2f}", _label(edge, x, y)


@dataclass(frozen=True)
class _Around:
    """What a label of so many letters may get in the way of, its own line among it, and where it was."""

    names: Sequence[Area]
    boxes: Sequence[Area]
    labels: Sequence[Area]
    frames: Sequence[Area]
    line: Sequence[Area]
    was: tuple[float, float]
    letters: int

    def places(self) -> Iterator[tuple[float, float, float]]:
        """Where it was, and places above and below its line: x, y, and how far from the line."""
        yield *self.was, 0.0
        for spot in self.line[::3]:
            for away in (0.0, 4.0, 9.0, 16.0, 28.0):
                yield (spot.left + spot.right) / 2, spot.high + _LINE / 2 + away, away
                yield (spot.left + spot.right) / 2, spot.low - _LINE / 2 - away, away

    def harm(self, place: tuple[float, float, float]) -> tuple[int, float]:
        """How much harm the label does at a place, and how far that is, from the line above all."""
        (x, y, away), (was_x, was_y) = place, self.was
        area = Area.around(x, y, _LETTER * self.letters + 6, _LINE)
        letters = Area.around(x, y, _LETTER * self.letters, _LETTERS)
        harm = 8 * any(map(area.meets, self.names)) + 4 * any(map(area.meets, self.boxes))
        harm += 3 * any(map(area.meets, self.labels)) + 2 * any(map(letters.meets, self.line))
        return harm + any(map(area.straddles, self.frames)), away + (abs(x - was_x) + abs(y - was_y)) / 20


def _place(edge: Any) -> tuple[float, float]:
    x, y = map(float, edge.attr["lp"].split(","))
    return x, y


def _extent(node: Any) -> Area:
    x, y = map(float, node.attr["pos"].rstrip("!").split(","))
    return Area.around(x, y, 72 * float(node.attr["width"]), 72 * float(node.attr["height"]))


def _label(edge: Any, x: float, y: float) -> Area:
    """Where the label of a link would be, by the number of its letters."""
    return Area.around(x, y, _LETTER * len(_text(edge)) + 6, _LINE)


def _text(edge: Any) -> str:
    return str(edge.attr["label"].partition('POINT-SIZE="9">')[2].partition("<")[0])


def is_struck(edge: Any) -> bool:
    """Whether its own line runs through the letters of its label."""
    letters = Area.around(*_place(edge), _LETTER * len(_text(edge)), _LETTERS)
    return any(map(letters.meets, _line(edge)))


def _line(edge: Any) -> list[Area]:
    """Its line, as wide as it is drawn, in pieces."""
    width = float(edge.attr["penwidth"] or 1) * (3 if edge.attr["color"].count(":") == 2 else 1)
    return [Area.around(*point, width, width) for point in _curve(edge)]


def _curve(edge: Any) -> Iterator[tuple[float, float]]:
    """Points on its line, a chain of cubic Bezier curves; where it ends is said with a letter."""
    said = [point for point in edge.attr["pos"].split() if not point.startswith(("e,", "s,"))]
    points = [(float(x), float(y)) for x, y in (point.split(",") for point in said)]
    for start in range(0, len(points) - 3, 3):
        for step in range(_STEPS):
            t = step / _STEPS
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
            x, y = (sum(map(operator.mul, weights, axis)) for axis in zip(*points[start : start + 4], strict=True))
            yield x, y
