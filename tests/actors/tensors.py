"""An actor that computes with tensors."""

from __future__ import annotations

import sys
import threading
import types

import torch
import torch.distributed as dist


class Matrix:
    """Multiplies a square of ones: the corner of the n-th product is 8 times that of the one before."""

    def __init__(self) -> None:
        self.ones = torch.ones(8, 8)

    def times(self, x):
        square = torch.full((8, 8), float(x)) if not isinstance(x, torch.Tensor) else x
        product = square @ self.ones
        return float(product[0, 0])


class Wrapped:
    """A class of the user's with tensors in it, one of them a view that is not in one piece."""

    def __init__(self, x: float) -> None:
        self.plain = torch.full((3,), x)
        self.turned = (torch.arange(6.0) + x).reshape(2, 3).t()
        self.empty = torch.ones(0, 4)


def _hidden():
    """A class that only this process can import."""
    module = sys.modules.setdefault("only_here", types.ModuleType("only_here"))
    exec("class Thing: pass", module.__dict__)
    return module.Thing


class Post:
    """Sends and receives things made of tensors."""

    def __init__(self) -> None:
        self.kept = torch.zeros(256, 256)
        self.last: object = None

    def make(self, x, side=16):
        if x < 0:
            raise ValueError(f"negative: {x}")
        return torch.full((side, side), float(x))

    def add(self, x, y=1):
        return x + y

    def first(self, x):
        return float(x.reshape(-1)[0])

    def same(self, x):
        """Its own tensor, which it changes at each call."""
        self.kept += x
        return self.kept

    def spread(self, x):
        return float(x.min()), float(x.max())

    def two(self, x):
        return torch.full((4,), float(x)), torch.full((4,), -float(x))

    def thing(self, kind):
        made = {
            "tree": lambda: {"a": [torch.ones(2), "b"], "c": (1, None)},
            "number": lambda: 3,
            "nothing": lambda: None,
            "turned": lambda: torch.arange(12).reshape(3, 4).t(),
            "scalar": lambda: torch.tensor(2.5),
            "half": lambda: torch.arange(4).to(torch.bfloat16),
            "wrapped": lambda: Wrapped(2.0),
            "complex": lambda: torch.tensor([1 + 2j, 3j]).conj(),
            "sparse": lambda: torch.eye(3).to_sparse(),
            "thread": lambda: [torch.ones(2), threading.Lock()],
            "hidden": lambda: _hidden()(),
        }
        return made[kind]()

    def tell(self, x):
        """What it is, as text."""
        if isinstance(x, Wrapped):
            x = vars(x)
        return repr(x)


class Peer:
    """Is in a process group of the user's own, the process's default one."""

    def __init__(self, rank, meeting) -> None:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)

    def make(self, x):
        return torch.full((4,), float(x))

    def reduce(self, x):
        total = torch.as_tensor(x, dtype=torch.float32).reshape(-1)[:1].clone()
        dist.all_reduce(total)
        return float(total)
