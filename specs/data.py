"""What the training example learns from: microbatches of random points, and where a fixed map sends them."""

import torch
from torch import Tensor

ROWS, WIDTH = 8, 16


def tokens(n: int, mb: int) -> Tensor:
    """The points of microbatch ``mb`` of iteration ``n``."""
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(1000 * n + mb))


def labels(n: int, mb: int) -> Tensor:
    """What the model should make of them."""
    return torch.sin(tokens(n, mb))
