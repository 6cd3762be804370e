"""A perceptron with residual blocks: split over pipeline stages and tensor-parallel ranks, and in one piece."""

import torch
from torch import Tensor


class Stage:
    """One block, and of it one rank's columns of the first matrix and rows of the second.

    What the ranks compute adds up to the block of the unsplit model.
    """

    def __init__(self, stage: int, rank: int, ranks: int, hidden: int, device: str = "cpu") -> None:
        width = 4 * hidden // ranks
        up, down = block(stage, hidden)
        self.device = torch.device(device)
        self.up = up[:, rank * width : (rank + 1) * width].to(self.device)
        self.down = down[rank * width : (rank + 1) * width].to(self.device)

    def forward(self, x: Tensor) -> Tensor:
        """This rank's part of the block's result."""
        return torch.relu(x.to(self.device) @ self.up) @ self.down

    def hand_off(self, x: Tensor, total: Tensor) -> Tensor:
        """What goes on to the next stage: the block's result on top of what came in."""
        return x.to(self.device) + total


def block(stage: int, hidden: int) -> tuple[Tensor, Tensor]:
    """The two matrices of a block."""
    generator = torch.Generator().manual_seed(stage)
    up = torch.randn(hidden, 4 * hidden, generator=generator) / hidden**0.5
    down = torch.randn(4 * hidden, hidden, generator=generator) / (4 * hidden) ** 0.5
    return up, down


def batch(n: int, tokens: int, hidden: int) -> Tensor:
    """The input of iteration ``n``."""
    return torch.randn(tokens, hidden, generator=torch.Generator().manual_seed(n))


def whole(n: int, stages: int, tokens: int, hidden: int) -> Tensor:
    """The same computation in one piece."""
    x = batch(n, tokens, hidden)
    for stage in range(stages):
        up, down = block(stage, hidden)
        x = x + torch.relu(x @ up) @ down
    return x
