"""The HTML-like labels of DOT nodes and clusters: tables whose every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cgspec.views.palette import FAILED, FRAME, GROUND, HEATS, INK, MUTED, STROKES, Carrier, fill, outline, wash
from cgspec.views.scene import Box, Cluster, Mark, Node, Scene
from cgspec.views.taming import mark_up

SANS = "Helvetica,Arial,DejaVu Sans,sans-serif"
MONO = "DejaVu Sans Mono,Menlo,Consolas,monospace"
NAME_LENGTH = 40
LINE_LENGTH = 60
MOST_LINES = 12
MOST_PORTS = 32
MOST_FAMILIES = 23

_ACROSS = 3
"""How many entries of the legend stand side by side."""

MARKS: tuple[tuple[Mark, int, str, str], ...] = (
    ("critical", 2, INK, "on the critical path (links: double)"),
    ("bottleneck", 4, INK, "bottleneck: bounds throughput"),
    ("failed", 4, FAILED, "failed"),
)
"""What the outline of a task says of a run: (mark, width, colour, words)."""

ROLES = {"plain": "", "effect": "called for its effect", "unread": "result not read"}


def task_label(box: Box, hue: int) -> str:
    """A task: its name over what it calls; the returns of a multi-return method are ports on its right."""
    style = "ROUNDED,DASHED" if box.role == "unread" else "ROUNDED"
    border, colour = _border(box, hue)
    table = f'BORDER="{border}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="6" STYLE="{style}"'
    colours = f'COLOR="{colour}" BGCOLOR="{box.heat or fill(hue)}"'
    ports = [_port(number, port.name, port.unread) for number, port in enumerate(box.ports[:MOST_PORTS])]
    if len(box.ports) > MOST_PORTS:
        ports.append(f'<TD BORDER="1" SIDES="L">{_small(f"… {len(box.ports)} returns")}</TD>')
    inner = _twice(_words(box), hue) if box.role == "effect" else _words(box)
    span = f' ROWSPAN="{len(ports)}"' if len(ports) > 1 else ""
    first, *rest = ports or [""]
    rows = "".join(f"<TR>{row}</TR>" for row in (f"<TD{span}>{inner}</TD>{first}", *rest))
    label = f"<TABLE {table} {colours}>{rows}</TABLE>"
    return f"<{_stack(label, hue) if len(box.members) > 1 else label}>"


def _border(box: Box, hue: int) -> tuple[int, str]:
    """The width and colour of its outline, which a run may mark."""
    found = [(border, colour) for mark, border, colour, _ in MARKS if mark in box.marks]
    return found[-1] if found else (1, outline(hue))


def _stack(label: str, hue: int) -> str:
    """A box for a whole family: the edges of two more sheets show behind it."""
    sheet = f'BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" STYLE="ROUNDED" COLOR="{outline(hue)}"'
    gap = '<TD WIDTH="3" HEIGHT="3" FIXEDSIZE="TRUE"></TD>'
    for _ in range(2):
        rows = f"<TR><TD>{label}</TD>{gap}</TR><TR>{gap}</TR>"
        label = f'<TABLE {sheet} BGCOLOR="{wash(hue)}">{rows}</TABLE>'
    return label


def _twice(words: str, hue: int) -> str:
    table = f'BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4" STYLE="ROUNDED" COLOR="{outline(hue)}"'
    return f"<TABLE {table}><TR><TD>{words}</TD></TR></TABLE>"


def _words(box: Box) -> str:
    lines = [_bold(box.name)]
    lines += [_code(box.note)] if box.note else []
    lines += [_small(line, LINE_LENGTH) for line in box.lines[:MOST_LINES]]
    lines += [_small(f"… {len(box.lines) - MOST_LINES} more")] if len(box.lines) > MOST_LINES else []
    lines += [f"<I>{_small(ROLES[box.role])}</I>"] if ROLES[box.role] else []
    return "<BR/>".join(lines)


def _port(number: int, name: str, unread: bool) -> str:
    text = f"<S>{_small(name)}</S>" if unread else _small(name)
    sides = "L" if number == 0 else "LT"
    return f'<TD PORT="r{number}" BORDER="1" SIDES="{sides}" CELLPADDING="5">{text}</TD>'


def terminal_label(box: Box) -> str:
    """An input, an output or a collective."""
    return f"<{_words(box)}>"


def cluster_label(cluster: Cluster, ground: str = "") -> str:
    """An actor: its name over its class, on a ground where it is drawn above others."""
    return _title(ground, (_bold(cluster.name, 13), _small(cluster.about, LINE_LENGTH, MUTED)))


def node_label(node: Node, ground: str = "") -> str:
    """A node of the cluster: its name."""
    return _title(ground, (_bold(node.name, 11),))


def _title(ground: str, lines: Iterable[str]) -> str:
    colour = f' BGCOLOR="{ground}"' if ground else ""
    rows = "".join(f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in lines)
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1"{colour}>{rows}</TABLE>>'


def row_label(name: str) -> str:
    """An actor's name, set to the right in 180 points."""
    cell = f'<TD WIDTH="180" ALIGN="RIGHT">{mark_up(name, 28)}</TD>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{cell}</TR></TABLE>>'


def link_label(text: str, colour: str) -> str:
    """How a link travels, with air around it so that the line does not strike it through."""
    words = f'<FONT COLOR="{colour}" POINT-SIZE="9">{mark_up(text, NAME_LENGTH)}</FONT>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3"><TR><TD>{words}</TD></TR></TABLE>>'


def scene_label(scene: Scene) -> str:
    """The title over what the picture holds and leaves out, and the legend: one sample line for each carrier, and with
    a run what its colours, outlines and widths say."""
    carriers = [carrier for carrier in STROKES if any(link.carrier == carrier for link in scene.links)]
    entries = [*map(_sample, carriers), *_hosts(scene), *_measured(scene)]
    return _titled(scene.name, scene.subtitle, scene.remark, entries)


def _hosts(scene: Scene) -> Iterator[str]:
    for because in dict.fromkeys(node.because for node in scene.nodes):
        frame = f'BORDER="1" COLOR="{FRAME}" BGCOLOR="{GROUND}" WIDTH="34" HEIGHT="12" FIXEDSIZE="TRUE"'
        yield _entry(f"<TD {frame}></TD>", _small(f"one node ({because})", LINE_LENGTH), 34, 12)


def _measured(scene: Scene) -> Iterator[str]:
    if scene.heats:
        steps = [f'<TD BGCOLOR="{step}" WIDTH="7" HEIGHT="11" FIXEDSIZE="TRUE"></TD>' for step in HEATS]
        yield _entry("".join(steps), _small(f"busy: 0 to {scene.heats}"), 35, 11)
    marks = frozenset().union(*(box.marks for box in scene.boxes))
    for mark, border, colour, words in MARKS:
        if mark in marks:
            line = f'BORDER="{border}" COLOR="{colour}" WIDTH="34" HEIGHT="12" FIXEDSIZE="TRUE"'
            yield _entry(f"<TD {line}></TD>", _small(words), 34, 12)
    if scene.widths:
        yield _entry(
            f'<TD BGCOLOR="{MUTED}" WIDTH="34" HEIGHT="6" FIXEDSIZE="TRUE"></TD>', _small(scene.widths, 60), 34, 6
        )


def schedule_label(name: str, subtitle: str, families: Sequence[tuple[int, str, str]], remark: str = "") -> str:
    """The title over what the schedule holds, and the legend: (colour, task family, what it calls)."""
    swatches = [_swatch(*family) for family in families[:MOST_FAMILIES]]
    if len(families) > MOST_FAMILIES:
        swatches.append(f"<TD></TD><TD>{_small(f'… {len(families)} families')}</TD>")
    return _titled(name, subtitle, remark, swatches)


def _titled(name: str, subtitle: str, remark: str, entries: Sequence[str]) -> str:
    lines = [_bold(name, 18, 80), _small(subtitle, 120)]
    lines += [f"<I>{_small(remark, 160)}</I>"] if remark else []
    head = "".join(f'<TR><TD ALIGN="LEFT" COLSPAN="{2 * _ACROSS}">{line}</TD></TR>' for line in lines)
    rows = [entries[start : start + _ACROSS] for start in range(0, len(entries), _ACROSS)]
    legend = "".join(f"<TR>{''.join(row)}</TR>" for row in rows) + '<TR><TD HEIGHT="4"></TD></TR>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2">{head}{legend}</TABLE>>'


def _swatch(hue: int, family: str, call: str) -> str:
    cell = f'<TD BGCOLOR="{fill(hue)}" WIDTH="20" HEIGHT="11" FIXEDSIZE="TRUE"></TD>'
    words = _small(family) + (f" {_code(call)}" if call != family else "")
    return _entry(cell, words, 20, 11)


def _sample(carrier: Carrier) -> str:
    stroke = STROKES[carrier]
    line = f'BORDER="{max(1, round(stroke.width))}" SIDES="B" COLOR="{stroke.colour}" STYLE="{stroke.dash.upper()}"'
    return _entry(f'<TD {line} FIXEDSIZE="TRUE" WIDTH="34" HEIGHT="8"></TD>', _small(stroke.meaning), 34, 8)


def _entry(cell: str, words: str, width: int, height: int) -> str:
    """A sample of this size, without which Graphviz spreads its cells where the title is long, and what it means."""
    size = f'ALIGN="LEFT" FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}"'
    sign = f'<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0" {size}><TR>{cell}</TR></TABLE>'
    return f'<TD ALIGN="LEFT">{sign}</TD><TD ALIGN="LEFT">&#160;{words}&#160;&#160;&#160;&#160;</TD>'


def _bold(text: str, size: int = 12, most: int = NAME_LENGTH) -> str:
    return f'<FONT POINT-SIZE="{size}" COLOR="{INK}"><B>{mark_up(text, most)}</B></FONT>'


def _small(text: str, most: int = NAME_LENGTH, colour: str = INK) -> str:
    return f'<FONT POINT-SIZE="10" COLOR="{colour}">{mark_up(text, most)}</FONT>'


def _code(text: str) -> str:
    return f'<FONT FACE="{MONO}" POINT-SIZE="10" COLOR="{INK}">{mark_up(text, NAME_LENGTH)}</FONT>'
