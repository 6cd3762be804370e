"""The user's class of the test that a chain holds nothing for longer than it is read."""

from __future__ import annotations

import weakref


class Value:
    pass


class Holder:
    def __init__(self) -> None:
        self.refs: list[weakref.ref[Value]] = []

    def make(self, x):
        value = Value()
        self.refs.append(weakref.ref(value))
        return value

    def alive(self, x) -> int:
        """How many of the values that were made are still there."""
        return sum(ref() is not None for ref in self.refs)

    def made(self):
        return self.refs


class Careful:
    def echo(self, x):
        return x

    def positive(self, x):
        if x < 0:
            raise ValueError(f"negative: {x}")
        return x
