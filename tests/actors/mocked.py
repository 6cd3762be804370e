"""The user's classes of the tests of accelerator channels: Ray's own mock of NCCL stands in for the GPUs."""

from __future__ import annotations

import torch
from ray.experimental.channel import conftest


def _allreduce(self, send_buf, recv_buf, op):
    """As if every member had brought the same; the reduction's number is added."""
    recv_buf.copy_(send_buf * self.get_world_size() + 100 * op.value)


class Mocked:
    def __init__(self) -> None:
        conftest.start_nccl_mock()
        conftest.MockNcclGroup.allreduce = _allreduce

    def make(self, x):
        if x < 0:
            raise ValueError(f"negative: {x}")
        return torch.full((4,), float(x))

    def echo(self, x):
        return x

    def two(self, x):
        return torch.full((4,), float(x)), x + 1

    def total(self, t):
        return float(t.sum()) if isinstance(t, torch.Tensor) else t
