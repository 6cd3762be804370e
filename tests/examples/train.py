"""A stage of 1f1b.yaml: one linear layer that keeps what its backward needs, by microbatch."""

from __future__ import annotations

import torch

WIDTH = 8


class Stage:
    def __init__(self, rank: int, stages: int, device: str) -> None:
        torch.manual_seed(rank)
        self.last = rank == stages - 1
        self.device = torch.device(device)
        self.layer = torch.nn.Linear(WIDTH, WIDTH).to(self.device)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.01)
        self.open: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def forward(self, x: torch.Tensor, mb: int) -> torch.Tensor:
        x = x.to(self.device).detach().requires_grad_()
        y = self.layer(x)
        self.open[mb] = x, y
        return y.detach()

    def loss(self, logits: torch.Tensor, y: torch.Tensor, mb: int) -> torch.Tensor:
        x, out = self.open[mb]
        loss = torch.nn.functional.mse_loss(out, y.to(self.device))
        self.open[mb] = x, loss
        return loss.detach()

    def backward(self, grad: torch.Tensor, mb: int) -> torch.Tensor:
        x, out = self.open.pop(mb)
        out.backward(None if self.last else grad.to(self.device))
        assert x.grad is not None
        return x.grad

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()
