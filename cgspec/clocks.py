"""Puts what other nodes recorded on the driver's clock before anybody reads it: every machine has its own clock."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from cgspec.alignment import Alignment
from cgspec.engines import Bounds, ChannelTimes, PhaseData, TaskTimes
from cgspec.graph import Graph

Times = TypeVar("Times", TaskTimes, ChannelTimes)


def hull(one: Mapping[str, Bounds], other: Mapping[str, Bounds]) -> dict[str, Bounds]:
    """What two measurements allow, by node: clocks drift between them."""
    nodes = [node for node in one if node in other]
    return {node: (min(one[node][0], other[node][0]), max(one[node][1], other[node][1])) for node in nodes}


def settle(
    graph: Graph,
    data: PhaseData,
    nodes: Mapping[str, str],
    driver: Sequence[tuple[int, int]],
    *,
    without: Collection[int] = (),
) -> None:
    """Moves a phase's times to the driver's clock, and keeps by how much, in ``data.clocks``.

    With o = offset, a question that was asked at a, answered with t and at hand at b says: a - t <= o <= b - t
    (``data.bounds``; Cristian, "Probabilistic clock synchronization", 1989). No task starts before its iteration was
    submitted and none ends after its results were at hand, which says as much of every task and iteration. The offset
    is the middle of what all of them allow, the error is half of it. Where a node was not asked, and its tasks allow 0,
    its clock is the driver's.

    Args:
        nodes: actor member's name to its node's address.
        driver: by iteration, when it was submitted and when its results were at hand.
        without: the iterations that raised: their results were at hand before all tasks had ended.
    """
    addresses = dict.fromkeys(nodes.values())
    for node in addresses if len(addresses) > 1 or data.bounds else ():
        actors = {number for number, actor in enumerate(graph.actors) if nodes.get(actor.name) == node}
        there = {number for number, task in enumerate(graph.tasks) if task.actor in actors}
        allowed = [bounds for n in there for bounds in _allowed(data.times[n], driver, without)]
        allowed += [data.bounds[node]] if node in data.bounds else []
        low, high = max((low for low, _ in allowed), default=0), min((high for _, high in allowed), default=0)
        if node not in data.bounds and low <= 0 <= high:
            continue
        offset = (low + high) // 2
        data.clocks[node] = Alignment(offset, abs(high - low + 1) // 2)
        data.times = tuple(_moved(times, offset) if n in there else times for n, times in enumerate(data.times))
        data.channels = [_moved(each, offset) if each.task in there else each for each in data.channels]


def _allowed(times: TaskTimes, driver: Sequence[tuple[int, int]], without: Collection[int]) -> Iterator[Bounds]:
    for place, (start, end) in enumerate(zip(times.start, times.end, strict=True), times.first):
        if start and end and place < len(driver) and place not in without:
            submitted, at_hand = driver[place]
            yield submitted - start, at_hand - end


def _moved(times: Times, by: int) -> Times:
    moved = replace(times, start=_all_moved(times.start, by), end=_all_moved(times.end, by))
    if isinstance(moved, ChannelTimes) or moved.device is None:
        return moved
    return replace(moved, device=_moved(moved.device, by))


def _all_moved(times: Iterable[int], by: int) -> array[int]:
    return array("q", [at and at + by for at in times])
