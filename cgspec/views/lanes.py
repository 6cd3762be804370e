"""A plain layout for scenes that would take Graphviz minutes: a lane for each actor, a column for each step of depth.

Graphviz's time grows with the number of ranks that links cross, so a graph of a thousand tasks takes it one second or a
hundred. ``pin_down`` places every box itself, in linear time, where that number is large.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgspec.views.scene import Box, Scene

MOST_CROSSINGS = 8_000
"""Scenes whose links cross more ranks than this are pinned down; below it Graphviz takes about three seconds."""

_MARGIN = 12.0
_HEADER = 40.0
_NODE_HEADER = 26.0
_GAP = 18.0
"""In points: a lane's margin, the height of its label and of a node's, the space between lanes."""


@dataclass(frozen=True)
class Pins:
    """Where everything is, in points from the bottom left: centres of boxes, corners (left, low, right, high) of
    clusters."""

    boxes: dict[str, tuple[float, float]]
    clusters: dict[str, tuple[float, float, float, float]]


def pin_down(scene: Scene) -> Pins | None:
    """The places of everything, or None where Graphviz had better find them."""
    depths = find_depths(scene)
    crossings = sum(abs(depths[link.target] - depths[link.source]) for link in scene.links)
    return _place(scene, depths) if crossings > MOST_CROSSINGS else None


def idle_box(cluster: str) -> str:
    """The id of what is drawn in an actor that runs nothing."""
    return f"{cluster}_none"


def find_depths(scene: Scene) -> dict[str, int]:
    """The length of the longest path to each box; what is on a cycle keeps the depth at which it was first met."""
    readers: dict[str, list[str]] = {box.id: [] for box in scene.boxes}
    waiting = dict.fromkeys(readers, 0)
    steps = [(link.source, link.target) for link in scene.links if link.source != link.target]
    steps += [(box.after, box.id) for box in scene.boxes if box.after is not None]
    for source, target in steps:
        readers[source].append(target)
        waiting[target] += 1
    depths = dict.fromkeys(readers, 0)
    ready = deque(box for box, count in waiting.items() if not count)
    while ready:
        here = ready.popleft()
        for there in readers[here]:
            depths[there] = max(depths[there], depths[here] + 1)
            waiting[there] -= 1
            if not waiting[there]:
                ready.append(there)
    return depths


def _place(scene: Scene, depths: dict[str, int]) -> Pins:
    """Lanes from top to bottom in the actors' order, terminals in a lane without a ground on top."""
    pitch = _pitch(scene)
    pins = Pins({}, {})
    top = _lane(None, scene.terminals, 0.0, depths, pitch, pins)
    for node, clusters in scene.grouped:
        edge, top = top, top - (_NODE_HEADER if node is not None else 0.0)
        for cluster in clusters:
            top = _lane(cluster.id, cluster.boxes, top, depths, pitch, pins)
        if node is not None:
            lanes = [pins.clusters[cluster.id] for cluster in clusters]
            left, right = min(lane[0] for lane in lanes), max(lane[2] for lane in lanes)
            pins.clusters[node.id] = (left - _MARGIN, top + _GAP - _MARGIN, right + _MARGIN, edge)
            top -= _MARGIN
    return pins


def _lane(
    lane: str | None, members: Sequence[Box], top: float, depths: Mapping[str, int], pitch: float, pins: Pins
) -> float:
    """Pins one lane down, and says where the next one may begin."""
    row = max(map(_height, members), default=50.0)
    first = top - (_MARGIN if lane is None else _HEADER) - row / 2
    filled: dict[int, int] = {}
    for box in members:
        depth = depths[box.id]
        pins.boxes[box.id] = (depth * pitch, first - filled.get(depth, 0) * row)
        filled[depth] = filled.get(depth, 0) + 1
    low = first - (max(filled.values(), default=1) - 0.5) * row - _MARGIN
    if lane is not None:
        columns = [depth * pitch for depth in filled] or [0.0]
        half = pitch / 2 - _MARGIN / 2
        pins.boxes.update({} if members else {idle_box(lane): (0.0, first)})
        pins.clusters[lane] = (min(columns) - half, low, max(columns) + half, top)
    return low - _GAP


def _pitch(scene: Scene) -> float:
    """The distance of columns: enough for the widest box, estimated by its letters."""
    return 70 + 8.0 * max((_letters(box) for box in scene.boxes), default=0)


def _letters(box: Box) -> int:
    returns = max((len(port.name) for port in box.ports), default=0)
    return min(40, max(len(box.name), len(box.note))) + min(40, returns)


def _height(box: Box) -> float:
    """The height of a box with the air around it, estimated by its lines."""
    lines = 2 + min(12, len(box.lines)) + (box.role != "plain")
    return max(30.0 + 14.0 * lines, 20.0 + 22.0 * min(33, len(box.ports)))
