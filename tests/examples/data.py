"""Tokens and labels of 1f1b.yaml: the same for the same iteration and microbatch."""

from __future__ import annotations

import torch

BATCH, WIDTH = 4, 8


def tokens(n: int, mb: int) -> torch.Tensor:
    return torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(2 * (1000 * n + mb)))


def labels(n: int, mb: int) -> torch.Tensor:
    return torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(2 * (1000 * n + mb) + 1))
