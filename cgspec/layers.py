"""The layers of a spec: included files, the file, a variant, the command line, each keeping its places."""

from __future__ import annotations

import dataclasses
import pathlib
from dataclasses import dataclass, field
from typing import Any, Literal

from cgspec.diagnostics import Finding, Path, Place
from cgspec.source import Document

COMMAND_LINE = "command line"
SWEEP = "sweep"


@dataclass(frozen=True)
class Layer:
    """Some data and where it was written.

    Attributes:
        document: the file, or the value of an override.
        at: where in the spec the data goes; ``inside``: where in the document it stands.
        text: of an override, e.g. ``run.iterations=3``, whose value the document is; else empty.
        origin: what ``show --origin`` says.
    """

    document: Document
    at: Path
    inside: Path
    text: str
    origin: str

    def locate(self, path: Path, on: Literal["key", "value"], span: tuple[int, int] | None) -> tuple[Place, int] | None:
        """The place of a path and how many of its parts are this layer's; None where the layer says nothing of it."""
        if path[: len(self.at)] != self.at:
            return None
        inner = (*self.inside, *path[len(self.at) :])
        place, found = self.document.locate(inner, on=on, span=span)
        place = self._on_the_command_line(place) if self.text else place
        return place, found - len(self.inside) + len(self.at)

    def _on_the_command_line(self, place: Place) -> Place:
        """A place in an override's value as one in the whole ``key=value``."""
        offset = self.text.index("=") + 1
        if place.line > 1:
            return Place(self.origin, 1, offset + 1, max(len(self.text), offset + 1) + 1, self.text)
        return Place(self.origin, 1, place.column + offset, place.end_column + offset, self.text)


@dataclass
class Sources:
    """All layers of a spec, the strongest last."""

    layers: list[Layer] = field(default_factory=list)

    def locate(
        self, path: Path, *, on: Literal["key", "value"] = "value", span: tuple[int, int] | None = None
    ) -> Place | None:
        """Where the value at a path was said: by the strongest layer that has the whole path, else the deepest part."""
        best = self._best(path, on, span)
        return best[1] if best else None

    def owner(self, path: Path) -> Layer | None:
        """The layer that said the value at a path; None where none has the whole path."""
        best = self._best(path, "value", None)
        located = best[0].locate(path, "value", None) if best else None
        return best[0] if best and located and located[1] == len(path) else None

    def origin(self, path: Path) -> str:
        """Which layer said the value at a path, for ``show --origin``."""
        best = self._best(path, "value", None)
        return f"{best[0].origin}:{best[1].line}" if best and not best[0].text else best[0].origin if best else ""

    def _best(
        self, path: Path, on: Literal["key", "value"], span: tuple[int, int] | None
    ) -> tuple[Layer, Place] | None:
        best: tuple[int, Layer, Place] | None = None
        for layer in reversed(self.layers):
            located = layer.locate(path, on, span)
            if located is not None and (best is None or located[1] > best[0]):
                best = (located[1], layer, located[0])
                if located[1] == len(path):
                    break
        return (best[1], best[2]) if best else None

    def place(self, finding: Finding) -> Finding:
        """The finding with its places filled in."""
        place = finding.place or self.locate(finding.path, on=finding.on, span=finding.span)
        related = tuple(
            dataclasses.replace(item, place=item.place or self.locate(item.path, on=item.on))
            for item in finding.related
        )
        return dataclasses.replace(finding, place=place, related=related)


@dataclass
class Merged:
    """The spec's data after include, variants and overrides.

    Attributes:
        data: the raw data, ``include`` resolved and the chosen variant applied.
        root: the folder that class files are relative to.
        text: the main file as written.
        files: every file that took part, the main one first.
        dropped: the values of duplicate keys, which are not in the data.
        partial: whether a file that is included could not be read, so that the data may lack anything.
    """

    data: dict[str, Any]
    sources: Sources
    findings: list[Finding]
    root: pathlib.Path
    text: str
    files: list[pathlib.Path]
    dropped: list[Any] = field(default_factory=list)
    partial: bool = False
