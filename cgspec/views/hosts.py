"""Which actors of a picture share a node, as far as it is known: from a spec that is strict about it, or from a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgspec.graph import Actor, Graph
from cgspec.views.scene import Cluster, Node, Scene

if TYPE_CHECKING:
    from cgspec.record import ActorRecord

OF_THE_RUN = "this run"


@dataclass(frozen=True)
class _Host:
    """What is said of a node: its name, how it is known, and what is said of a family that is on several such nodes."""

    name: str
    because: str
    spread: str


def put_on_nodes(scene: Scene, graph: Graph) -> Scene:
    """The scene with the nodes that the spec promises: strict placement, and members that share a node.

    ``PACK`` and ``SPREAD`` are wishes, so they say nothing.
    """
    shared = Counter(actor.bundle for actor in graph.actors)
    hosts: dict[str, tuple[object, _Host]] = {}
    for actor in graph.actors:
        key = () if graph.placement == "STRICT_PACK" else actor.bundle
        host = _promised(actor, graph.placement, shared[actor.bundle])
        if host is not None:
            hosts[actor.name] = key, host
    return _group(scene, hosts)


def _promised(actor: Actor, placement: str, members: int) -> _Host | None:
    """``members``: how many share its bundle."""
    axes = ", ".join(actor.same_node)
    if placement == "STRICT_PACK":
        return _Host("one node", "cluster.placement: STRICT_PACK", "")
    if placement == "STRICT_SPREAD":
        return _Host("own node", "cluster.placement: STRICT_SPREAD", f"own node across {axes}" if axes else "own nodes")
    return _Host("same node", f"same_node: {axes}", f"same node across {axes}") if members > 1 else None


def put_where_it_ran(scene: Scene, actors: Sequence[ActorRecord]) -> Scene:
    """The scene with the nodes of a run in place of what the spec promises."""
    hosts: dict[str, tuple[object, _Host]] = {
        actor.name: (actor.node, _Host(f"node {actor.node}", OF_THE_RUN, "")) for actor in actors if actor.node
    }
    return _group(replace(scene, nodes=()), hosts)


def _group(scene: Scene, hosts: Mapping[str, tuple[object, _Host]]) -> Scene:
    """``hosts``: by actor, its node and what is said of it."""
    groups: dict[object, list[str]] = {}
    said: dict[object, _Host] = {}
    clusters = []
    for cluster in scene.clusters:
        known = [hosts[name] for name in cluster.members if name in hosts]
        keys = {key for key, _ in known}
        if len(keys) == 1 and len(known) == len(cluster.members):
            groups.setdefault(known[0][0], []).append(cluster.id)
            said[known[0][0]] = known[0][1]
        clusters.append(_spread(cluster, [host for _, host in known], len(keys)))
    nodes = (
        Node(f"n{number}", said[key].name, said[key].because, tuple(members))
        for number, (key, members) in enumerate(groups.items())
    )
    return replace(scene, clusters=tuple(clusters), nodes=tuple(nodes))


def _spread(cluster: Cluster, hosts: Sequence[_Host], count: int) -> Cluster:
    """Says of a family how it is spread over several nodes."""
    if count < 2:
        return replace(cluster, where="")
    names = list(dict.fromkeys(host.name for host in hosts))
    facts = (("nodes", ", ".join(names)),) if len(names) > 1 else ()
    return replace(cluster, where=hosts[0].spread or f"on {count} nodes", facts=(*cluster.facts, *facts))
