"""The variables of torch.distributed for actors that say ``process_group``: one group for each family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cgspec.errors import Failure, NotAble
from cgspec.graph import Graph


def families(graph: Graph) -> dict[str, list[int]]:
    """The members of every family that asks for a group, by rank: indices into ``graph.actors``."""
    found: dict[str, list[int]] = {}
    for number, actor in enumerate(graph.actors):
        if actor.process_group:
            found.setdefault(actor.family, []).append(number)
    return found


def variables(
    graph: Graph, nodes: Sequence[str], addresses: Sequence[str], ports: Mapping[int, int]
) -> dict[int, dict[str, str]]:
    """The variables of each actor that has some.

    Args:
        nodes, addresses: of every actor, the node's id and address.
        ports: a free port on the node of each family's first member, by actor.
    """
    found: dict[int, dict[str, str]] = {}
    for members in families(graph).values():
        first, on_node = members[0], Counter[str]()
        for rank, number in enumerate(members):
            found[number] = _variables(addresses[first], ports[first], rank, len(members), on_node[nodes[number]])
            on_node[nodes[number]] += 1
    return found


def _variables(address: str, port: int, rank: int, size: int, local_rank: int) -> dict[str, str]:
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local_rank),
    }


def free_port() -> int:
    """A port that is free on this machine at this moment."""
    import socket

    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def in_one_process(graph: Graph) -> dict[int, dict[str, str]]:
    """The variables where all actors share this process: groups of one.

    Raises:
        NotAble: a family has several members, whose constructors would wait for each other.
    """
    for family, members in families(graph).items():
        if len(members) > 1:
            spec = graph.actors[members[0]]
            message = (
                f"the {len(members)} members of {family} form a process group, "
                "which takes a process each: not with engine: local"
            )
            path = (*spec.path, "process_group")
            raise NotAble(Failure("not-able", message, phase="startup", actor=spec.name, path=path))
    here = ["here"] * len(graph.actors)
    ports = {members[0]: free_port() for members in families(graph).values()}
    return variables(graph, here, ["127.0.0.1"] * len(here), ports)
