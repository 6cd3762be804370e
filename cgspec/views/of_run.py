"""What a run adds to pictures: its times on the graph, and one of its iterations as a schedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cgspec.checking import Checked
from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.record import load
from cgspec.reopening import checked_of
from cgspec.timeline import folder_of, read_phase
from cgspec.views.details import add_details
from cgspec.views.flows import find_flows
from cgspec.views.overlay import overlay
from cgspec.views.picture import compose, write
from cgspec.views.ran import Ran, find_ran
from cgspec.views.scene import Scene


def dress(checked: Checked, run: Path | None, *, detailed: bool = False) -> Callable[[Scene], Scene]:
    """Adds what a run measured to a scene of the spec; ``detailed``: and the spec's lines and signatures.

    Raises:
        UsageError: there is no such run.
    """
    record = load(run) if run is not None else None
    graph = checked.graph
    assert graph is not None
    segment = read_phase(folder_of(run), "measure") if run is not None else None
    flows = find_flows(graph, record, segment) if record is not None else None

    def dressed(scene: Scene) -> Scene:
        scene = scene if record is None else overlay(scene, record, flows)
        return add_details(scene, checked) if detailed else scene

    return dressed


def draw(run_dir: Path) -> str | None:
    """The graph of a run as SVG, with its times; as it was drawn at the run where its spec can no longer be read."""
    try:
        checked = checked_of(run_dir)
    except UsageError:
        stored = run_dir / "graph.svg"
        return stored.read_text(encoding="utf-8", errors="replace") if stored.is_file() else None
    assert checked.graph is not None
    return write(dress(checked, run_dir)(compose(checked.graph)), "svg").decode()


def schedule(run: Path, graph: Graph, iteration: int | None) -> Ran:
    """One iteration of a run; see ``find_ran``.

    Raises:
        UsageError: there is no such run, or the recorder holds no such iteration.
    """
    return find_ran(graph, load(run), read_phase(folder_of(run), "measure"), iteration)
