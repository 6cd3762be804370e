"""The graph's picture with what a run measured on it: each task's busy time, each actor's share of the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cgspec.quantities import show_duration
from cgspec.record import Record
from cgspec.views.scene import Box, Cluster, Scene

CRITICAL = "on the critical path"


def overlay(scene: Scene, record: Record) -> Scene:
    """The scene with times; a family has those of its fastest and its slowest member."""
    times = {name: task.busy_us.p50 for name, task in record.tasks.items() if task.busy_us is not None}
    shares = {actor.name: actor.utilisation for actor in record.actors if actor.utilisation is not None}
    critical = set(record.limits.critical_path) if record.limits else set()
    clusters = tuple(_cluster(cluster, times, shares, critical) for cluster in scene.clusters)
    return replace(scene, clusters=clusters)


def _cluster(cluster: Cluster, times: Mapping[str, float], shares: Mapping[str, float], critical: set[str]) -> Cluster:
    known = [shares[name] for name in cluster.members or (cluster.name,) if name in shares]
    note = (
        f"{cluster.note} · busy {_span([f'{share * 100:.0f}%' for share in _ends(known)])}" if known else cluster.note
    )
    return replace(cluster, note=note, boxes=tuple(_box(box, times, critical) for box in cluster.boxes))


def _box(box: Box, times: Mapping[str, float], critical: set[str]) -> Box:
    names = box.members or (box.name,)
    known = [times[name] for name in names if name in times]
    if not known or box.kind != "task":
        return box
    lines = [f"takes {_span([show_duration(us / 1e6) for us in _ends(known)])}"]
    lines += [CRITICAL] if critical.intersection(names) else []
    return replace(box, lines=(*lines, *box.lines))


def _ends(values: list[float]) -> list[float]:
    return [min(values), max(values)]


def _span(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
