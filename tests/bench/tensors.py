"""Tensors for the benchmark's graphs."""

from __future__ import annotations

import parts
import torch
from torch import Tensor


class Layer:
    """One layer with weights of its own."""

    def __init__(self, width: int) -> None:
        self.weight = torch.ones(width, width) / width

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ self.weight)


class Big:
    """Hands out, or looks at, a large tensor."""

    def __init__(self, elements: int = 1) -> None:
        self.tensor = torch.ones(elements)

    def give(self, n: int) -> Tensor:
        self.tensor[0] = n
        return self.tensor

    def look(self, x: Tensor) -> float:
        return float(x[0] + x[-1])


def batch(n: int) -> Tensor:
    return torch.full((8, 8), float(parts.stamp(n)))
