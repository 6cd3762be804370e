"""The graph's picture with what a run measured: busy times as colours, flows as widths, what bounds or ended it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cgspec.quantities import show_duration
from cgspec.record import ActorRecord, Record, Times
from cgspec.views.flows import Flows
from cgspec.views.hosts import put_where_it_ran
from cgspec.views.palette import PAPER, heat
from cgspec.views.scene import Box, Cluster, Link, Mark, Scene

CRITICAL = "on the critical path"
BOTTLENECK = "bottleneck"


def overlay(scene: Scene, record: Record, flows: Flows | None = None) -> Scene:
    """The scene with times; a family has those of its fastest and its slowest member, and the slowest one's colour."""
    measured = _Measured.of(record)
    scene = put_where_it_ran(scene, record.actors if record.engine != "local" else ())
    if not (measured.times or measured.shares or record.failure):
        return replace(scene, remark=_join(scene.remark, "the run has no times of its tasks"))
    clusters = tuple(measured.cluster(cluster) for cluster in scene.clusters)
    drawn = replace(scene, clusters=clusters, heats=show_duration(measured.most / 1e6) if measured.most else "")
    return _widened(drawn, flows, measured.path)


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class _Measured:
    """What is looked up in a record, by the names of tasks and actors; ``most``: the longest busy time, in µs."""

    times: Mapping[str, Times]
    shares: Mapping[str, float]
    actors: Mapping[str, ActorRecord]
    path: Sequence[str]
    busiest: tuple[str, str]
    failed: tuple[str | None, int | None]
    most: float

    @classmethod
    def of(cls, record: Record) -> _Measured:
        times = {name: task.busy_us for name, task in record.tasks.items() if task.busy_us is not None}
        shares = {actor.name: actor.utilisation for actor in record.actors if actor.utilisation is not None}
        failure, limits = record.failure, record.limits
        return cls(
            times,
            shares,
            {actor.name: actor for actor in record.actors},
            limits.critical_path if limits else (),
            (limits.busiest_actor, limits.busiest_task) if limits else ("", ""),
            (failure.task, failure.iteration) if failure else (None, None),
            max((each.p50 for each in times.values()), default=0.0),
        )

    def cluster(self, cluster: Cluster) -> Cluster:
        names = cluster.members or (cluster.name,)
        known = [self.shares[name] for name in names if name in self.shares]
        bounds = self.busiest[0] in names
        busy = f"busy {_span([f'{share * 100:.0f}%' for share in _ends(known)])}" if known else ""
        note = " · ".join(part for part in (cluster.note, busy, BOTTLENECK if bounds else "") if part)
        facts = [*cluster.facts, *_actor_facts([self.actors[name] for name in names if name in self.actors])]
        boxes = tuple(self.box(box) for box in cluster.boxes)
        return replace(cluster, note=note, boxes=boxes, facts=tuple(facts), bottleneck=bounds)

    def box(self, box: Box) -> Box:
        names = box.members or (box.name,)
        known = [self.times[name] for name in names if name in self.times]
        if box.kind != "task" or not (known or self.failed[0] in names):
            return replace(box, heat=PAPER) if box.kind == "task" and self.most else box
        marks = frozenset(self.marks(names))
        return replace(
            box,
            lines=(*self.lines(known, marks), *box.lines),
            facts=(*box.facts, *_times_facts(known)),
            marks=marks,
            heat=heat(max(each.p50 for each in known) / self.most) if known and self.most else PAPER,
        )

    def marks(self, names: Sequence[str]) -> Iterator[Mark]:
        if set(names) & set(self.path):
            yield "critical"
        if self.busiest[1] in names:
            yield "bottleneck"
        if self.failed[0] in names:
            yield "failed"

    def lines(self, known: Sequence[Times], marks: frozenset[Mark]) -> Iterator[str]:
        if known:
            yield f"takes {_durations([each.p50 for each in known])}"
        if "failed" in marks:
            where = self.failed[1]
            yield "failed" if where is None else f"failed in iteration {where}"
        if "bottleneck" in marks:
            yield BOTTLENECK
        if "critical" in marks:
            yield CRITICAL


def _times_facts(known: Sequence[Times]) -> Iterator[tuple[str, str]]:
    if not known:
        return
    for what in ("p50", "p95", "p99", "min", "max"):
        yield f"busy {what}", _durations([getattr(each, what) for each in known])
    yield "samples", f"{sum(each.count for each in known):,}"


def _actor_facts(known: Sequence[ActorRecord]) -> Iterator[tuple[str, str]]:
    """Of one actor; a family's members are not told one by one."""
    if len(known) == 1:
        actor = known[0]
        yield from [("busy", f"{actor.utilisation * 100:.0f}% of the time")] if actor.utilisation is not None else []
        yield from [("busy per iteration", show_duration(actor.busy_us / 1e6))] if actor.busy_us is not None else []
        yield from [("node", actor.node)] if actor.node else []


def _widened(scene: Scene, flows: Flows | None, path: Sequence[str]) -> Scene:
    """Links with their widths, and those that the critical path follows."""
    boxes = {name: box.id for box in scene.boxes if box.kind == "task" for name in box.members or (box.name,)}
    critical = {(boxes.get(before), boxes.get(after)) for before, after in pairwise(path)}
    most: dict[tuple[str | None, str | None], float] = {}
    for (source, target), value in (flows.values if flows is not None else {}).items():
        key = boxes.get(source), boxes.get(target)
        most[key] = max(value, most.get(key, 0.0))
    links = tuple(_link(link, flows, most.get((link.source, link.target)), critical) for link in scene.links)
    return replace(scene, links=links, widths=flows.about if flows is not None and most else "")


def _link(link: Link, flows: Flows | None, value: float | None, critical: set[tuple[str | None, str | None]]) -> Link:
    if (link.source, link.target) in critical:
        link = replace(link, critical=True)
    if flows is None or value is None or link.carrier in ("local", "host", "group"):
        return link
    link = replace(link, width=flows.width(value))
    if flows.sized:
        return link
    waits = flows.tell(value)
    label = ", ".join(part for part in (link.label, waits) if part)
    return replace(link, label=label, facts=(*link.facts, ("until it is read", waits)))


def _durations(us: Sequence[float]) -> str:
    return _span([show_duration(value / 1e6) for value in _ends(us)])


def _ends(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


def _span(ends: list[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
