"""The graph as a picture: PNG, SVG, PDF, DOT, Mermaid, HTML and text, drawn from the frozen graph alone.

No Ray, no system package and no network is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.views.ascii import write_ascii
from cgspec.views.dot import place_scene, write_dot
from cgspec.views.families import draw_families
from cgspec.views.hosts import put_on_nodes
from cgspec.views.instances import draw_instances
from cgspec.views.layout import draw, draw_png
from cgspec.views.mermaid import write_mermaid
from cgspec.views.neighbourhood import restrict
from cgspec.views.page import write_page
from cgspec.views.scene import Scene
from cgspec.views.svg import write_svg


def _png(scene: Scene) -> bytes:
    return draw_png(place_scene(scene))


def _svg(scene: Scene) -> bytes:
    return write_svg(scene).encode()


def _pdf(scene: Scene) -> bytes:
    return draw(place_scene(scene), "pdf")


def _dot(scene: Scene) -> bytes:
    return write_dot(scene).encode()


def _mmd(scene: Scene) -> bytes:
    return write_mermaid(scene).encode()


def _txt(scene: Scene) -> bytes:
    return write_ascii(scene).encode()


def _html(scene: Scene) -> bytes:
    return write_page(scene).encode()


FORMATS: dict[str, Callable[[Scene], bytes]] = {
    "png": _png,
    "svg": _svg,
    "pdf": _pdf,
    "dot": _dot,
    "mmd": _mmd,
    "html": _html,
    "txt": _txt,
}
"""File extension → what makes the file's bytes."""

MOST_TASKS = 100
"""Graphs with more tasks than this are drawn by families unless the user says otherwise."""


def render(
    graph: Graph,
    format: str,
    *,
    collapse: bool | None = None,
    around: str | None = None,
    hops: int = 1,
    constants: bool = False,
) -> bytes:
    """The graph in the format that a file extension names; the same graph gives the same bytes.

    Args:
        collapse: whether a family is one box; by default where more than ``MOST_TASKS`` tasks would be drawn. The
            picture says so (``compose(...).remark``).
        around: draws only what is near this task, family, input (``inputs.x``), output (``outputs.y``) or actor.
        hops: how many links away something may be to be near.
        constants: whether boxes list the constants of their tasks.

    Raises:
        UsageError: no such format, or nothing is called ``around``.
    """
    return write(compose(graph, collapse=collapse, around=around, hops=hops, constants=constants), format)


def write(scene: Scene, format: str) -> bytes:
    """The scene in the format that a file extension names.

    Raises:
        UsageError: no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"no pictures in the format {format}: {suggest(format, FORMATS, noun='formats')}")
    return FORMATS[format](scene)


def dot_text(
    graph: Graph,
    *,
    collapse: bool | None = None,
    around: str | None = None,
    hops: int = 1,
    constants: bool = False,
) -> str:
    """The graph as DOT text; the arguments are those of ``render``."""
    return write_dot(compose(graph, collapse=collapse, around=around, hops=hops, constants=constants))


def compose(
    graph: Graph,
    *,
    collapse: bool | None = None,
    around: str | None = None,
    hops: int = 1,
    constants: bool = False,
) -> Scene:
    """What ``render`` draws, free of any format; the arguments are those of ``render``."""

    def sketch(paint: Callable[..., Scene]) -> Scene:
        scene = put_on_nodes(paint(graph, constants=constants), graph)
        return scene if around is None else restrict(scene, around, hops)

    if collapse is not None:
        return sketch(draw_families if collapse else draw_instances)
    if around is None and len(graph.tasks) > MOST_TASKS and has_families(graph):
        return remark_on(sketch(draw_families), len(graph.tasks))
    scene = sketch(draw_instances)
    tasks = sum(box.kind == "task" for box in scene.boxes)
    return remark_on(sketch(draw_families), tasks) if tasks > MOST_TASKS and has_families(graph) else scene


def has_families(graph: Graph) -> bool:
    """Whether drawing by families would draw fewer boxes."""
    return len({task.family for task in graph.tasks}) < len(graph.tasks)


def remark_on(scene: Scene, tasks: int) -> Scene:
    """Says in the picture that it was collapsed without being asked to."""
    remark = f"each family is one box: {tasks:,} tasks are more than the {MOST_TASKS} that are drawn one by one"
    return replace(scene, remark="; ".join(part for part in (scene.remark, remark) if part))
