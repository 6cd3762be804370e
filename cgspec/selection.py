"""Picks members of a family by name and selectors: ``stage``, ``stage.0``, ``stage.*.-1``, ``{$at: part, tp: 0}``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cgspec.graph import Index


class Member(Protocol):
    """An actor, input or task of the graph."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def index(self) -> Index: ...


def select(members: Sequence[Member], said: object) -> list[int]:
    """The places in ``members`` of those that ``said`` names, in order; empty where it names none.

    Selectors take the axes in order; an integer picks (negative from the end), ``*`` and what is not mentioned keep.
    """
    if isinstance(said, dict):
        rest = {str(axis): index for axis, index in said.items() if axis != "$at"}
        family = [number for number, member in enumerate(members) if member.family == said.get("$at")]
        return _picked(members, family, rest.items())
    name, *selectors = str(said).split(".")
    family = [number for number, member in enumerate(members) if member.family == name]
    axes = [axis for axis, _ in members[family[0]].index] if family else []
    if len(selectors) > len(axes):
        return []
    return _picked(members, family, [pair for pair in zip(axes, selectors, strict=False) if pair[1] != "*"])


def _picked(members: Sequence[Member], family: list[int], picks: Iterable[tuple[str, object]]) -> list[int]:
    for axis, said in picks:
        try:
            wanted = int(str(said))
        except ValueError:
            return []
        size = 1 + max((dict(members[number].index).get(axis, -1) for number in family), default=-1)
        wanted = wanted + size if wanted < 0 else wanted
        family = [number for number in family if dict(members[number].index).get(axis) == wanted]
    return family
