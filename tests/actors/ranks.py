"""The user's classes of the tests of collectives: members that make tensors of their own."""

from __future__ import annotations

import torch


class Member:
    def __init__(self, rank: int = 0) -> None:
        self.rank = rank

    def make(self, x, dtype="float32", rows=4, fail=-1):
        """Rows that differ by member: row r is ``x + rank + 10 * r``, twice."""
        if x == fail:
            raise ValueError(f"member {self.rank} has had enough")
        rows = torch.arange(rows).reshape(-1, 1) * 10 + x + self.rank
        return rows.expand(-1, 2).to(getattr(torch, dtype))

    def uneven(self, x):
        return torch.ones(2 + self.rank)

    def pair(self, x):
        return torch.full((2, 3), float(x + self.rank)), torch.full((5,), float(x * self.rank))

    def transposed(self, x):
        return (torch.arange(6.0).reshape(2, 3) + x + self.rank).t().requires_grad_()

    def plain(self, x):
        return x

    def spoil(self, t):
        """Changes what it was given."""
        t += 1000
        return t

    def listed(self, t):
        return t.tolist() if isinstance(t, torch.Tensor) else [one.tolist() for one in t]

    def sleep(self, x):
        import time

        time.sleep(x if self.rank else 0)
        return torch.ones(2)
