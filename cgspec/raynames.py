"""Every private name of Ray that cgspec touches, each in one function that checks that it is still there.

A test per function fails when Ray moves the name. Nothing here imports ray at module level.
"""

from __future__ import annotations

from typing import Any

READ_ERROR = "RaySystemError"
"""The class of what arrives in place of a value that could not be read; told by name, since the worker has no ray."""


class Moved(RuntimeError):
    """Ray has moved a private name that cgspec needs; the message names it."""


def _need(owner: Any, name: str) -> Any:
    if not hasattr(owner, name):
        raise Moved(f"Ray has moved {getattr(owner, '__name__', owner)}.{name}; this cgspec does not fit this Ray")
    return getattr(owner, name)


def plain_class(found: Any) -> Any:
    """The user's plain class behind ``@ray.remote``; anything else as it is."""
    metadata = getattr(found, "__ray_metadata__", None)
    if metadata is None:
        return found
    modified = _need(metadata, "modified_class")
    return getattr(modified, "__ray_actor_class__", modified)
