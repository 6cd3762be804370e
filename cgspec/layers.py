"""A spec is layers of data: included files, the file, a variant, the command line; merged, each keeping its places."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cgspec import source
from cgspec.diagnostics import Finding, Path, Place, suggest
from cgspec.source import Document, Unreadable

COMMAND_LINE = "command line"
SWEEP = "sweep"
MAX_INCLUDES = 200
_GROWING = ("actors", "inputs", "tasks", "outputs", "metrics", "variants")
"""Sections in which an override may add an entry."""


@dataclass(frozen=True)
class Layer:
    """Some data and where it was written.

    Attributes:
        document: the file; None for the command line and for sweep points.
        at: where in the spec the data goes; ``inside``: where in the document it stands.
        text: what is shown when there is no document, e.g. ``run.iterations=3``.
        origin: what ``show --origin`` says.
    """

    document: Document | None
    at: Path
    inside: Path
    text: str
    origin: str

    def locate(self, path: Path, on: Literal["key", "value"], span: tuple[int, int] | None) -> tuple[Place, int] | None:
        """The place of a path and how many of its parts are this layer's; None where the layer says nothing of it."""
        if path[: len(self.at)] != self.at:
            return None
        if self.document is None:
            offset = len(self.text.split("=", 1)[0]) + 1 if "=" in self.text else 0
            start, end = span if span and len(path) == len(self.at) else (0, max(len(self.text) - offset, 1))
            column = offset + start + 1
            return Place(self.origin, 1, column, offset + end + 1, self.text), len(self.at)
        inner = (*self.inside, *path[len(self.at) :])
        place, found = self.document.locate(inner, on=on, span=span)
        return place, found - len(self.inside) + len(self.at)


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

    def origin(self, path: Path) -> str:
        """Which layer said the value at a path, for ``show --origin``."""
        best = self._best(path, "value", None)
        return f"{best[0].origin}:{best[1].line}" if best and best[0].document else best[0].origin if best else ""

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
        import dataclasses

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
    """

    data: dict[str, Any]
    sources: Sources
    findings: list[Finding]
    root: pathlib.Path
    text: str
    files: list[pathlib.Path]


def is_marked(data: Any) -> bool:
    """Whether a map holds a ``$key``."""
    return isinstance(data, dict) and any(isinstance(k, str) and k[:1] == "$" and k[:2] != "$$" for k in data)


def merge(base: Any, over: Any, path: Path = ()) -> Any:
    """``over`` upon ``base`` by the rules of the language, without changing either.

    Maps merge; lists, maps with a ``$key`` and tasks are replaced whole; null deletes; an overridden key keeps its
    place and new ones follow.
    """
    whole = len(path) == 2 and path[0] == "tasks"
    if not isinstance(base, dict) or not isinstance(over, dict) or whole or is_marked(base) or is_marked(over):
        return over
    merged = dict(base)
    for key, value in over.items():
        if value is None and key in merged:
            del merged[key]
        else:
            merged[key] = merge(merged[key], value, (*path, key)) if key in merged else value
    return merged


def put(data: Any, path: Path, value: Any) -> Any:
    """``data`` with the value at a path replaced (null deletes), without changing it; missing maps are made."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(data, list) and isinstance(head, int) and 0 <= head < len(data):
        return [put(item, rest, value) if n == head else item for n, item in enumerate(data)]
    base = dict(data) if isinstance(data, dict) else {}
    if not rest and value is None:
        base.pop(head, None)
        return base
    inner = base.get(head)
    merges = not rest and isinstance(inner, dict) and isinstance(value, dict)
    base[head] = merge(inner, value) if merges else put(inner, rest, value)
    return base


class Loader:
    """Reads a file with all that it includes."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.sources = Sources()
        self.findings: list[Finding] = []
        self.files: list[pathlib.Path] = []
        self._open: list[pathlib.Path] = []

    def load(self, path: pathlib.Path, shown: str, raw: bytes | str) -> tuple[dict[str, Any], Document]:
        """The file's data upon its includes.

        Raises:
            Unreadable: the file is no YAML, or not a spec.
        """
        if len(self.files) >= MAX_INCLUDES:
            message = f"more than {MAX_INCLUDES} files are included"
            raise Unreadable(Finding("include", message, place=Place(shown, 1, 1, 2, "")))
        document = source.read(raw, shown)
        self.files.append(path)
        data = _check_version(document)
        self.findings.extend(document.findings)
        self._open.append(path)
        base: dict[str, Any] = {}
        for number, entry in enumerate(_entries(data.get("include"))):
            base = merge(base, self._include(entry, path, document, number))
        self._open.pop()
        own = relocate(data, self._prefix(path))
        self.sources.layers.append(Layer(document, (), (), "", shown))
        merged: dict[str, Any] = merge(base, {key: value for key, value in own.items() if key != "include"})
        if "include" in data and not isinstance(data["include"], (str, list)):
            merged["include"] = data["include"]
        return merged, document

    def _include(self, entry: Any, path: pathlib.Path, document: Document, number: int) -> dict[str, Any]:
        where: Path = ("include", number)
        if not isinstance(entry, str):
            self._report("wrong-type", f"include takes files, not {entry!r}", document, where)
            return {}
        target = pathlib.Path(os.path.normpath(path.parent / entry))
        if target in self._open:
            chain = " -> ".join(item.name for item in [*self._open[self._open.index(target) :], target])
            self._report("include-cycle", f"files include each other: {chain}", document, where)
            return {}
        try:
            raw = target.read_bytes()
        except (OSError, ValueError) as error:
            near = suggest(target.name, _yaml_files(target.parent), noun="YAML files there")
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else str(error)
            self._report("include", f"{entry} cannot be included: {reason}; {near}", document, where)
            return {}
        shown = os.path.join(os.path.dirname(document.file), entry)
        try:
            return self.load(target, os.path.normpath(shown), raw)[0]
        except Unreadable as error:
            self.findings.append(error.finding)
            return {}

    def _prefix(self, path: pathlib.Path) -> str:
        """The folder of a file, relative to the root, as a prefix for what it says; empty where they are one."""
        relative = os.path.relpath(path.parent, self.root).replace(os.sep, "/")
        return "" if relative == "." else relative + "/"

    def _report(self, code: str, message: str, document: Document, path: Path) -> None:
        place = document.locate(path)[0]
        self.findings.append(Finding(code, message, path, place=place))


def _yaml_files(folder: pathlib.Path) -> list[str]:
    try:
        return sorted(item.name for item in folder.iterdir() if item.suffix in (".yaml", ".yml"))
    except (OSError, ValueError):
        return []


def _entries(include: Any) -> list[Any]:
    return include if isinstance(include, list) else [include] if isinstance(include, str) else []


def _check_version(document: Document) -> dict[str, Any]:
    """The document's map, if it is a spec of a version that is known."""
    data = document.data
    first = Place(document.file, 1, 1, 2, document.line(1))
    if not isinstance(data, dict):
        kind = "empty" if data is None else "a list" if isinstance(data, list) else "a single value"
        fix = "start it with `cgspec: 1`; `cgspec init` writes a starter"
        raise Unreadable(Finding("not-a-spec", f"{document.file} is {kind}, not a spec", place=first, fix=fix))
    if "cgspec" not in data:
        fix = "start it with `cgspec: 1`"
        raise Unreadable(Finding("not-a-spec", f"{document.file} does not say `cgspec: 1`", place=first, fix=fix))
    version = data["cgspec"]
    if version != 1 or isinstance(version, (bool, float)):
        place = document.locate(("cgspec",))[0]
        message = f"this cgspec reads version 1 of the language, not {version!r}"
        raise Unreadable(Finding("not-a-spec", message, ("cgspec",), place=place))
    return data


def relocate(data: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The data of a file in another folder, with its class and function files made relative to the root."""
    if not prefix:
        return data
    moved = {key: _move_calls(value, prefix) for key, value in data.items()}
    actors = moved.get("actors")
    if isinstance(actors, dict):
        moved["actors"] = {
            name: {**actor, "class": _move(actor["class"], prefix)}
            if isinstance(actor, dict) and "class" in actor
            else actor
            for name, actor in actors.items()
        }
    return moved


def _move_calls(data: Any, prefix: str) -> Any:
    if isinstance(data, dict):
        return {k: _move(v, prefix) if k == "$call" else _move_calls(v, prefix) for k, v in data.items()}
    if isinstance(data, list):
        return [_move_calls(item, prefix) for item in data]
    return data


def _move(text: Any, prefix: str) -> Any:
    if isinstance(text, str) and text.split(":", 1)[0].endswith(".py"):
        return os.path.normpath(prefix + text).replace(os.sep, "/")
    return text


def parse_override(text: str) -> tuple[Path, Any]:
    """A ``key=value`` of the command line: the path, and the value read as YAML.

    Raises:
        Unreadable: it has no ``=``, or the value is no YAML.
    """
    key, equals, raw = text.partition("=")
    place = Place(COMMAND_LINE, 1, 1, len(text) + 1, text)
    if not equals or not key.strip():
        fix = "write e.g. run.iterations=3"
        raise Unreadable(Finding("bad-override", f"{text} is no override: it needs key=value", place=place, fix=fix))
    try:
        document = source.read(raw, COMMAND_LINE)
    except Unreadable as error:
        message = f"the value of {key} is no YAML: {error.finding.message}"
        raise Unreadable(Finding("bad-override", message, place=place)) from None
    if document.findings:
        raise Unreadable(Finding("bad-override", document.findings[0].message, place=place))
    return split_path(key.strip()), document.data


def split_path(dotted: str) -> Path:
    """``tasks.send.transport`` as a path; whole numbers are indices."""
    return tuple(int(part) if part.isdigit() and len(part) < 10 else part for part in dotted.split("."))


def apply(merged: Merged, overrides: Iterable[tuple[Path, Any, Layer]]) -> None:
    """Puts overrides upon the data, in order; one that goes nowhere becomes a finding instead."""
    for path, value, layer in overrides:
        merged.sources.layers.append(layer)
        problem = _unknown_target(merged.data, path, value)
        if problem:
            merged.findings.append(Finding("unknown-override", problem, path, place=_place_of(layer)))
            merged.sources.layers.pop()
            continue
        merged.data = put(merged.data, path, value)


def _place_of(layer: Layer) -> Place | None:
    located = layer.locate(layer.at, "key", None)
    if located is None:
        return None
    place = located[0]
    return place if layer.document else Place(place.file, 1, 1, max(place.column - 1, 2), place.excerpt)


def _unknown_target(data: dict[str, Any], path: Path, value: Any) -> str | None:
    """Why an override goes nowhere, or None. Keys of models are left to the models, which know them all."""
    dotted = ".".join(map(str, path))
    if len(path) == 1 and isinstance(data.get("vars"), dict) and path[0] in data["vars"]:
        return f"there is no key {dotted} at the top of a spec; did you mean vars.{dotted}?"
    if len(path) < 2 or path[0] not in ("vars", *_GROWING):
        return None
    section = data.get(str(path[0]))
    names = list(section) if isinstance(section, dict) else []
    adds = path[0] in _GROWING and len(path) == 2 and value is not None
    if path[1] in names or adds:
        return None
    noun = str(path[0]).removesuffix("s")
    return f"there is no {noun} {path[1]}; {suggest(str(path[1]), map(str, names), noun=str(path[0]))}"


def variant_overrides(merged: Merged, name: str, document: Document) -> Iterator[tuple[Path, Any, Layer]]:
    """The overrides of a variant, in order; an unknown variant becomes a finding."""
    variants = merged.data.get("variants")
    chosen = variants.get(name) if isinstance(variants, dict) else None
    if not isinstance(chosen, Mapping):
        known = list(variants) if isinstance(variants, dict) else []
        message = f"there is no variant {name}; {suggest(name, map(str, known), noun='variants')}"
        text = f"--variant {name}"
        place = Place(COMMAND_LINE, 1, 1, len(text) + 1, text)
        merged.findings.append(Finding("unknown-variant", message, place=place))
        return
    for key, value in chosen.items():
        owner = _document_of(merged, ("variants", name, key)) or document
        path = split_path(str(key))
        yield path, value, Layer(owner, path, ("variants", name, key), "", f"{owner.file} (variant {name})")


def _document_of(merged: Merged, path: Path) -> Document | None:
    for layer in reversed(merged.sources.layers):
        if layer.document and layer.document.locate(path)[1] == len(path):
            return layer.document
    return None


def load(
    path: pathlib.Path, *, shown: str, raw: bytes | str, overrides: Iterable[str] = (), variant: str | None = None
) -> Merged:
    """Reads a spec and merges all its layers.

    Args:
        path: the file; need not exist when ``raw`` was read elsewhere, but its folder is the default root.
        overrides: ``key=value`` texts of the command line.

    Raises:
        Unreadable: nothing can be said about the spec but the one finding that it carries.
    """
    path = pathlib.Path(os.path.abspath(path))
    loader = Loader(_declared_root(path, raw))
    data, document = loader.load(path, shown, raw)
    merged = Merged(data, loader.sources, loader.findings, loader.root, document.text, loader.files)
    if variant is not None:
        apply(merged, variant_overrides(merged, variant, document))
    for text in overrides:
        try:
            target, value = parse_override(text)
        except Unreadable as error:
            merged.findings.append(error.finding)
            continue
        apply(merged, [(target, value, Layer(None, target, (), text, COMMAND_LINE))])
    return merged


def _declared_root(path: pathlib.Path, raw: bytes | str) -> pathlib.Path:
    """The folder that ``root`` names, or the file's own; the text is read again only where it says ``root``."""
    marker = b"root:" if isinstance(raw, bytes) else "root:"
    if marker in raw:  # type: ignore[operator]
        data = source.read(raw, path.name).data
        root = data.get("root") if isinstance(data, dict) else None
        if isinstance(root, str) and "\0" not in root:
            return pathlib.Path(os.path.normpath(path.parent / root))
    return path.parent
