"""A part of a scene: what lies within a number of hops of one task, input, output or actor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.views.scene import Box, Cluster, Node, Scene


def restrict(scene: Scene, around: str, hops: int) -> Scene:
    """The scene without what is further than ``hops`` links from ``around``, in either direction.

    Args:
        around: a task, a task family, an input (``inputs.x``), an output or an actor, by its name in the graph.

    Raises:
        UsageError: nothing in the graph has this name.
    """
    near = _reach(scene, _find(scene, around), hops)
    clusters: Iterable[Cluster] = (
        replace(cluster, boxes=tuple(_cut(box, near) for box in cluster.boxes if box.id in near))
        for cluster in scene.clusters
    )
    clusters = tuple(cluster for cluster in clusters if cluster.boxes)
    kept = sum(box.id in near for box in scene.boxes if box.kind == "task")
    whole = sum(box.kind == "task" for box in scene.boxes)
    return replace(
        scene,
        clusters=clusters,
        nodes=tuple(_keep(scene.nodes, {cluster.id for cluster in clusters})),
        terminals=tuple(box for box in scene.terminals if box.id in near),
        links=tuple(link for link in scene.links if link.source in near and link.target in near),
        remark=f"within {hops} hop{'s' * (hops != 1)} of {around}: {kept} of {whole} tasks",
    )


def _keep(nodes: Iterable[Node], left: set[str]) -> Iterator[Node]:
    for node in nodes:
        if members := tuple(cluster for cluster in node.clusters if cluster in left):
            yield replace(node, clusters=members)


def _cut(box: Box, near: set[str]) -> Box:
    return box if box.after in near else replace(box, after=None)


def _find(scene: Scene, around: str) -> set[str]:
    """The ids of the boxes that a name means: the first kind of thing that has it."""
    named: dict[str, set[str]] = {}
    for name, box_id in _names(scene):
        named.setdefault(name, set()).add(box_id)
    for cluster in scene.clusters:
        for name in (cluster.family, *cluster.members):
            named.setdefault(name, {box.id for box in cluster.boxes})
    if around not in named:
        raise UsageError(f"nothing in this graph is called {around}: {suggest(around, named, noun='there are')}")
    return named[around]


def _names(scene: Scene) -> Iterator[tuple[str, str]]:
    prefixes = {"task": "", "input": "inputs.", "output": "outputs.", "plate": ""}
    for box in scene.boxes:
        for name in dict.fromkeys((*box.members, box.family)):
            yield prefixes[box.kind] + name, box.id


def _reach(scene: Scene, start: set[str], hops: int) -> set[str]:
    """The ids within ``hops`` links; a collective costs nothing to leave, so its members are one hop apart."""
    plates = {box.id for box in scene.terminals if box.kind == "plate"}
    neighbours: dict[str, list[str]] = {}
    for link in scene.links:
        neighbours.setdefault(link.source, []).append(link.target)
        neighbours.setdefault(link.target, []).append(link.source)
    distance = dict.fromkeys(start, 0)
    queue = deque(start)
    while queue:
        here = queue.popleft()
        cost = distance[here] + (here not in plates)
        for there in neighbours.get(here, ()):
            if cost <= hops and cost < distance.get(there, hops + 1):
                distance[there] = cost
                (queue.append if here not in plates else queue.appendleft)(there)
    return set(distance)
