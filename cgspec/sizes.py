"""Whether a graph is small enough to be made and judged in a second or so: its members, its edges, its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cgspec.diagnostics import Finding
from cgspec.families import size_of
from cgspec.readings import Readings
from cgspec.values import Value
from cgspec.weights import open_parts
from cgspec.wiring import Wiring, edge_count

MAX_MEMBERS = 40_000
"""Actors, inputs and tasks together."""
MAX_EDGES = 250_000
MAX_VALUES = 300_000
"""Parts of values that are made anew for each member."""


def too_large(wiring: Wiring, readings: Readings) -> Finding | None:
    """Why the graph of a spec is not made, or None; nothing has been made yet."""
    return _too_many_members(wiring) or _too_many_edges(wiring) or _too_many_values(wiring, readings)


def _families(wiring: Wiring) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "actors", wiring.catalogue.actors
    yield "inputs", wiring.catalogue.inputs
    yield "tasks", wiring.tasks


def _too_many_members(wiring: Wiring) -> Finding | None:
    sizes = {
        (section, name): size_of(family.axes)
        for section, families in _families(wiring)
        for name, family in families.items()
    }
    total = sum(sizes.values())
    if total <= MAX_MEMBERS:
        return None
    largest = max(sizes, key=lambda path: sizes[path])
    message = f"the spec has {total} members, {largest[1]} alone {sizes[largest]}"
    why = f"cgspec makes at most {MAX_MEMBERS} actors, inputs and tasks"
    return Finding("too-large", message, largest, on="key", why=why, fix="make its axes smaller")


def _too_many_edges(wiring: Wiring) -> Finding | None:
    edges = edge_count(wiring)
    if edges <= MAX_EDGES:
        return None
    message = f"the graph has {edges} edges; at most {MAX_EDGES} are made"
    fix = "make the axes smaller, or pick instead of gathering for every member"
    return Finding("too-large", message, ("tasks",), on="key", fix=fix)


def _too_many_values(wiring: Wiring, readings: Readings) -> Finding | None:
    values: dict[str, Mapping[str, Mapping[Any, Value]]] = {
        "actors": readings.actors,
        "tasks": readings.tasks,
        "inputs": {name: {None: value} for name, value in readings.inputs.items()},
    }
    for section, families in _families(wiring):
        for name, family in families.items():
            made = size_of(family.axes) * sum(map(open_parts, values[section][name].values()))
            if made > MAX_VALUES:
                message = f"the values of {name} have {made} parts that differ between its members"
                why = f"cgspec makes at most {MAX_VALUES}"
                return Finding("too-large", message, (section, name), on="key", why=why, fix="say it with less")
    return None
