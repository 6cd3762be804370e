"""What fan.yaml, send_recv.yaml and sizes.yaml call."""

from __future__ import annotations

import torch


class Counter:
    def inc(self, x: int) -> int:
        return x + 1

    def double(self, x: int) -> int:
        return x * 2

    def echo(self, x: int) -> int:
        return x


class Tensors:
    def send(self, shape: tuple[int, ...], dtype: torch.dtype, value: float) -> torch.Tensor:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.full(shape, value, dtype=dtype, device=device)

    def recv(self, tensor: torch.Tensor) -> tuple[float, tuple[int, ...], torch.dtype]:
        return tensor[0].item(), tuple(tensor.shape), tensor.dtype
