"""Says in a few characters which members of one family are read by which of another: ``pp-1``, ``mb=*``, ``pp=3``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cgspec.graph import Index

TIMES = "\u00d7"

Pair = tuple[Index, Index]
"""The index of what is read and the index of its reader."""


def tell_axes(indices: Iterable[Index]) -> str:
    """The axes of a family with their sizes, ``[pp=4 x mb=8]``; empty where it has none."""
    values: dict[str, set[int]] = {}
    for index in indices:
        for axis, place in index:
            values.setdefault(axis, set()).add(place)
    sizes = f" {TIMES} ".join(f"{axis}={len(places)}" for axis, places in values.items())
    return f"[{sizes}]" if sizes else ""


def tell_selection(pairs: Sequence[Pair]) -> str:
    """What tells the members that are read from those that are not; empty where equal places pair."""
    axes = dict.fromkeys(axis for source, _ in pairs for axis, _ in source)
    told = (
        _tell_axis(axis, [(dict(source)[axis], dict(reader).get(axis)) for source, reader in pairs]) for axis in axes
    )
    return ", ".join(text for text in told if text)


def _tell_axis(axis: str, places: Sequence[tuple[int, int | None]]) -> str:
    read = {place for place, _ in places}
    if any(reader is None for _, reader in places):
        return f"{axis}=*" if len(read) > 1 else f"{axis}={min(read)}"
    steps = {place - reader for place, reader in places if reader is not None}
    if steps == {0}:
        return ""
    if len(steps) == 1:
        return f"{axis}{steps.pop():+d}"
    if len(read) == 1:
        return f"{axis}={min(read)}"
    size = max(read) + 1
    around = {step % size for step in steps}
    return f"{axis}+{around.pop()} mod {size}" if len(around) == 1 else f"{axis} varies"
