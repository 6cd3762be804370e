"""What is drawn, free of any format: boxes in clusters, and the links between them.

``instances`` and ``families`` make a scene from a graph; every format is a function of a scene. Ids are made here and
never hold a user's text; every other text is the user's own, unescaped and of any length, for the format to tame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from cgspec.views.palette import Carrier

Facts = tuple[tuple[str, str], ...]
"""What is known of a thing, in the order in which it is told: (what, text) pairs."""


WHOLE = "(all of it)"
"""The name of the port of a multi-return task that is read as a tuple."""

Role = Literal["plain", "effect", "unread"]
"""``effect``: called for its effect; ``unread``: awaited and dropped."""

Mark = Literal["critical", "bottleneck", "failed"]
"""What a run says of a task: it is on the critical path, it bounds throughput, it ended the run."""


@dataclass(frozen=True, slots=True)
class Port:
    """One return of a multi-return task."""

    name: str
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A task, an input, an output or a collective (``plate``), or a family of one of them.

    Attributes:
        name: the instance's or the family's name.
        note: the second line: what is called, or what kind of terminal it is.
        lines: further lines, e.g. constants.
        family: the family's name.
        members: the names of the instances that it stands for.
        after: the id of the box that its actor runs before this one, where no link says so.
        heat: with a run, the colour of its busy time; else it has its actor's.
        source: where the spec says it (``spec.yaml:12``), and these lines of the spec.
    """

    id: str
    kind: Literal["task", "input", "output", "plate"]
    name: str
    note: str
    family: str
    lines: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    members: tuple[str, ...] = ()
    role: Role = "plain"
    after: str | None = None
    facts: Facts = ()
    heat: str | None = None
    marks: frozenset[Mark] = frozenset()
    source: tuple[str, str] = ("", "")

    @property
    def returned(self) -> str:
        """The returns of a multi-return task in one line, or the empty string."""
        named = [f"{port.name} (not read)" if port.unread else port.name for port in self.ports if port.name != WHOLE]
        return f"returns {', '.join(named)}" if named else ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """An actor with its tasks, or an actor family; ``hue`` is the family's position in the graph.

    ``bottleneck``: with a run, whether it bounds throughput; ``where``: how its members are on several nodes, where
    that is known.
    """

    id: str
    name: str
    note: str
    hue: int
    boxes: tuple[Box, ...]
    family: str
    members: tuple[str, ...]
    facts: Facts = ()
    bottleneck: bool = False
    source: tuple[str, str] = ("", "")
    where: str = ""

    @property
    def about(self) -> str:
        """The line under its name."""
        return " · ".join(part for part in (self.note, self.where) if part)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster with the actors on it; ``clusters``: their ids; ``because``: how that is known."""

    id: str
    name: str
    because: str
    clusters: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        return (("known from", self.because),)


@dataclass(frozen=True, slots=True)
class Link:
    """What flows from one box to another; ``port`` is the place of the return that is read.

    ``width``: with a run, in points; ``critical``: whether the critical path follows it.
    """

    id: str
    source: str
    target: str
    carrier: Carrier
    label: str
    port: int | None = None
    facts: Facts = ()
    width: float | None = None
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole picture.

    Attributes:
        subtitle: one line that counts what the graph holds.
        remark: what the picture leaves out, or the empty string.
        terminals: inputs, outputs and collectives, which belong to no actor.
        heats: with a run, what the scale of busy times goes up to.
        widths: with a run, what the width of a link says.
        nodes: what is known to be on one node; no actor is on two.
    """

    name: str
    subtitle: str
    clusters: tuple[Cluster, ...]
    terminals: tuple[Box, ...]
    links: tuple[Link, ...]
    remark: str = field(default="")
    heats: str = ""
    widths: str = ""
    nodes: tuple[Node, ...] = ()

    @property
    def grouped(self) -> Iterator[tuple[Node | None, list[Cluster]]]:
        """Every cluster, those of one node together, in order of the first one."""
        clusters = {cluster.id: cluster for cluster in self.clusters}
        homes = {cluster: node for node in self.nodes for cluster in node.clusters}
        for cluster in self.clusters:
            node = homes.get(cluster.id)
            if node is None:
                yield None, [cluster]
            elif node.clusters[0] == cluster.id:
                yield node, [clusters[member] for member in node.clusters]

    @property
    def boxes(self) -> Iterator[Box]:
        """Every box, those of actors first."""
        for cluster in self.clusters:
            yield from cluster.boxes
        yield from self.terminals
