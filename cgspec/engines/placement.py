"""Gives all actors their resources at once, in a placement group, or says what is missing, within a deadline."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from cgspec.engines import Options
from cgspec.engines.cluster import resources
from cgspec.errors import Failure, NotAble
from cgspec.graph import Actor, Graph, Index
from cgspec.quantities import show_duration, show_size

SMALLEST = 0.001
"""CPUs reserved for an actor that asks for nothing: a bundle cannot be empty."""


@dataclass
class Places:
    """The reserved places of all actors.

    Attributes:
        group: the placement group; None once it is given back.
        bundles: per actor, the bundle that it lives in.
    """

    group: PlacementGroup | None = None
    bundles: list[int] = field(default_factory=list)
    requests: list[dict[str, float]] = field(default_factory=list)

    def strategy(self, actor: int) -> PlacementGroupSchedulingStrategy:
        assert self.group is not None
        return PlacementGroupSchedulingStrategy(
            placement_group=self.group, placement_group_bundle_index=self.bundles[actor]
        )

    def release(self) -> None:
        if self.group is not None:
            remove_placement_group(self.group)
            self.group = None


def resources_of(actor: Actor, *, rehearse: bool) -> dict[str, float]:
    """What one actor reserves, by Ray's resource names."""
    found: dict[str, float] = {"CPU": actor.num_cpus, **actor.resources}
    if actor.num_gpus and not rehearse:
        found["GPU"] = actor.num_gpus
    if actor.accelerator_type and not rehearse:
        found[f"accelerator_type:{actor.accelerator_type}"] = SMALLEST
    if actor.memory:
        found["memory"] = float(actor.memory)
    return {name: amount for name, amount in found.items() if amount}


def reserve(graph: Graph, options: Options) -> Places:
    """Reserves a place for every actor.

    Raises:
        NotAble: there is no room, at all or within ``timeouts.place``.
    """
    places = _bundle(graph, rehearse=options.rehearse)
    if options.cluster.address == "local":
        _check_totals(graph, places)
    places.group = placement_group(places.requests, strategy=options.cluster.placement)
    try:
        # not ``group.wait``: Ctrl-C would have to wait with it
        placed, _ = ray.wait([places.group.ready()], timeout=options.engine.timeouts.place)
    except BaseException:
        places.release()
        raise
    if not placed:
        free = _amounts(resources(free=True))
        places.release()
        waited = show_duration(options.engine.timeouts.place)
        raise _no_room(places, f"free are {free} (waited {waited}, placement {options.cluster.placement})")
    return places


def _bundle(graph: Graph, *, rehearse: bool) -> Places:
    """One bundle per actor; members that share a node share a bundle."""
    places = Places()
    shared: dict[tuple[str, Index], int] = {}
    for actor in graph.actors:
        if actor.bundle not in shared:
            shared[actor.bundle] = len(places.requests)
            places.requests.append(defaultdict(float))
        bundle = shared[actor.bundle]
        places.bundles.append(bundle)
        for name, amount in resources_of(actor, rehearse=rehearse).items():
            places.requests[bundle][name] += amount
    places.requests = [dict(request) or {"CPU": SMALLEST} for request in places.requests]
    return places


def _check_totals(graph: Graph, places: Places) -> None:
    """A local Ray does not grow: what it does not have at all is not waited for."""
    total = resources()
    asked = _sum(places)
    if any(amount > total.get(name, 0) + SMALLEST * len(places.requests) for name, amount in asked.items()):
        raise _no_room(places, f"this Ray has {_amounts(total)}")


def _sum(places: Places) -> dict[str, float]:
    asked: dict[str, float] = defaultdict(float)
    for request in places.requests:
        for name, amount in request.items():
            asked[name] += amount
    return asked


def _no_room(places: Places, there: str) -> NotAble:
    message = f"there is no room for the actors: asked for are {_amounts(_sum(places))}, {there}"
    return NotAble(Failure("not-able", message, phase="startup", path=("cluster",)))


def _amounts(of: dict[str, float]) -> str:
    shown = {name: amount for name, amount in of.items() if not name.startswith(("node:", "object_store"))}
    return ", ".join(_amount(name, amount) for name, amount in sorted(shown.items())) or "nothing"


def _amount(name: str, amount: float) -> str:
    return f"{show_size(amount)} memory" if name == "memory" else f"{amount:g} {name}"
