"""A tensor-parallel member of a pipeline stage, for tp_pp.yaml: a part of a matrix product."""

from __future__ import annotations

import torch


class Stage:
    def __init__(self, stage: int, rank: int, hidden: int, device: str) -> None:
        generator = torch.Generator().manual_seed(100 * stage + rank)
        weight = torch.randn(hidden, hidden, generator=generator) / hidden
        self.weight = weight.to(device=device, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.weight.device) @ self.weight

    def hand_off(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    def norm(self, x: torch.Tensor) -> float:
        return float(x.float().norm())
