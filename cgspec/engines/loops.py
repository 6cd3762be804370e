"""The short way through Ray's loop, for actors without a GPU in graphs that do not communicate.

For each operation of each task Ray's loop enters a device's context (which imports torch), wraps the result as a future
and looks the method and the reader's channel up anew. On two cores that was two fifths of a hop, and half of what an
actor could do in a second. Here each task has its channels and its step at hand; order, channels and messages are
Ray's, and it is Ray's loop that executes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ray.exceptions import RayChannelError

from cgspec import raynames
from cgspec.engines.ends import take

if TYPE_CHECKING:
    from cgspec.engines.host import Host


def run(host: Host, tasks: Sequence[Any], *more: Any) -> None:
    """Ray's loop of a graph's actor, for which each task may be shortened; ends when the graph is taken down."""
    if host.worker.plain:
        for task in tasks:
            task.exec_operation = _shortened(host, raynames.parts_of(task))
    raynames.ray_loop()(host, tasks, *more)


def _shortened(host: Host, parts: raynames.Parts) -> Callable[..., bool]:
    """What replaces ``exec_operation`` of a task: True ends the loop, for its channels are closed."""
    (_, number), *arguments = parts.arguments
    places = [place for place, _ in arguments if place is not None]
    in_order = places == list(range(len(parts.reads)))
    reads, calls = [channel.read for channel in parts.reads], host.worker.calls
    only = parts.writes[0][0].write if len(parts.writes) == 1 and parts.writes[0][1] is None else None
    read, compute, _ = raynames.operations()
    held: Any = None

    def execute(owner: object, operation: object, *_: object) -> bool:
        nonlocal held
        if operation is compute:
            held = calls[number](tuple(held) if in_order else tuple([held[place] for place in places]))
            return False
        try:
            if operation is read:
                held = take(reads)
                return False
            result, held = held, None
            if only is not None:
                only(result)
            else:
                for channel, place in parts.writes:
                    channel.write(result if place is None else result[place])
        except RayChannelError:
            return True
        return False

    return execute
