"""Judges ``expect``: what each entry says of outputs, iteration by iteration, and of metrics; data in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cgspec.conditions import CONDITIONS, Condition, Outcome, Seen
from cgspec.diagnostics import Path
from cgspec.graph import Graph
from cgspec.observing import OBSERVABLE, Observed, Sight, value_path
from cgspec.showing import short
from cgspec.spec import ExpectSpec
from cgspec.usercode import describe
from cgspec.values import CannotMake, Value

Read = Callable[[Any, Path], Value]
"""Parses raw spec data into a value, as ``parsing.ValueReader.read`` does."""


@dataclass(frozen=True)
class Verdict:
    """What became of one condition.

    Attributes:
        what: the condition in words, e.g. ``output recv equals``.
        path: the YAML path of the entry.
        passed: None where it was not judged; ``found`` then says why.
        expected, found: short text; of the iteration that failed first, else of the last one that was looked at.
        iteration: that iteration; None for metrics and where nothing was looked at.
        looked, failed: how many iterations were looked at, and how many of them failed.
        margin: for metrics, how far the value is inside its bound as a share of the bound; negative outside.
    """

    what: str
    path: Path
    passed: bool | None = None
    expected: str = ""
    found: str = "not looked at"
    iteration: int | None = None
    looked: int = 0
    failed: int = 0
    margin: float | None = None


@dataclass
class _Look:
    """One condition on one output, and what came of looking: the first failure, else the last look."""

    verdict: Verdict
    output: int
    item: int | str | None
    at: str
    condition: Condition
    looked: int = 0
    failed: int = 0
    outcome: Outcome | None = None
    iteration: int | None = None
    path: Path = ()
    sight: Sight | None = None

    def look(self, outputs: Sequence[object], seen: Seen) -> None:
        """Looks once more."""
        outcome = self._judged(outputs[self.output], seen)
        self.looked += 1
        if not self.failed:
            self.outcome, self.iteration = outcome, seen.scope.i
        self.failed += not outcome.passed
        if self.sight is not None:
            self._observe(self.sight, outputs[self.output])

    def _observe(self, sight: Sight, value: object) -> None:
        try:
            sight.see(_item(value, self.item))
        except _NoItem as missing:
            sight.blind(f"it is {missing}")
        except (Exception, SystemExit) as error:
            sight.blind(f"it cannot be looked at: {describe(error)[0]}")

    def _judged(self, value: object, seen: Seen) -> Outcome:
        try:
            return self.condition(_item(value, self.item), seen)
        except _NoItem as missing:
            return Outcome(False, f"an item {self.item!r}", missing)
        except CannotMake as error:
            return Outcome(False, f"a value that cannot be made: {error}", short(value))
        except (Exception, SystemExit) as error:
            return Outcome(False, "a value that can be looked at", f"{short(value)}: {describe(error)[0]}")

    def summed_up(self) -> Verdict:
        if self.outcome is None:
            return self.verdict
        return replace(
            self.verdict,
            passed=not self.failed,
            expected=str(self.outcome.expected),
            found=str(self.outcome.found),
            iteration=self.iteration,
            looked=self.looked,
            failed=self.failed,
        )


class _NoItem(LookupError):
    """The item that an entry names is not there."""


class Judge:
    """The entries of ``expect`` that look at outputs, during one phase.

    Args:
        graph: says which outputs there are.
        entries: ``spec.expect``; those on metrics are left to ``judge_metrics``.
        read: parses the values that stay raw in the spec.
        observe: whether to tell, in the end, under which values the conditions would have held (``observed``).
    """

    def __init__(self, graph: Graph, entries: Sequence[ExpectSpec], read: Read, *, observe: bool = False) -> None:
        self._looks = [look for number, entry in enumerate(entries) for look in _looks(graph, number, entry, read)]
        for look in self._looks if observe else ():
            look.sight = Sight(str(look.path[2])) if look.path[2] in OBSERVABLE else None
        self._at = {at: [look for look in self._looks if look.at == at] for at in ("first", "every", "last")}
        self.looks_at_every = bool(self._at["every"])

    def look(self, at: str, outputs: Sequence[object], seen: Seen) -> None:
        """Looks at one iteration's outputs, one per ``graph.outputs``, ``at`` first, every or last."""
        for look in self._at[at]:
            look.look(outputs, seen)

    def verdicts(self) -> tuple[Verdict, ...]:
        """One per condition, in the order of the spec."""
        return tuple(look.summed_up() for look in self._looks)

    def observed(self) -> tuple[Observed, ...]:
        """Of every condition that failed, what would have held in all iterations that were looked at."""
        return tuple(_observed(look) for look in self._looks if look.failed)


def _observed(look: _Look) -> Observed:
    number, condition = int(look.path[1]), str(look.path[2])
    path = value_path(number, condition)
    if look.sight is None:
        return Observed(look.verdict.what, path, why=f"{condition} says no value that could be written")
    return Observed(look.verdict.what, path, look.sight.text, look.sight.why)


def _looks(graph: Graph, number: int, entry: ExpectSpec, read: Read) -> Iterator[_Look]:
    if entry.output is None:
        return
    place = output_place(graph, entry.output)
    item = "" if entry.item is None else f" item {entry.item}"
    for name, make in CONDITIONS.items():
        said = getattr(entry, name)
        if name not in entry.model_fields_set or (said is None and name != "equals"):
            continue
        path: Path = ("expect", number, name)
        what = f"output {entry.output}{item} {name.replace('_', ' ')}"
        condition = make(said, lambda data, path=path: read(data, path))  # type: ignore[misc]
        yield _Look(Verdict(what, ("expect", number)), place, entry.item, entry.at, condition, path=path)


def output_place(graph: Graph, output: str | int) -> int:
    """The place of an output in ``graph.outputs``, by its name, or by its index where outputs are a list."""
    names = [name for name, _ in graph.outputs]
    if output in names:
        return names.index(output)
    index = int(output)  # `check` lets nothing else pass
    assert -len(names) <= index < len(names), f"check let the output {output!r} pass"
    return index % len(names)


def _item(value: Any, item: int | str | None) -> object:
    if item is None:
        return value
    try:
        return value[item]
    except (LookupError, TypeError, ValueError):
        raise _NoItem(f"{short(value)}, which has no item {item!r}") from None
