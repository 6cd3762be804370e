"""Python identifiers for what a spec names: each given once, none that would hide something the script uses."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

_OWN = """
    ITERATIONS INFLIGHT ROOT TIMEOUT WARMUP DAGContext InputNode MultiOutputNode NodeAffinity Path
    PlacementGroupSchedulingStrategy RayTaskError ReduceOp all_equal allgather allreduce arranged began build check
    check_last copy dag deque error finite free_port graph group i importlib inp inputs latencies last limit load main
    math module name os outputs past path placement_group quantile ray reducescatter report run same sent socket spec
    started sys take time torch under_way values
"""


class Names:
    """Gives out names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*keyword.kwlist, *dir(builtins), *_OWN.split(), *taken}

    def give(self, wanted: str) -> str:
        """An identifier that resembles ``wanted``; an underscore is added where it is taken."""
        name = re.sub(r"\W", "_", wanted)
        name = name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def inside(self) -> Names:
        """For a function's own names: these are taken there too."""
        return Names(self._taken)


def in_words(text: str) -> str:
    """Text of the user's for a comment or a docstring: one line that cannot end it."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line.replace("\\", "\\\\").replace('"""', "'''").rstrip('"')
