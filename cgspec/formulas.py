"""The user's ``metrics``: their expressions, and the names that these may use.

Names are those of ``spec.RUN_METRICS``, ``busy.<task>.<p>``, ``edge.<task>.<p>`` (a result on its way to other actors),
``bytes`` and ``bytes.<task>`` (declared payloads), ``out.<name>`` (or ``out[0]``), vars, and the metrics above. A task
stands for all its members; a ``-`` in a name is written ``_``. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cgspec import expressions
from cgspec.expressions import Expression, ExpressionError
from cgspec.graph import Edge, Graph, TaskRef
from cgspec.spec import PERCENTILES, RUN_METRICS, Spec

OUT = "out"
"""All outputs, in the form of the spec; ``out.<name>`` is one of them."""


@dataclass(frozen=True)
class Formula:
    """One metric of the user's."""

    name: str
    expression: Expression


def text_of(raw: Any) -> str | None:
    """The text of ``{$expr: text}``; None where it is something else."""
    if not isinstance(raw, dict) or list(raw) != ["$expr"]:
        return None
    text = raw["$expr"]
    return str(text) if isinstance(text, (str, int, float)) and not isinstance(text, bool) else None


def formulas_of(spec: Spec) -> list[Formula]:
    """Every metric that can be read, in order; rules tell of the others."""
    found = []
    for name, raw in spec.metrics.items():
        try:
            found.append(Formula(name, expressions.parse(text_of(raw) or "")))
        except ExpressionError:
            continue
    return found


def word(name: str | int) -> str:
    """A name as it is written in an expression."""
    return str(name).replace("-", "_")


def built_in(graph: Graph) -> list[str]:
    """Every name that a run of this graph gives, whatever its spec says of vars and metrics."""
    busy = [f"busy.{family}.{p}" for family in _families(graph) for p in PERCENTILES]
    edge = [f"edge.{family}.{p}" for family in _senders(graph) for p in PERCENTILES]
    return [*RUN_METRICS, *busy, *edge, *_sizes(graph), *_outputs(graph)]


def _families(graph: Graph) -> list[str]:
    return list(dict.fromkeys(word(task.family) for task in graph.tasks))


def crossing(graph: Graph) -> Iterator[tuple[Edge, TaskRef]]:
    """The edges between actors, each with what it reads."""
    for edge in graph.edges:
        if edge.crosses and isinstance(edge.source, TaskRef):
            yield edge, edge.source


def _senders(graph: Graph) -> list[str]:
    return list(dict.fromkeys(word(graph.tasks[source.task].family) for _, source in crossing(graph)))


def _sizes(graph: Graph) -> Iterator[str]:
    if all_bytes(graph) is not None:
        yield "bytes"
    for family in dict.fromkeys(task.family for task in graph.tasks if task.payload is not None):
        yield f"bytes.{word(family)}"


def _outputs(graph: Graph) -> Iterator[str]:
    yield OUT
    if graph.output_form != "list":
        yield from (f"{OUT}.{word(name)}" for name, _ in graph.outputs)


def undeclared(graph: Graph) -> list[str]:
    """The tasks whose results go to other actors, and have no declared payload."""
    sources = (graph.tasks[source.task] for _, source in crossing(graph))
    return list(dict.fromkeys(task.family for task in sources if task.payload is None))


def all_bytes(graph: Graph) -> int | None:
    """The declared bytes that travel between actors in one iteration, each result once for each actor that reads it.

    None where nothing travels, or some result that does has no payload.
    """
    journeys = {(source, graph.tasks[edge.to].actor) for edge, source in crossing(graph)}
    payloads = [graph.tasks[source.task].payload for source, _ in journeys]
    sizes = [payload.bytes for payload in payloads if payload is not None]
    return sum(sizes) if sizes and len(sizes) == len(payloads) else None
