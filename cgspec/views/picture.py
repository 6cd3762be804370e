"""The graph as a picture, in any format, drawn from the frozen graph alone: no Ray, no system package, no network."""

from __future__ import annotations

from collections.abc import Callable

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.views.dot import write_dot
from cgspec.views.instances import draw_instances
from cgspec.views.layout import lay_out, lay_out_png
from cgspec.views.scene import Scene
from cgspec.views.svg import write_svg


def _png(scene: Scene) -> bytes:
    return lay_out_png(write_dot(scene))


def _svg(scene: Scene) -> bytes:
    return write_svg(scene).encode()


def _pdf(scene: Scene) -> bytes:
    return lay_out(write_dot(scene), "pdf")


def _dot(scene: Scene) -> bytes:
    return write_dot(scene).encode()


FORMATS: dict[str, Callable[[Scene], bytes]] = {"png": _png, "svg": _svg, "pdf": _pdf, "dot": _dot}
"""File extension → what makes the file's bytes."""


def render(graph: Graph, format: str, *, constants: bool = False) -> bytes:
    """The graph in the format that a file extension names; the same graph gives the same bytes.

    Args:
        constants: whether boxes list the constants of their tasks.

    Raises:
        UsageError: no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"no pictures in the format {format}: {suggest(format, FORMATS, noun='formats')}")
    return FORMATS[format](compose(graph, constants=constants))


def dot_text(graph: Graph, *, constants: bool = False) -> str:
    """The graph as DOT text; the arguments are those of ``render``."""
    return write_dot(compose(graph, constants=constants))


def compose(graph: Graph, *, constants: bool = False) -> Scene:
    """What ``render`` draws, free of any format; the arguments are those of ``render``."""
    return draw_instances(graph, constants=constants)
