"""The user's classes of the tests of what an actor's process is given: process groups, options, places."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist


class Peer:
    """Meets its peers in the constructor: all constructors have to run at the same time."""

    def __init__(self) -> None:
        dist.init_process_group("gloo")

    def total(self, x):
        t = torch.tensor([x + dist.get_rank()])
        dist.all_reduce(t)
        return int(t), dist.get_world_size(), os.environ["LOCAL_RANK"]


class Who:
    def name(self, x):
        import ray

        return ray.get_runtime_context().get_actor_name()

    def node(self, x):
        import ray

        return ray.get_runtime_context().get_node_id()
