"""Judges ``expect``: what each entry says of outputs, iteration by iteration, and of metrics; data in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cgspec.conditions import CONDITIONS, Condition, Outcome, Seen
from cgspec.diagnostics import Path
from cgspec.graph import Graph
from cgspec.showing import short
from cgspec.spec import ExpectSpec
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


@dataclass(frozen=True)
class _Look:
    """One condition on one output."""

    verdict: Verdict
    output: int
    item: int | str | None
    at: str
    condition: Condition

    def judge(self, value: object, seen: Seen) -> Outcome:
        try:
            return self.condition(_item(value, self.item), seen)
        except _NoItem as missing:
            return Outcome(False, f"an item {self.item!r}", str(missing))
        except CannotMake as error:
            return Outcome(False, f"a value that cannot be made: {error}", short(value))
        except Exception as error:
            return Outcome(False, "a value that can be looked at", f"{short(value)}: {type(error).__name__}: {error}")


class _NoItem(LookupError):
    """The item that an entry names is not there."""


class Judge:
    """The entries of ``expect`` that look at outputs, during one phase.

    Args:
        graph: says which outputs there are.
        entries: ``spec.expect``; those on metrics are left to ``judge_metric``.
        read: parses the values that stay raw in the spec.
    """

    def __init__(self, graph: Graph, entries: Sequence[ExpectSpec], read: Read) -> None:
        self._looks = [look for number, entry in enumerate(entries) for look in _looks(graph, number, entry, read)]
        self._every = [number for number, look in enumerate(self._looks) if look.at == "every"]
        self._first = [number for number, look in enumerate(self._looks) if look.at == "first"]
        self._last = [number for number, look in enumerate(self._looks) if look.at == "last"]
        self.looks_at_every = bool(self._every)

    def first(self, outputs: Sequence[object], seen: Seen) -> None:
        """Looks at the first iteration's outputs, one per ``graph.outputs``."""
        self._judge(self._first, outputs, seen)

    def every(self, outputs: Sequence[object], seen: Seen) -> None:
        """Looks at one iteration's outputs."""
        self._judge(self._every, outputs, seen)

    def last(self, outputs: Sequence[object], seen: Seen) -> None:
        """Looks at the last iteration's outputs."""
        self._judge(self._last, outputs, seen)

    def _judge(self, numbers: Sequence[int], outputs: Sequence[object], seen: Seen) -> None:
        for number in numbers:
            look = self._looks[number]
            outcome = look.judge(outputs[look.output], seen)
            self._looks[number] = replace(look, verdict=_after(look.verdict, outcome, seen.scope.i))

    def verdicts(self) -> tuple[Verdict, ...]:
        """One per condition, in the order of the spec."""
        return tuple(look.verdict for look in self._looks)


def _after(verdict: Verdict, outcome: Outcome, iteration: int | None) -> Verdict:
    """The verdict after one more look: the first failure stays."""
    looked, failed = verdict.looked + 1, verdict.failed + (not outcome.passed)
    if verdict.failed:
        return replace(verdict, looked=looked, failed=failed)
    seen = replace(verdict, passed=outcome.passed, looked=looked, failed=failed, iteration=iteration)
    return replace(seen, expected=outcome.expected, found=outcome.found)


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
        yield _Look(Verdict(what, ("expect", number)), place, entry.item, entry.at, condition)


def output_place(graph: Graph, output: str | int) -> int:
    """The place of an output in ``graph.outputs``, by its name, or by its index where outputs are a list."""
    names = [name for name, _ in graph.outputs]
    if output in names:
        return names.index(output)
    assert isinstance(output, int) and -len(names) <= output < len(names), f"check let the output {output!r} pass"
    return output % len(names)


def _item(value: Any, item: int | str | None) -> object:
    if item is None:
        return value
    try:
        return value[item]
    except (LookupError, TypeError, ValueError):
        raise _NoItem(f"{short(value)}, which has no item {item!r}") from None
