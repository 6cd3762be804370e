"""How much a value holds, and how much of it is made anew for each member: what bounds them."""

from __future__ import annotations

from cgspec import expressions
from cgspec.values import Call, Entries, Items, Literal, Marked, Value


def weight(value: Value, most: int) -> int:
    """How much a value holds when it is written out; no more than ``most`` + 1 for plain data."""
    if isinstance(value, Literal):
        return expressions.weight(value.data, most)
    if isinstance(value, Items):
        return 1 + sum(weight(item, most) for item in value.items)
    if isinstance(value, Entries):
        return 1 + sum(weight(item, most) for _, item in value.entries)
    return 1


def open_parts(value: Value) -> int:
    """How many parts of a value are made anew when names are filled in."""
    if not value.uses:
        return 0
    if isinstance(value, Items):
        return 1 + sum(map(open_parts, value.items))
    if isinstance(value, Entries):
        return 1 + sum(open_parts(item) for _, item in value.entries)
    if isinstance(value, Marked):
        return 1 + sum(map(open_parts, value.arguments.values()))
    if isinstance(value, Call):
        return 1 + open_parts(value.arguments)
    return 1 + len(str(value)) // 40
