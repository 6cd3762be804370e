"""In which order each actor executes its tasks, and in which order they are bound; a cycle is explained."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cgspec.diagnostics import Finding, Path, Related

MAX_CHAIN = 24
MAX_ORDER_STEPS = 6
MAX_RELATED = 8
"""How much of a long cycle is told."""


@dataclass(frozen=True)
class Vertex:
    """What the order has to know of a task instance.

    Attributes:
        reads: ids of the tasks that it reads.
        group: the number of its collective group, or None.
    """

    name: str
    actor: int
    slot: float | None
    reads: tuple[int, ...]
    group: int | None
    path: Path


@dataclass(frozen=True)
class Cycle:
    """A closed chain of steps: (task id, ``data`` or ``order`` to the next task id)."""

    steps: tuple[tuple[int, str], ...]


def actor_orders(vertices: Sequence[Vertex], actors: int) -> list[list[int]]:
    """Per actor, its tasks by (slot, file order, row-major); ids are in (file order, row-major) already."""
    orders: list[list[int]] = [[] for _ in range(actors)]
    for number, vertex in enumerate(vertices):
        orders[vertex.actor].append(number)
    for order in orders:
        if order and vertices[order[0]].slot is not None:
            order.sort(key=lambda number: (vertices[number].slot or 0, number))
    return orders


def mixed_slots(vertices: Sequence[Vertex], orders: Sequence[Sequence[int]], names: Sequence[str]) -> list[Finding]:
    """Actors of which some but not all tasks have a slot; once per pair of spec entries."""
    findings: dict[tuple[Path, Path], Finding] = {}
    for name, order in zip(names, orders, strict=True):
        slotted = next((vertices[n] for n in order if vertices[n].slot is not None), None)
        bare = next((vertices[n] for n in order if vertices[n].slot is None), None)
        if slotted is not None and bare is not None and (slotted.path, bare.path) not in findings:
            message = f"{name} runs {slotted.name} with a slot and {bare.name} without one"
            why = "an actor's order is given by slots, or by the file, not by both"
            fix = f"give {bare.path[1]} a slot too, or none to {slotted.path[1]}"
            related = (Related("its slot is here", (*slotted.path, "slot")),)
            findings[slotted.path, bare.path] = Finding(
                "mixed-slots", message, bare.path, on="key", why=why, fix=fix, related=related
            )
    return list(findings.values())


class Ordering:
    """The union of data edges and actor orders, a collective group being one vertex."""

    def __init__(self, vertices: Sequence[Vertex], orders: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]):
        self.vertices = vertices
        self.groups = groups
        self.head = [groups[v.group][0] if v.group is not None else n for n, v in enumerate(vertices)]
        self.first = [min(groups[v.group]) if v.group is not None else n for n, v in enumerate(vertices)]
        self.after: list[list[tuple[int, int, str]]] = [[] for _ in vertices]
        self.waiting = [0] * len(vertices)
        for number, vertex in enumerate(vertices):
            for read in vertex.reads:
                self._add(read, number, "data")
        for order in orders:
            for earlier, later in itertools.pairwise(order):
                self._add(earlier, later, "order")

    def _add(self, earlier: int, later: int, kind: str) -> None:
        self.after[self.head[earlier]].append((earlier, later, kind))
        self.waiting[self.head[later]] += 1

    def bind(self) -> list[int] | Cycle:
        """Task ids in binding order: of what is ready, the first in (file order, row-major) is next."""
        waiting = list(self.waiting)
        heads = [n for n in range(len(self.vertices)) if self.head[n] == n]
        ready = [(self.first[n], n) for n in heads if not waiting[n]]
        heapq.heapify(ready)
        bound: list[int] = []
        done = 0
        while ready:
            head = heapq.heappop(ready)[1]
            done += 1
            group = self.vertices[head].group
            bound.extend([head] if group is None else self.groups[group])
            for _, later, _ in self.after[head]:
                target = self.head[later]
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, (self.first[target], target))
        return bound if done == len(heads) else self._cycle({n for n in heads if waiting[n]})

    def _cycle(self, stuck: set[int]) -> Cycle:
        """A group that holds an actor twice, or a shortest cycle through the first task of the file on one."""
        for head in sorted(stuck, key=lambda n: self.first[n]):
            own = next((step for step in self.after[head] if self.head[step[1]] == head), None)
            if own is not None:
                return Cycle(((own[0], own[2]),))
        while True:  # what is only behind a cycle, never on one, is taken away
            leading = {self.head[later] for n in stuck for _, later, _ in self.after[n] if self.head[later] in stuck}
            kept = {n for n in stuck if n in leading and any(self.head[t] in stuck for _, t, _ in self.after[n])}
            if kept == stuck:
                break
            stuck = kept
        for start in sorted(stuck, key=lambda n: self.first[n]):
            steps = self._path_back(start, stuck)
            if steps:
                return Cycle(tuple(steps))
        raise AssertionError("what cannot be bound lies on a cycle or behind one")

    def _path_back(self, start: int, stuck: set[int]) -> list[tuple[int, str]]:
        """The steps of a shortest way from a vertex back to itself, data steps preferred."""
        came: dict[int, tuple[int, int, int, str]] = {}
        queue = deque([start])
        while queue:
            head = queue.popleft()
            for earlier, later, kind in sorted(self.after[head], key=lambda step: step[2]):
                target = self.head[later]
                if target not in stuck or target in came:
                    continue
                came[target] = (head, earlier, later, kind)
                if target == start:
                    return self._unwind(start, came)
                queue.append(target)
        return []

    def _unwind(self, start: int, came: dict[int, tuple[int, int, int, str]]) -> list[tuple[int, str]]:
        steps: list[tuple[int, str]] = []
        at = start
        while True:
            at, earlier, _, kind = came[at]
            steps.append((earlier, kind))
            if at == start:
                return steps[::-1]


def _chain(names: Sequence[str], kinds: Sequence[str]) -> str:
    """The steps of a cycle in one line; of a long one its ends and its order steps, which are what can be changed."""
    said = {0, 1, 2, len(names) - 1}
    said.update([n for n, kind in enumerate(kinds) if kind == "order"][:MAX_ORDER_STEPS])
    said = said if len(names) > MAX_CHAIN else set(range(len(names)))
    shown, last = "", -1
    for n in sorted(said):
        left_out = n - last - 1
        shown += f"({left_out} more) -> " if left_out else ""
        shown += f"{names[n]} -{kinds[n]}-> "
        last = n
    return shown + names[0]


def explain_cycle(cycle: Cycle, vertices: Sequence[Vertex], actors: Sequence[str]) -> Finding:
    """The finding for a cycle: which steps are data and which are order, and a slot where one would do."""
    first = vertices[cycle.steps[0][0]]
    if len(cycle.steps) == 1 and cycle.steps[0][1] == "order":
        return _twice_in_group(first, actors[first.actor])
    names = [vertices[number].name for number, _ in cycle.steps]
    chain = _chain(names, [kind for _, kind in cycle.steps])
    order_steps = [n for n, (_, kind) in enumerate(cycle.steps) if kind == "order"]
    others = dict.fromkeys(vertices[number].path for number, _ in cycle.steps if vertices[number].path != first.path)
    related = tuple(Related(f"{path[1]} is here", path, "key") for path in list(others)[:MAX_RELATED])
    if not order_steps:
        return _data_cycle(first, chain, related, alone=len(cycle.steps) == 1)
    at = order_steps[0]
    earlier = vertices[cycle.steps[at][0]]
    later = vertices[cycle.steps[(at + 1) % len(cycle.steps)][0]]
    why = (
        f"data steps say who reads whom; order steps say what an actor runs first: "
        f"{actors[earlier.actor]} runs {earlier.name} before {later.name}"
    )
    fix = _order_fix(earlier, later)
    return Finding("cycle", f"the graph would block: {chain}", first.path, on="key", why=why, fix=fix, related=related)


def _order_fix(earlier: Vertex, later: Vertex) -> str:
    if earlier.path == later.path:
        return f"give {earlier.path[1]} a slot that puts {later.name} before {earlier.name}"
    if earlier.slot is not None:
        return f"give {later.path[1]} a smaller slot than {earlier.path[1]}"
    return f"let {later.name} come first: write {later.path[1]} above {earlier.path[1]}, or give both a slot"


def _data_cycle(first: Vertex, chain: str, related: tuple[Related, ...], *, alone: bool) -> Finding:
    why = "each of them waits for the one before, so none can begin"
    fix = "a result of an earlier iteration is an input: {$feedback: OUTPUT, first: ..}"
    message = f"tasks read each other in a circle: {chain}"
    if alone:
        message, why = f"{first.name} reads itself: {chain}", "it would wait for its own result"
    elif not related:
        message = f"the members of {first.path[1]} read each other in a circle: {chain}"
        fix = "let one of them begin, e.g. with {$prev: .., first: inputs.x}; " + fix
    return Finding("cycle", message, first.path, on="key", why=why, fix=fix, related=related)


def _twice_in_group(vertex: Vertex, actor: str) -> Finding:
    message = f"{vertex.path[1]} has {actor} in one group more than once"
    why = "a member of a group is a process, so an actor can be in it once"
    fix = "group over an axis of the actor, not of the task"
    return Finding("same-actor", message, vertex.path, on="key", why=why, fix=fix)
