"""The user's files that a run names: which of them there are, as they are when it begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cgspec.graph import Graph
from cgspec.values import Call, Entries, Expr, Feedback, Items, Marked, Text, Value

LARGEST = 2**20
"""Bytes of a file up to which it is kept."""


def parts(value: Value) -> Sequence[Value]:
    """The values that a value is made of."""
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Text):
        return value.parts
    if isinstance(value, Entries):
        return [part for _, part in value.entries]
    if isinstance(value, Marked):
        return [*value.arguments.values()]
    if isinstance(value, Expr):
        return [*value.known.values()]
    return [value.first] if isinstance(value, Feedback) else [value.arguments] if isinstance(value, Call) else []


def named_files(graph: Graph) -> list[str]:
    """The files below the spec's root whose classes and functions the graph names, each once, sorted."""
    found = {actor.class_ref.file for actor in graph.actors}
    for value in _values(graph):
        found.update(_functions(value))
    return sorted(file for file in found if file is not None)


def _values(graph: Graph) -> Iterator[Value]:
    for given in graph.inputs:
        yield given.value
    for actor in graph.actors:
        yield from (*actor.args, *actor.kwargs.values())
    for task in graph.tasks:
        yield from task.consts.values()


def _functions(value: Value) -> Iterator[str | None]:
    if isinstance(value, Call):
        yield value.function.file
    for part in parts(value):
        yield from _functions(part)


def read_files(graph: Graph, root: Path) -> Iterator[tuple[str, str]]:
    """(name below the root, text) of every file that is named, can be read and is not too large."""
    for name in named_files(graph):
        try:
            content = (root / name).read_bytes()
        except OSError:
            continue
        if len(content) <= LARGEST:
            yield name, content.decode("utf-8", "backslashreplace")
