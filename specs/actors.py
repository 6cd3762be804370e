"""Actors of the small specs: plain classes, no decorator."""

import torch
from torch import Tensor


class Counter:
    """Arithmetic on numbers."""

    def inc(self, x: int) -> int:
        return x + 1

    def double(self, x: int) -> int:
        return x * 2

    def echo(self, x: int) -> int:
        return x


class Tensors:
    """Makes a tensor, or looks at one."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def send(self, shape: tuple[int, ...], dtype: torch.dtype, value: float) -> Tensor:
        return torch.full(shape, value, dtype=dtype, device=self.device)

    def recv(self, tensor: Tensor) -> tuple[float, tuple[int, ...], torch.dtype]:
        return tensor[0].item(), tuple(tensor.shape), tensor.dtype
