"""Looks at what tasks return, in their workers, where ``expect`` says so of a task; and judges what was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgspec import usercode
from cgspec.conditions import fault_of
from cgspec.graph import Graph
from cgspec.selection import select

if TYPE_CHECKING:
    from cgspec.expectations import Verdict
    from cgspec.spec import ExpectSpec, Spec

EXPECTED = "finite numbers"


@dataclass
class Looked:
    """What was seen of one task.

    Attributes:
        looked, failed: how many iterations were looked at, and how many were not finite.
        first, last, bad: what is wrong in the first and the last iteration, empty where nothing is; and in the one
            that failed first, whose number is ``iteration``.
    """

    looked: int = 0
    failed: int = 0
    first: str = ""
    last: str = ""
    bad: str = ""
    iteration: int | None = None

    def look(self, value: object, iteration: int) -> None:
        """Looks once more."""
        try:
            fault = fault_of(value)
        except (Exception, SystemExit) as error:
            fault = f"a value that cannot be looked at: {usercode.describe(error)[0]}"
        self.first = self.first if self.looked else fault
        self.last = fault
        self.looked += 1
        if fault and not self.failed:
            self.bad, self.iteration = fault, iteration
        self.failed += bool(fault)


def looks_of(spec: Spec, graph: Graph) -> tuple[int, ...]:
    """The tasks that are looked at, as indices into ``graph.tasks``."""
    return tuple(sorted({task for entry in spec.expect if _looks(entry) for task in select(graph.tasks, entry.task)}))


def _looks(entry: ExpectSpec) -> bool:
    return entry.task is not None and entry.metric is None and bool(entry.finite)


def judge_looks(
    graph: Graph, entries: Sequence[ExpectSpec], looked: Mapping[int, Looked], first: int = 0
) -> tuple[Verdict, ...]:
    """One verdict per entry that looks at a task; of several members, about the one that failed.

    Args:
        looked: by the task's index; empty where the measure phase did not end.
        first: the number of the phase's first iteration.
    """
    return tuple(_judged(graph, entry, number, looked, first) for number, entry in enumerate(entries) if _looks(entry))


def _judged(graph: Graph, entry: ExpectSpec, number: int, looked: Mapping[int, Looked], first: int) -> Verdict:
    from cgspec.expectations import Verdict

    verdict = Verdict(f"task {entry.task} finite", ("expect", number), expected=EXPECTED)
    members = [task for task in select(graph.tasks, entry.task) if task in looked and looked[task].looked]
    if not members:
        return verdict
    worst = max(members, key=lambda task: bool(_fault(looked[task], entry.at)[0]))
    (fault, iteration), seen = _fault(looked[worst], entry.at), looked[worst]
    return replace(
        verdict,
        passed=not fault,
        found=f"{graph.tasks[worst].name}: {fault}" if fault else EXPECTED,
        iteration=None if iteration is None else iteration + first,
        looked=seen.looked if entry.at == "every" else 1,
        failed=seen.failed if entry.at == "every" else int(bool(fault)),
    )


def _fault(seen: Looked, at: str) -> tuple[str, int | None]:
    """What is wrong, and in which iteration."""
    if at == "every":
        return seen.bad, seen.iteration if seen.bad else seen.looked - 1
    return (seen.first, 0) if at == "first" else (seen.last, seen.looked - 1)
