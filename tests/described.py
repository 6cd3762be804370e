"""A graph in the form of the expansion vectors: plain data with everybody's name (see vectors/README.md)."""

from __future__ import annotations

from typing import Any

from cgspec.graph import Graph, Pack, Ref


def described(graph: Graph) -> dict[str, Any]:
    """A graph in the form of the vectors."""
    names = [task.name for task in graph.tasks]

    def read(value: Ref | Pack) -> Any:
        return [one(ref) for ref in value.items] if isinstance(value, Pack) else one(value)

    def one(ref: Ref) -> str:
        ret = graph.return_name(ref)
        return graph.source_name(ref) + (f".{ret}" if ret is not None else "")

    return {
        "actors": {actor.name: [names[number] for number in actor.tasks] for actor in graph.actors},
        "bind": [names[number] for number in graph.bind],
        "edges": [
            {
                "from": graph.source_name(edge.source),
                "return": graph.return_name(edge.source),
                "to": names[edge.to],
                "arg": edge.arg,
                "list": edge.in_list,
                "crosses": edge.crosses,
            }
            for edge in graph.edges
        ],
        "outputs": {str(key): read(value) for key, value in graph.outputs},
        "groups": [
            {"task": group.family, "members": [names[number] for number in group.members]} for group in graph.groups
        ],
        "effects": [names[number] for number in graph.effects],
        "unread": [
            names[number] + (f".{(graph.tasks[number].returns or ())[ret]}" if ret is not None else "")
            for number, ret in graph.unread
        ],
        "error": None,
    }
