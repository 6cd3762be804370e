"""Training in stages, one layer each, and the same training in one piece."""

import functools

import torch
from data import WIDTH, labels, tokens
from torch import Tensor
from torch.nn.functional import mse_loss

RATE = 0.1


class Stage:
    """One layer, with the activations of the microbatches that are under way."""

    def __init__(self, rank: int, stages: int, device: str = "cpu") -> None:
        self.layer = layer(rank).to(device)
        self.device = torch.device(device)
        self.seen: dict[int, Tensor] = {}
        self.made: dict[int, Tensor] = {}

    def forward(self, x: Tensor, mb: int) -> Tensor:
        self.seen[mb] = x.to(self.device).detach().requires_grad_()
        self.made[mb] = torch.tanh(self.layer(self.seen[mb]))
        return self.made[mb].detach()

    def loss(self, logits: Tensor, y: Tensor, mb: int) -> float:
        """The last stage's: what is derived in ``backward`` is the loss itself."""
        self.made[mb] = mse_loss(self.made[mb], y.to(self.device))
        return float(self.made[mb])

    def backward(self, grad: Tensor | float, mb: int) -> Tensor:
        made, seen = self.made.pop(mb), self.seen.pop(mb)
        made.backward(grad.to(self.device) if isinstance(grad, Tensor) else None)
        assert seen.grad is not None
        return seen.grad

    def step(self) -> None:
        descend(self.layer)

    def weights(self) -> Tensor:
        return self.layer.weight.detach().clone()


def layer(rank: int) -> torch.nn.Linear:
    generator = torch.Generator().manual_seed(rank)
    made = torch.nn.Linear(WIDTH, WIDTH)
    with torch.no_grad():
        made.weight.copy_(torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5)
        made.bias.zero_()
    return made


def descend(trained: torch.nn.Linear) -> None:
    """One step of gradient descent."""
    with torch.no_grad():
        for weight in trained.parameters():
            weight -= RATE * weight.grad
            weight.grad = None


class Whole:
    """The unsplit model, trained on all microbatches of one iteration after the other."""

    def __init__(self, stages: int, mb: int) -> None:
        self.layers = [layer(rank) for rank in range(stages)]
        self.mb = mb
        self.history: list[tuple[list[float], list[Tensor]]] = []

    def at(self, n: int) -> tuple[list[float], list[Tensor]]:
        """The losses of iteration ``n``, and the weights after it."""
        while len(self.history) <= n:
            self.history.append(self._train(len(self.history)))
        return self.history[n]

    def _train(self, n: int) -> tuple[list[float], list[Tensor]]:
        losses = []
        for mb in range(self.mb):
            x = tokens(n, mb)
            for each in self.layers:
                x = torch.tanh(each(x))
            loss = mse_loss(x, labels(n, mb))
            loss.backward()
            losses.append(float(loss))
        for each in self.layers:
            descend(each)
        return losses, [each.weight.detach().clone() for each in self.layers]


@functools.lru_cache
def _whole(stages: int, mb: int) -> Whole:
    return Whole(stages, mb)


def whole_losses(n: int, stages: int, mb: int) -> list[float]:
    return _whole(stages, mb).at(n)[0]


def whole_weights(n: int, stages: int, mb: int) -> list[Tensor]:
    return _whole(stages, mb).at(n)[1]
