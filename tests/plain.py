"""A graph executed in plain Python: from the naive reading of a spec, iteration by iteration, on numpy arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from naive import Naive

sys.path.append(str(Path(__file__).parent / "actors"))

from equal import PRIME, ROWS, advanced

LARGEST = 300_000
"""Elements of an array, at the most."""


class TooMuch(Exception):
    """Arrays do not fit together, or become too large: no graph to compare engines with."""


class Plain:
    """All iterations of a spec.

    Args:
        spec: with plain inputs, as ``Naive`` reads it.
        given: an iteration's inputs by ``inputs.name``, from the iteration and its earlier outputs.
    """

    def __init__(self, spec: dict[str, Any], constants: dict[str, int], ops: dict[str, str], given: Any) -> None:
        self.naive, self.constants, self.ops, self.given = Naive(spec), constants, ops, given
        self.bind = self.naive.bind()
        self.groups = {members[0]: members for _, members in self.naive.groups()}
        self.states = dict.fromkeys(self.naive.orders(), 1)
        self.past: list[dict[str, Any]] = []

    def iteration(self) -> list[Any]:
        """The next iteration's outputs, gathered ones spliced."""
        values: dict[str, Any] = dict(self.given(len(self.past), self.past))
        for member in self.bind:
            if self.naive.kind(self.naive.family[member]) == "call":
                self._call(member, values)
            elif member in self.groups:
                self._meet(self.groups[member], values)
        named = self.naive.outputs()
        read = {name: [values[one] for one in _listed(shown)] for name, shown in named.items()}
        self.past.append({name: found if isinstance(named[name], list) else found[0] for name, found in read.items()})
        return [one for found in read.values() for one in found]

    def _call(self, member: str, values: dict[str, Any]) -> None:
        arguments = [
            (name, [values[self.naive.shown(read)] for read in reads], as_list)
            for name, as_list, reads in self.naive.arguments(member)
        ]
        made = [(name, found if as_list else found[0]) for name, found, as_list in arguments]
        args = [value for name, value in made if isinstance(name, int)]
        named = {name: value for name, value in made if isinstance(name, str)}
        task, actor = self.naive.family[member], self.naive.actor(member)
        self.states[actor] = advanced(self.states[actor], args, named, self.constants.get(task, 0))
        low = np.arange(ROWS) * self.states[actor] % PRIME
        returns = self.naive.tasks[task].get("returns")
        values[member] = low if returns is None else (low, -low)
        values.update({f"{member}.{ret}": part for ret, part in zip(returns or (), (low, -low), strict=False)})

    def _meet(self, members: list[str], values: dict[str, Any]) -> None:
        task = self.naive.family[members[0]]
        kind, returns = self.naive.kind(task), self.naive.tasks[task].get("returns")
        read = [[self.naive.shown(reads[0]) for _, _, reads in self.naive.arguments(member)] for member in members]
        operands = [[values[shown] for shown in own] for own in read]
        columns = [_collective(kind, self.ops.get(task, "sum"), list(column)) for column in zip(*operands, strict=True)]
        for member, results in zip(members, zip(*columns, strict=True), strict=True):
            values[member] = results if returns else results[0]
            values.update({f"{member}.{ret}": part for ret, part in zip(returns or (), results, strict=False)})


def _listed(shown: str | list[str]) -> list[str]:
    return shown if isinstance(shown, list) else [shown]


def _collective(kind: str, op: str, operands: list[Any]) -> list[Any]:
    """Every member's result."""
    size = len(operands)
    if len({one.shape for one in operands}) > 1 or operands[0].size * size > LARGEST:
        raise TooMuch
    if kind == "allgather":
        return [np.concatenate(operands)] * size
    if kind == "reducescatter" and len(operands[0]) % size:
        raise TooMuch
    whole = np.stack(operands)
    total = {"sum": whole.sum, "avg": whole.sum, "product": whole.prod, "max": whole.max, "min": whole.min}[op](axis=0)
    if op == "avg":
        total = np.sign(total) * (np.abs(total) // size)
    return np.split(total, size) if kind == "reducescatter" else [total] * size
