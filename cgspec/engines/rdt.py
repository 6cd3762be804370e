"""Ray Direct Transport: tensors go from actor to actor by gloo or NCCL, past the object store.

NCCL's groups are Ray's. Ray's gloo group is the process's default group, which may be the user's; so gloo is a
transport of cgspec's own that is registered with Ray, over a process group that nobody else sees.
"""

from __future__ import annotations

import uuid
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray.experimental import (
    CommunicatorMetadata,
    TensorTransportManager,
    TensorTransportMetadata,
    register_tensor_transport,
)

from cgspec.engines.communicators import Gloo, Store
from cgspec.routes import Library
from cgspec.steps import FromPort, Layout

NAMES: dict[Library, str] = {"gloo": "CGSPEC_GLOO", "nccl": "NCCL"}
"""What Ray calls the transports."""
_REGISTERED: list[str] = []
_RANKS: dict[Any, int] = {}
"""In the driver: actor handle to its rank in the gloo group of its graph."""
_JOINED: list[Gloo] = []
"""In an actor: its side of that group, if it has one."""


@dataclass(frozen=True)
class Station:
    """One actor's place in the gloo group of a graph."""

    store: Store
    name: str
    rank: int
    size: int


@dataclass
class Sent(TensorTransportMetadata):
    """What a receiver must know: shapes and dtypes, and the tag, the same on both sides whatever comes first."""

    tag: int = 0


@dataclass
class Pair(CommunicatorMetadata):
    """The ranks of a sender and a receiver."""

    sender: int
    receiver: int


class GlooTransport(TensorTransportManager):
    """What Ray calls: in the driver to find ranks, in the actors to send and receive, there on a thread of its own."""

    def __init__(self) -> None:
        self.leaving: deque[tuple[Any, Any]] = deque()

    def tensor_transport_backend(self) -> str:
        return NAMES["gloo"]

    @staticmethod
    def is_one_sided() -> bool:
        return False

    @staticmethod
    def can_abort_transport() -> bool:
        """Yes, else Ray kills both actors where one of them died; whoever waits is woken by the broken connection."""
        return True

    def actor_has_tensor_transport(self, actor: Any) -> bool:
        return actor in _RANKS

    def extract_tensor_transport_metadata(self, obj_id: str, rdt_object: list[Any]) -> Sent:
        shapes = [(tensor.shape, tensor.dtype) for tensor in rdt_object]
        return Sent(shapes, "cpu", int(obj_id[:7], 16))

    def get_communicator_metadata(self, src_actor: Any, dst_actor: Any, backend: str | None = None) -> Pair:
        return Pair(_RANKS[src_actor], _RANKS[dst_actor])

    def send_multiple_tensors(
        self, tensors: list[Any], tensor_transport_metadata: Any, communicator_metadata: Any
    ) -> None:
        """Never waits: so it does not matter in which order sends and receives come to an actor."""
        while self.leaving and self.leaving[0][0].is_completed():
            self.leaving.popleft()
        for tensor in tensors:
            work = _JOINED[0].group.send([tensor], communicator_metadata.receiver, tensor_transport_metadata.tag)
            self.leaving.append((work, tensor))

    def recv_multiple_tensors(
        self,
        obj_id: str,
        tensor_transport_metadata: Any,
        communicator_metadata: Any,
        target_buffers: list[Any] | None = None,
    ) -> list[Any]:
        import torch

        tensors = [torch.empty(shape, dtype=dtype) for shape, dtype in tensor_transport_metadata.tensor_meta]
        for tensor in tensors:
            _JOINED[0].group.recv([tensor], communicator_metadata.sender, tensor_transport_metadata.tag).wait()
        return tensors

    def garbage_collect(self, obj_id: str, tensor_transport_meta: Any, tensors: list[Any]) -> None:
        """Nothing is held."""

    def abort_transport(self, obj_id: str, communicator_metadata: Any) -> None:
        """See ``can_abort_transport``."""


def register() -> None:
    """Makes the gloo transport known to Ray; before the actors are created."""
    import torch

    if not _REGISTERED:
        register_tensor_transport(NAMES["gloo"], ["cpu"], GlooTransport, torch.Tensor)
        _REGISTERED.append(NAMES["gloo"])


def join(station: Station | None) -> None:
    """Takes this actor's place in the group of its graph, and leaves that of the graph before it; all at once."""
    _JOINED.clear()
    if station is not None:
        _JOINED.append(Gloo(station.store, station.name, station.rank, station.size))


class Lines:
    """Who sends to whom in one graph, in the driver.

    Attributes:
        members: actors, as indices into ``graph.actors``, by what carries their tensors.
    """

    def __init__(self, layout: Layout, routes: Mapping[int, Library], handles: Sequence[Any]) -> None:
        self.handles = handles
        found: dict[Library, set[int]] = {}
        for bind in layout.binds:
            for source in bind.reads:
                sender = layout.binds[source.bind] if isinstance(source, FromPort) else None
                if sender is not None and sender.transport is not None and sender.actor != bind.actor:
                    found.setdefault(routes[sender.task], set()).update((sender.actor, bind.actor))
        self.members = {library: sorted(actors) for library, actors in found.items()}
        self.group: Any = None

    def stations(self, store: Store) -> dict[int, Station]:
        """By actor, where it joins."""
        name, members = uuid.uuid4().hex, self.members.get("gloo", [])
        return {actor: Station(store, name, rank, len(members)) for rank, actor in enumerate(members)}

    def open(self) -> None:
        """Tells Ray who is in which group; NCCL's is formed here, gloo's members have joined theirs."""
        # Ray warns of each tensor that it goes back to its own actor; only its reference does, as a token
        warnings.filterwarnings("ignore", message=r"RDT ObjectRef\(")
        _RANKS.update((self.handles[actor], rank) for rank, actor in enumerate(self.members.get("gloo", [])))
        if "nccl" in self.members:
            from ray.experimental.collective import create_collective_group

            self.group = create_collective_group([self.handles[actor] for actor in self.members["nccl"]], "nccl")

    def close(self) -> None:
        for actor in self.members.get("gloo", []):
            _RANKS.pop(self.handles[actor], None)
        if self.group is not None:
            from ray.experimental.collective import destroy_collective_group

            group, self.group = self.group, None
            destroy_collective_group(group)
