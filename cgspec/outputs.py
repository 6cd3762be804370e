"""Puts together what the user gets back in one iteration from what an engine fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgspec.graph import Graph, Pack


def assemble(graph: Graph, values: Sequence[object]) -> list[object]:
    """One value per ``graph.outputs`` from one per ``graph.output_refs``; a gathered family is one list."""
    rest = iter(values)
    return [_taken(rest, value) for _, value in graph.outputs]


def _taken(rest: Iterator[object], value: object) -> object:
    return [next(rest) for _ in value.items] if isinstance(value, Pack) else next(rest)


def formed(graph: Graph, outputs: Sequence[object]) -> object:
    """The outputs in the form of the spec: a single value, a list, or a map by name."""
    if graph.output_form == "single":
        return outputs[0]
    if graph.output_form == "list":
        return list(outputs)
    return dict(zip((name for name, _ in graph.outputs), outputs, strict=True))
