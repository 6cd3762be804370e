"""Evaluates the user's ``metrics`` when the measure phase is over, from what was measured, declared and returned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cgspec import analysis
from cgspec.analysis import Spans
from cgspec.expressions import ExpressionError
from cgspec.formulas import OUT, Formula, all_bytes, crossing, word
from cgspec.graph import Graph
from cgspec.outputs import formed
from cgspec.showing import type_name
from cgspec.spec import PERCENTILES
from cgspec.values import CannotMake


@dataclass
class Readout:
    """What expressions can ask for.

    Attributes:
        run: the built-in metrics of the run, in seconds and iterations per second.
        spans: when each task ran, by its index in the graph.
        outputs: of the last iteration, one per ``graph.outputs``; None where there is none.
        var: the value of a var; raises KeyError where there is none of that name.
    """

    graph: Graph
    run: Mapping[str, float]
    spans: Mapping[int, Spans]
    outputs: Sequence[object] | None
    var: Callable[[str], object]
    values: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def evaluate(self, formulas: Sequence[Formula]) -> dict[str, float | None]:
        """Every metric's value, None where it has none; ``notes`` then say why."""
        for formula in formulas:
            try:
                self.values[formula.name] = _number(formula.expression.evaluate(self._resolve))
            except (ExpressionError, CannotMake) as error:
                self.notes.append(f"the metric {formula.name} has no value: {error}")
        return {formula.name: self.values.get(formula.name) for formula in formulas}

    def _resolve(self, name: str) -> object:
        if name in self.values:
            return self.values[name]
        if name in self.run:
            return self.run[name]
        head, _, rest = name.partition(".")
        if head == OUT:
            return self._output(rest)
        if head == "bytes":
            return self._bytes(rest)
        task, _, percentile = rest.rpartition(".")
        if head in _TIMES and percentile in PERCENTILES:
            return self._percentile(name, _TIMES[head](self.graph, self.spans, task), percentile)
        return self._var(name)

    def _percentile(self, name: str, times: Sequence[int], percentile: str) -> float:
        found = analysis.distribution(times)
        if found is None:
            raise ExpressionError(f"{name} was not measured")
        return float(getattr(found, percentile)) / 1e9

    def _bytes(self, task: str) -> int:
        found = [t.payload.bytes for t in self.graph.tasks if word(t.family) == task and t.payload is not None]
        size = found[0] if found else all_bytes(self.graph) if not task else None
        if size is None:
            raise ExpressionError("no payload is declared for it")
        return size

    def _output(self, name: str) -> object:
        if self.outputs is None:
            raise ExpressionError("there is no last iteration with outputs")
        if not name:
            return _scalars(formed(self.graph, self.outputs))
        places = [n for n, (output, _) in enumerate(self.graph.outputs) if word(output) == name]
        return _scalar(self.outputs[places[0]], name)

    def _var(self, name: str) -> object:
        try:
            return self.var(name)
        except KeyError:
            raise ExpressionError(f"{name} was not measured") from None


def busy_times(graph: Graph, spans: Mapping[int, Spans], family: str) -> list[int]:
    """The ns of every run of every member of a family; ``family`` as it is written in expressions."""
    return [
        ns
        for number, task in enumerate(graph.tasks)
        if word(task.family) == family and number in spans
        for ns in spans[number].busy()
    ]


def edge_times(graph: Graph, spans: Mapping[int, Spans], family: str) -> list[int]:
    """The ns of every edge from a member of a family to another actor, in every iteration that is held of both ends.

    edge = the reader's start - the producer's end, minus nothing: sending, receiving, and all the time that the value
    lay there because the reader's actor was still busy, or the reader waited for another input. All spans have to be by
    one clock. A reader counts once, however many of its arguments come from there.
    """
    pairs = {(s.task, e.to): None for e, s in crossing(graph) if word(graph.tasks[s.task].family) == family}
    return [ns for source, to in pairs if {source, to} <= spans.keys() for ns in _between(spans[source], spans[to])]


def _between(producer: Spans, reader: Spans) -> Iterator[int]:
    first = max(producer.first, reader.first)
    ends, starts = producer.end[first - producer.first :], reader.start[first - reader.first :]
    return (start - end for end, start in zip(ends, starts, strict=False) if end and start)


_TIMES: dict[str, Callable[[Graph, Mapping[int, Spans], str], list[int]]] = {"busy": busy_times, "edge": edge_times}


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError(f"it is no number, but {type_name(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ExpressionError("it is too large") from None
    if not math.isfinite(number):
        raise ExpressionError(f"it is {number}")
    return number


def _scalar(value: Any, name: str) -> float | int:
    """An output that is one number, or a tensor or array of one."""
    if hasattr(value, "dtype") and hasattr(value, "item"):
        with suppress(Exception):
            value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError(f"the output {name} is no number, but {type_name(value)}")
    return value


def _scalars(value: Any) -> Any:
    """What ``out`` is: a tuple of numbers, a map of them, or one."""
    if isinstance(value, dict):
        return _Lazy(value)
    return _Lazy(dict(enumerate(value))) if isinstance(value, list) else _scalar(value, OUT)


class _Lazy(dict[Any, Any]):
    """Outputs that are looked at when they are picked."""

    def __getitem__(self, key: Any) -> float | int:
        if isinstance(key, int) and key < 0:
            key += len(self)
        return _scalar(super().__getitem__(key), str(key))
