"""An actor that computes with tensors."""

from __future__ import annotations

import torch


class Matrix:
    """Multiplies a square of ones: the corner of the n-th product is 8 times that of the one before."""

    def __init__(self) -> None:
        self.ones = torch.ones(8, 8)

    def times(self, x):
        square = torch.full((8, 8), float(x)) if not isinstance(x, torch.Tensor) else x
        product = square @ self.ones
        return float(product[0, 0])
