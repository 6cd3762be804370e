"""The colours of pictures: calm, colour-blind safe, and the same from run to run.

Actor families take their colour by position in the graph, from Paul Tol's *light* scheme
(https://personal.sron.nl/~pault/), whose members keep apart for every kind of colour blindness and carry black text.
Transports take theirs from Okabe and Ito; each differs from the others by its line as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INK = "#1b1b1b"
MUTED = "#5f5f5f"
PAPER = "#ffffff"
GROUND, FRAME = "#f5f5f2", "#8a8a86"
"""Behind and around the actors of one node."""
PLATE = "#ead9ee"
"""Behind the name of a collective."""

_HUES = ("#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF", "#AAAA00")
_ROUNDS = ((PAPER, 0.12), (PAPER, 0.55), ("#000000", 0.18))
"""What the hues are mixed with the first, second and third time they are used."""

HEATS = ("#FFFFE5", "#FFF7BC", "#FEE391", "#FEC44F", "#FB9A29")
"""Busy times from short to long, from Paul Tol's *YlOrBr* scheme: it darkens steadily, so its order is seen with every
kind of colour blindness and in grey; these steps carry black text, and white text where a page inverts them."""

FAILED = "#A5002D"

Carrier = Literal["accelerator", "auto", "shm", "local", "host", "group"]
"""How a value travels; ``host``: between a task and the driver; ``group``: between a collective and its member."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """How the links of one carrier are drawn: ``dash`` in Graphviz's words, ``width`` in points."""

    colour: str
    width: float
    dash: Literal["solid", "dashed", "dotted"]
    meaning: str

    @property
    def ink(self) -> str:
        """The colour of text that goes with the line."""
        return mix(self.colour, "#000000", 0.3)


STROKES: dict[Carrier, Stroke] = {
    "accelerator": Stroke("#D55E00", 2.8, "solid", "accelerator: GPU to GPU"),
    "auto": Stroke("#0072B2", 1.8, "dashed", "auto: chosen by the engine"),
    "shm": Stroke("#333333", 1.4, "solid", "shm: through shared memory"),
    "local": Stroke("#8c8c8c", 1.0, "solid", "local: within one actor"),
    "host": Stroke("#6f6f6f", 1.2, "dotted", "host: to or from the driver"),
    "group": Stroke("#7B3F8C", 2.2, "solid", "group: members of one collective"),
}


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(colour: str, other: str, share: float) -> str:
    """``colour`` with ``share`` (0 to 1) of ``other`` in it."""
    pairs = zip(channels(colour), channels(other), strict=True)
    return "#" + "".join(f"{round(mine + (theirs - mine) * share):02x}" for mine, theirs in pairs)


def fill(family: int) -> str:
    """The colour of the tasks of the actor family (or, in a schedule, the task family) at this position."""
    other, share = _ROUNDS[(family // len(_HUES)) % len(_ROUNDS)]
    return mix(_HUES[family % len(_HUES)], other, share)


def heat(share: float) -> str:
    """The colour of a busy time that is this share, 0 to 1, of the longest one."""
    return HEATS[min(len(HEATS) - 1, int(share * len(HEATS)))]


def wash(family: int) -> str:
    """A pale version of ``fill``, for the ground behind an actor's tasks."""
    return mix(fill(family), PAPER, 0.78)


def outline(family: int) -> str:
    """A dark version of ``fill``, for lines around it."""
    return mix(fill(family), "#000000", 0.42)


def luminance(colour: str) -> float:
    """Relative luminance, 0 to 1, after WCAG 2.1."""
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21, after WCAG 2.1; text wants 4.5."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)
