"""The graph as a schedule: a row for each actor, a bar for each task, the way pipelines are drawn in papers.

From the spec alone every task takes one step, so it shows the order and the bubbles that follow from the graph, not
measured times. With a run, one of its iterations as it happened is drawn below, by time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.graph import Graph, Task
from cgspec.quantities import show_duration
from cgspec.views.charts import steps as round_numbers
from cgspec.views.facts import count_of, task_facts, tell_actor
from cgspec.views.labels import SANS, row_label, schedule_label
from cgspec.views.layout import draw, draw_png
from cgspec.views.palette import INK, MUTED, STROKES, fill, outline
from cgspec.views.ran import Ran
from cgspec.views.svg import draw_svg
from cgspec.views.taming import quote, quote_lines, shorten, tell_all
from cgspec.views.timetable import count_steps, find_starts, idle_share

_LANE, _CELL = 32.0, 26.0
"""The distance of rows and the height of a cell, in points."""

_LETTER = 6.4
"""The width of a letter in a cell, generously, in points."""

_NARROW = 4.0
"""Bars narrower than this, in points, have no outline."""

_APART = 1.9
"""The distance, in rows, from the last row of the steps to the first one of the run."""

_ROOM = 640.0
"""The least width of an iteration as it happened, in points."""


def render(graph: Graph, format: str, *, ran: Ran | None = None) -> bytes:
    """The schedule in the format that a file extension names; the same graph gives the same bytes.

    Args:
        ran: an iteration that is drawn below it, as it happened.

    Raises:
        UsageError: no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"no schedules in the format {format}: {suggest(format, FORMATS, noun='formats')}")
    return FORMATS[format](Schedule(graph, ran))


def dot_text(graph: Graph, *, ran: Ran | None = None) -> str:
    """The schedule as DOT text with the place of everything, for ``neato -n``."""
    return Schedule(graph, ran).write()


@dataclass(frozen=True)
class Panel:
    """A table of bars: ``bars`` by task, as (left, right) in points from the left end of the rows.

    Attributes:
        prefix: what the ids of its things begin with.
        top: the height of its first row, in points; rows go down from there.
    """

    prefix: str
    top: float
    width: float
    bars: Mapping[int, tuple[float, float]]
    ticks: Sequence[tuple[float, str]]
    axis: str


@dataclass(frozen=True)
class Schedule:
    """A graph's timetable, ready to be drawn; ``ran``: an iteration that is drawn below it."""

    graph: Graph
    ran: Ran | None = None

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return find_starts(self.graph)

    @cached_property
    def steps(self) -> int:
        return count_steps(self.starts)

    @cached_property
    def hues(self) -> dict[str, int]:
        """The position of each task family, which gives it its colour."""
        return {family: hue for hue, family in enumerate(dict.fromkeys(task.family for task in self.graph.tasks))}

    @cached_property
    def pitch(self) -> float:
        """The width of a step: what the longest label needs, within reason."""
        longest = max((len(self.label(task)) for task in self.graph.tasks), default=1)
        return min(max(26.0, longest * _LETTER + 8), 34.0 if self.steps > 40 else 84.0)

    @property
    def panels(self) -> Iterator[Panel]:
        """The steps, and the run below them."""
        width = max(self.steps, 1) * self.pitch
        places = [start * self.pitch for start in self.starts]
        bars = {task: (left + 1, left + self.pitch - 1) for task, left in enumerate(places)}
        every = 1 if self.steps <= 20 else 5 if self.steps <= 100 else 5 * 10 ** (len(str(self.steps)) - 2)
        ticks = [((step + 0.5) * self.pitch, str(step)) for step in range(0, self.steps, every)]
        yield Panel("", 0.0, width, bars, ticks, "step")
        if self.ran is not None:
            yield _as_it_ran(self.ran, -(len(self.graph.actors) + _APART) * _LANE, max(width, _ROOM))

    def label(self, task: Task) -> str:
        """The task's place on its own axes, which in a pipeline is the microbatch; else its family."""
        axes = {axis for axis, _ in self.graph.actors[task.actor].index}
        axes |= {"member"} if task.collective is not None else set()  # says which actor, not which microbatch
        own = [str(place) for axis, place in task.index if axis not in axes]
        return ".".join(own) or task.family or "-"

    @property
    def subtitle(self) -> str:
        counts = [(len(self.graph.actors), "actor"), (len(self.graph.tasks), "task"), (self.steps, "step")]
        told = " · ".join(count_of(number, noun) for number, noun in counts)
        return f"{told} · idle {idle_share(self.graph, self.starts):.0%}, if every task took one step"

    @property
    def remark(self) -> str:
        """What is drawn below the steps."""
        if self.ran is None:
            return ""
        length = show_duration(self.ran.length / 1e9)
        return f"below: iteration {self.ran.iteration} as it ran, {length}, idle {self.ran.idle_share(self.graph):.0%}"

    def tooltips(self) -> dict[str, list[str]]:
        """What is said on hovering over each cell."""
        places = {task: place for actor in self.graph.actors for place, task in enumerate(actor.tasks)}
        spans = self.ran.spans if self.ran is not None else {}
        told: dict[str, list[str]] = {}
        for number, task in enumerate(self.graph.tasks):
            facts = task_facts(self.graph, number, places[number])
            told[f"t{number}"] = tell_all(task.name, task.label, facts)
            if number in spans:
                start, end = (at / 1e9 for at in spans[number])
                times = (("took", show_duration(end - start)), ("started at", show_duration(start) if start else "0"))
                told[f"rant{number}"] = tell_all(task.name, task.label, (*times, *facts))
        return told

    def write(self) -> str:
        """DOT text with the place of everything."""
        tooltips = self.tooltips()
        body = [
            line
            for panel in self.panels
            for part in (self._rows(panel), self._cells(panel, tooltips), self._axis(panel))
            for line in part
        ]
        return "\n".join(["digraph cgspec {", *self._head(), *body, "}", ""])

    def _head(self) -> Iterator[str]:
        families = [(hue, family, self._method(family)) for family, hue in self.hues.items()]
        yield f"  graph [pad=0.25 bgcolor=white labelloc=t labeljust=l fontname={quote(SANS)}"
        yield f"    tooltip={quote_lines(tell_all(self.graph.name, self.subtitle, ()))}"
        yield f"    label={schedule_label(self.graph.name, self.subtitle, families, self.remark)}];"
        yield f'  node [shape=box fixedsize=true style=filled fontname={quote(SANS)} fontsize=10 fontcolor="{INK}"];'

    def _method(self, family: str) -> str:
        return next(task.label for task in self.graph.tasks if task.family == family)

    def _rows(self, panel: Panel) -> Iterator[str]:
        width, prefix = panel.width, panel.prefix
        ground = f'width={width / 72:.3f} height={_CELL / 72:.3f} label="" fillcolor="#f3f3f3" color="#e2e2e2"'
        for row, actor in enumerate(self.graph.actors):
            y = f"{panel.top - row * _LANE:.1f}"
            tooltip = quote_lines(tell_all(actor.name, tell_actor(actor), ()))
            yield f'  {prefix}row{row} [pos="{width / 2:.1f},{y}!" {ground} tooltip={tooltip}];'
            name = f'shape=plain style="" fontsize=12 label={row_label(actor.name)}'
            yield f'  {prefix}actor{row} [pos="-98,{panel.top - row * _LANE - 2.5:.1f}!" {name}];'

    def _cells(self, panel: Panel, tooltips: Mapping[str, list[str]]) -> Iterator[str]:
        for number, (left, right) in panel.bars.items():
            task = self.graph.tasks[number]
            name = f"{panel.prefix}t{number}"
            size = f"width={(right - left) / 72:.3f} height={_CELL / 72:.3f}"
            x, y = (left + right) / 2, panel.top - task.actor * _LANE
            letters = int((right - left - 4) / _LETTER)
            whole = self.label(task)
            label = quote(shorten(whole, letters) if letters >= min(3, len(whole)) else "")
            yield (
                f'  {name} [id="{name}" class="task" pos="{x:.1f},{y:.1f}!" {size} {self._paint(task, right - left)}'
                f" label={label} tooltip={quote_lines(tooltips[name])}];"
            )

    def _paint(self, task: Task, width: float) -> str:
        """Its colours; a bar that would be nothing but outline has none."""
        hue = self.hues[task.family]
        if width < _NARROW:
            return f'fillcolor="{fill(hue)}" color="{fill(hue)}" penwidth=0.3'
        if task.collective is None:
            return f'fillcolor="{fill(hue)}" color="{outline(hue)}"'
        return f'fillcolor="{fill(hue)}" color="{STROKES["group"].colour}" penwidth=2'

    def _axis(self, panel: Panel) -> Iterator[str]:
        y = panel.top - len(self.graph.actors) * _LANE + 6
        text = f'shape=plaintext style="" fontcolor="{MUTED}"'
        yield f'  {panel.prefix}steps [pos="-24,{y:.1f}!" {text} label="{panel.axis}"];'
        for number, (x, label) in enumerate(panel.ticks):
            yield f'  {panel.prefix}step{number} [pos="{x:.1f},{y:.1f}!" {text} label="{label}"];'


def _as_it_ran(ran: Ran, top: float, width: float) -> Panel:
    scale = width / ran.length
    bars = {task: (start * scale, max(end * scale, start * scale + 1)) for task, (start, end) in ran.spans.items()}
    ticks = [(at * scale, show_duration(at / 1e9) if at else "0") for at in round_numbers(0, ran.length, 6)]
    return Panel("ran", top, width, bars, ticks, "time")


def _png(schedule: Schedule) -> bytes:
    return draw_png(schedule.write(), engine="nop")


def _svg(schedule: Schedule) -> bytes:
    return draw_svg(schedule.write(), schedule.tooltips(), engine="nop").encode()


def _pdf(schedule: Schedule) -> bytes:
    return draw(schedule.write(), "pdf", engine="nop")


def _dot(schedule: Schedule) -> bytes:
    return schedule.write().encode()


FORMATS: dict[str, Callable[[Schedule], bytes]] = {"png": _png, "svg": _svg, "pdf": _pdf, "dot": _dot}
"""File extension → what makes the file's bytes."""
