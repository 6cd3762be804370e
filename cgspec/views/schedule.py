"""The graph as a schedule: a row for each actor, a column for each step, the way pipelines are drawn in papers.

Every task takes one step, so it shows the order and the bubbles that follow from the graph, not measured times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError
from cgspec.graph import Graph, Task
from cgspec.views.facts import count_of, task_facts, tell_actor
from cgspec.views.labels import SANS, row_label, schedule_label
from cgspec.views.layout import lay_out, lay_out_png
from cgspec.views.palette import INK, MUTED, STROKES, fill, outline
from cgspec.views.svg import lay_out_svg
from cgspec.views.taming import quote, quote_lines, shorten, tell_all
from cgspec.views.timetable import count_steps, find_starts, idle_share

_LANE, _CELL = 32.0, 26.0
"""The distance of rows and the height of a cell, in points."""

_LETTER = 6.4
"""The width of a letter in a cell, generously, in points."""


def render(graph: Graph, format: str) -> bytes:
    """The schedule in the format that a file extension names; the same graph gives the same bytes.

    Raises:
        UsageError: no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"no schedules in the format {format}: {suggest(format, FORMATS, noun='formats')}")
    return FORMATS[format](Schedule(graph))


def dot_text(graph: Graph) -> str:
    """The schedule as DOT text with the place of everything, for ``neato -n``."""
    return Schedule(graph).write()


@dataclass(frozen=True)
class Schedule:
    """A graph's timetable, ready to be drawn."""

    graph: Graph

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

    def tooltips(self) -> dict[str, list[str]]:
        """What is said on hovering over each cell."""
        places = {task: place for actor in self.graph.actors for place, task in enumerate(actor.tasks)}
        return {
            f"t{number}": tell_all(task.name, task.label, task_facts(self.graph, number, places[number]))
            for number, task in enumerate(self.graph.tasks)
        }

    def write(self) -> str:
        """DOT text with the place of everything."""
        return "\n".join(["digraph cgspec {", *self._head(), *self._rows(), *self._cells(), *self._axis(), "}", ""])

    def _head(self) -> Iterator[str]:
        families = [(hue, family, self._method(family)) for family, hue in self.hues.items()]
        yield f"  graph [pad=0.25 bgcolor=white labelloc=t labeljust=l fontname={quote(SANS)}"
        yield f"    tooltip={quote_lines(tell_all(self.graph.name, self.subtitle, ()))}"
        yield f"    label={schedule_label(self.graph.name, self.subtitle, families)}];"
        yield f'  node [shape=box fixedsize=true style=filled fontname={quote(SANS)} fontsize=10 fontcolor="{INK}"];'

    def _method(self, family: str) -> str:
        return next(task.label for task in self.graph.tasks if task.family == family)

    def _rows(self) -> Iterator[str]:
        width = max(self.steps, 1) * self.pitch
        ground = f'width={width / 72:.3f} height={_CELL / 72:.3f} label="" fillcolor="#f3f3f3" color="#e2e2e2"'
        for row, actor in enumerate(self.graph.actors):
            y = f"{-row * _LANE:.1f}"
            tooltip = quote_lines(tell_all(actor.name, tell_actor(actor), ()))
            yield f'  row{row} [pos="{width / 2:.1f},{y}!" {ground} tooltip={tooltip}];'
            yield f'  actor{row} [pos="-98,{y}!" shape=plain style="" fontsize=12 label={row_label(actor.name)}];'

    def _cells(self) -> Iterator[str]:
        tooltips = self.tooltips()
        size = f"width={(self.pitch - 2) / 72:.3f} height={_CELL / 72:.3f}"
        for number, task in enumerate(self.graph.tasks):
            hue = self.hues[task.family]
            x, y = (self.starts[number] + 0.5) * self.pitch, -task.actor * _LANE
            line = (
                f'color="{outline(hue)}"'
                if task.collective is None
                else f'color="{STROKES["group"].colour}" penwidth=2'
            )
            label = quote(shorten(self.label(task), int((self.pitch - 6) / _LETTER)))
            yield (
                f'  t{number} [id="t{number}" class="task" pos="{x:.1f},{y:.1f}!" {size} fillcolor="{fill(hue)}" {line}'
                f" label={label} tooltip={quote_lines(tooltips[f't{number}'])}];"
            )

    def _axis(self) -> Iterator[str]:
        y = -len(self.graph.actors) * _LANE + 6
        every = 1 if self.steps <= 20 else 5 if self.steps <= 100 else 5 * 10 ** (len(str(self.steps)) - 2)
        yield f'  steps [pos="-24,{y:.1f}!" shape=plaintext style="" fontcolor="{MUTED}" label="step"];'
        for step in range(0, self.steps, every):
            x = (step + 0.5) * self.pitch
            yield f'  step{step} [pos="{x:.1f},{y:.1f}!" shape=plaintext style="" fontcolor="{MUTED}" label="{step}"];'


def _png(schedule: Schedule) -> bytes:
    return lay_out_png(schedule.write(), engine="nop")


def _svg(schedule: Schedule) -> bytes:
    return lay_out_svg(schedule.write(), schedule.tooltips(), engine="nop").encode()


def _pdf(schedule: Schedule) -> bytes:
    return lay_out(schedule.write(), "pdf", engine="nop")


def _dot(schedule: Schedule) -> bytes:
    return schedule.write().encode()


FORMATS: dict[str, Callable[[Schedule], bytes]] = {"png": _png, "svg": _svg, "pdf": _pdf, "dot": _dot}
"""File extension → what makes the file's bytes."""
