"""Collectives among actors without GPUs: gloo, with a store and process groups of cgspec's own.

Never the process's default group: it may be the user's. Ray's own communicator for CPUs knows allreduce alone, and
two groups of one size share its barrier.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import ray
from ray.experimental.channel.cpu_communicator import CPUCommunicator

from cgspec import collectives
from cgspec.graph import Collective, Graph
from cgspec.invocation import Failed, FailedTask

DESCRIPTION = 128
"""Bytes in which a member tells the others what it brings."""
OPEN: list[Any] = []
"""Process groups of this process."""


@dataclass(frozen=True)
class Store:
    """Where the members of all groups find each other.

    Attributes:
        timeout: seconds after which a member that waits for another gives up.
    """

    host: str
    port: int
    timeout: float


class StoreServer:
    """A store in this process, for as long as it lives.

    Args:
        timeout: seconds, as in ``Store``.
    """

    def __init__(self, timeout: float) -> None:
        host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self.server = _distributed().TCPStore(
            host, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=timeout)
        )
        self.store = Store(host, self.server.port, timeout)


class Gloo:
    """One member's side of one group.

    Args:
        name: of the group, the same for all of its members.
    """

    def __init__(self, store: Store, name: str, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        dist, patience = _distributed(), timedelta(seconds=store.timeout)
        client = dist.TCPStore(store.host, store.port, is_master=False, timeout=patience)
        self.group = dist.ProcessGroupGloo(dist.PrefixStore(name, client), rank, size, timeout=patience)

    def run(self, collective: Collective, operand: Any) -> Any:
        """This member's result, a tensor of its own.

        Raises:
            ValueError: the members disagree on shapes or dtypes, or the reduction cannot be computed.
        """
        descriptions = self._gather(_padded(collectives.told(operand)))
        collectives.agree([bytes(one.tolist()).rstrip(b"\0").decode() for one in descriptions], collective)
        if collective.kind == "allgather":
            return collectives.join(self._gather(operand))
        whole = self._reduce(collective.op or "sum", operand)
        return collectives.part(whole, self.rank, self.size) if collective.kind == "reducescatter" else whole

    def _gather(self, operand: Any) -> list[Any]:
        """Every member's tensor, by rank; as bytes, so that any dtype will do."""
        import torch

        flat = operand.reshape(-1).view(torch.uint8)
        found = [torch.empty_like(flat) for _ in range(self.size)]
        self.group.allgather([found], [flat]).wait()
        return [one.view(operand.dtype).reshape(operand.shape) for one in found]

    def _reduce(self, op: str, operand: Any) -> Any:
        """By gloo where it knows the dtype, else every member reduces what it has gathered."""
        import torch

        dist = _distributed()
        native = (torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64)
        if operand.dtype not in native:
            return collectives.reduced(op, self._gather(operand))
        options = dist.AllreduceOptions()
        named = {"product": dist.ReduceOp.PRODUCT, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
        options.reduceOp = named.get(op, dist.ReduceOp.SUM)
        total = operand.clone()
        self.group.allreduce([total], options).wait()
        return collectives.average(total, self.size) if op == "avg" else total


class GlooCommunicator(CPUCommunicator):
    """What Ray's collective nodes call in each member; one for each group of a graph.

    Args:
        tasks: the members' tasks, by rank, as indices into ``graph.tasks``.
        handles: their actors.
    """

    def __init__(self, store: Store, collective: Collective, tasks: Sequence[int], handles: Sequence[Any]) -> None:
        super().__init__(len(handles), list(handles))
        self.store, self.collective, self.tasks = store, collective, tuple(tasks)
        self.name = uuid.uuid4().hex
        self.gloo: Gloo | None = None

    def initialize(self, rank: int) -> None:
        super().initialize(rank)
        self.gloo = Gloo(self.store, self.name, rank, self.get_world_size())
        OPEN.append(self)

    def _run(self, send_buf: Any, recv_buf: Any) -> None:
        assert self.gloo is not None
        try:
            recv_buf.copy_(self.gloo.run(self.collective, send_buf))
        except ValueError as error:
            raise FailedTask(Failed("raised", f"ValueError: {error}", self.tasks[self.gloo.rank])) from None

    def allreduce(self, send_buf: Any, recv_buf: Any, op: object = None) -> None:
        self._run(send_buf, recv_buf)

    def allgather(self, send_buf: Any, recv_buf: Any) -> None:
        self._run(send_buf, recv_buf)

    def reducescatter(self, send_buf: Any, recv_buf: Any, op: object = None) -> None:
        self._run(send_buf, recv_buf)

    def destroy(self) -> None:
        self.gloo = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self.store, self.collective, self.tasks, self.get_actor_handles(), self.name)


def _remade(store: Store, collective: Collective, tasks: tuple[int, ...], handles: list[Any], name: str) -> Any:
    made = GlooCommunicator(store, collective, tasks, handles)
    made.name = name
    return made


def close_groups() -> None:
    """Ends this process's groups: Ray ends only communicators that it made itself."""
    while OPEN:
        OPEN.pop().destroy()


def patience(graph: Graph, stall: float) -> float:
    """Seconds that a member waits for another: more than the watchdog does, which can say what is wrong."""
    return 2 * max([stall, *(task.timeout or 0.0 for task in graph.tasks)])


def communicators_of(graph: Graph, groups: Sequence[int], handles: Sequence[Any], store: Store) -> dict[int, Any]:
    """One communicator for each of the graph's groups."""
    found = {}
    for number in groups:
        members = graph.groups[number].members
        collective = graph.tasks[members[0]].collective
        assert collective is not None
        found[number] = GlooCommunicator(store, collective, members, [handles[graph.tasks[m].actor] for m in members])
    return found


def _distributed() -> Any:
    import torch.distributed

    return torch.distributed


def _padded(text: str) -> Any:
    import torch

    told = text.encode()[:DESCRIPTION]
    return torch.tensor(list(told.ljust(DESCRIPTION, b"\0")), dtype=torch.uint8)
