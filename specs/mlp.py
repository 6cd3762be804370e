"""A perceptron of two layers, in pieces and whole."""

import torch
from torch import Tensor


class Layer:
    """One layer: a matrix drawn from ``seed``, then a ReLU."""

    def __init__(self, seed: int, width: int) -> None:
        self.weight = weight(seed, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ self.weight)


def weight(seed: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(width, width, generator=generator) / width**0.5


def batch(n: int, rows: int, width: int) -> Tensor:
    """The input of iteration ``n``."""
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(n))


def whole(n: int, rows: int, width: int) -> Tensor:
    """The same computation in one piece."""
    hidden = torch.relu(batch(n, rows, width) @ weight(1, width))
    return torch.relu(hidden @ weight(2, width))
