"""Reads a spec with all that it includes, and puts variant and overrides upon it."""

from __future__ import annotations

import dataclasses
import errno
import os
import pathlib
from collections.abc import Iterable
from typing import Any

from cgspec import source
from cgspec.diagnostics import Finding, Path, Place, Related, suggest
from cgspec.layers import COMMAND_LINE, Layer, Merged, Sources
from cgspec.merging import apply, merge, parse_override, sweep_overrides, variant_overrides
from cgspec.source import Document, Unreadable

MAX_INCLUDES = 200
MAX_PATH = 1024


class Loader:
    """Reads a file with all that it includes."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.sources = Sources()
        self.findings: list[Finding] = []
        self.files: list[pathlib.Path] = []
        self.dropped: list[Any] = []
        self.partial = False
        self._open: list[pathlib.Path] = []
        self._including: tuple[Related, ...] = ()

    def load(self, path: pathlib.Path, document: Document) -> dict[str, Any]:
        """The file's data upon its includes.

        Raises:
            Unreadable: the file is not a spec.
        """
        if len(self.files) >= MAX_INCLUDES:
            message = f"more than {MAX_INCLUDES} files are included"
            raise Unreadable(Finding("include", message, place=Place(document.file, 1, 1, 2, "")))
        self.files.append(path)
        data = _check_version(document)
        self.findings.extend(document.findings)
        self.dropped.extend(document.dropped)
        self._open.append(path)
        base: dict[str, Any] = {}
        entries = _entries(data.get("include"))
        if len(entries) > MAX_INCLUDES:
            self._report("include", f"more than {MAX_INCLUDES} files are included", document, ("include",))
        for number, entry in enumerate(entries[:MAX_INCLUDES]):
            base = merge(base, self._include(entry, path, document, number))
        self._open.pop()
        own = relocate(data, "" if "root" in data else self._prefix(path))
        self.sources.layers.append(Layer(document, (), (), "", document.file))
        merged: dict[str, Any] = merge(base, {key: value for key, value in own.items() if key != "include"})
        if "include" in data and not isinstance(data["include"], (str, list)):
            merged["include"] = data["include"]
        return merged

    def _include(self, entry: Any, path: pathlib.Path, document: Document, number: int) -> dict[str, Any]:
        where: Path = ("include", number)
        if not isinstance(entry, str):
            said = "a map" if isinstance(entry, dict) else "a list" if isinstance(entry, list) else repr(entry)
            self._report("wrong-type", f"include takes names of files, not {said}", document, where)
            return {}
        target = pathlib.Path(os.path.normpath(path.parent / entry))
        if target in self._open:
            chain = " -> ".join(item.name for item in [*self._open[self._open.index(target) :], target])
            fix = "move what both need into a third file, and include that in both"
            self._report("include-cycle", f"files include each other: {chain}", document, where, fix)
            return {}
        try:
            raw = read_file(target)
        except (OSError, ValueError) as error:
            near = suggest(target.name, yaml_files(target.parent), noun="YAML files there")
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else _reason(error)
            fix = "an include is relative to the file that says it"
            self.partial = True
            self._report("include", f"{entry} cannot be included: {reason}; {near}", document, where, fix)
            return {}
        shown = os.path.join(os.path.dirname(document.file), entry)
        return self._load_included(target, os.path.normpath(shown), raw, document.locate(where)[0])

    def _load_included(self, target: pathlib.Path, shown: str, raw: bytes, place: Place) -> dict[str, Any]:
        """An included file's data; what is said of the file shows where it was included, too."""
        outer, known = self._including, len(self.findings)
        self._including = (Related(f"{shown} is included here", place=place), *outer)
        data: dict[str, Any] = {}
        try:
            data = self.load(target, source.read(raw, shown))
        except Unreadable as error:
            self.findings.append(error.finding)
            self.partial = True
        self.findings[known:] = [self._with_includes(finding) for finding in self.findings[known:]]
        self._including = outer
        return data

    def _with_includes(self, finding: Finding) -> Finding:
        """The finding of an included file with the place of the include, unless it has it already."""
        known = {item.place for item in finding.related}
        more = tuple(item for item in self._including if item.place not in known)
        return dataclasses.replace(finding, related=(*finding.related, *more))

    def _prefix(self, path: pathlib.Path) -> str:
        """The folder of a file, relative to the root, as a prefix for what it says; empty where they are one."""
        relative = os.path.relpath(path.parent, self.root).replace(os.sep, "/")
        return "" if relative == "." else relative + "/"

    def _report(self, code: str, message: str, document: Document, path: Path, fix: str = "") -> None:
        place = document.locate(path)[0]
        self.findings.append(Finding(code, message, path, place=place, fix=fix))


def read_file(path: pathlib.Path) -> bytes:
    """The content of a file; of a file without end, or too large for a spec, a little more than a spec may have.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    with open(path, "rb") as stream:
        return stream.read(source.MAX_BYTES + 1)


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def yaml_files(folder: pathlib.Path) -> list[str]:
    """The names of the YAML files in a folder."""
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
        fix = "write cgspec: 1, or use the cgspec that the spec was written for"
        raise Unreadable(Finding("not-a-spec", message, ("cgspec",), place=place, fix=fix))
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


def load(
    path: pathlib.Path,
    *,
    shown: str,
    raw: bytes | str,
    overrides: Iterable[str] = (),
    variant: str | None = None,
    point: Iterable[tuple[str, int]] | None = None,
) -> Merged:
    """Reads a spec and merges all its layers.

    Args:
        path: the file; need not exist when ``raw`` was read elsewhere, but its folder is the default root.
        overrides: ``key=value`` texts of the command line.
        point: a point of the spec's sweep: dotted paths and the numbers of their values in the matrix.

    Raises:
        Unreadable: nothing can be said about the spec but the one finding that it carries.
    """
    path = pathlib.Path(os.path.abspath(path))
    document = source.read(raw, shown)
    loader = Loader(_declared_root(path, document))
    data = loader.load(path, document)
    merged = Merged(
        data, loader.sources, loader.findings, loader.root, document.text, loader.files, loader.dropped, loader.partial
    )
    if variant is not None:
        apply(merged, variant_overrides(merged, variant, document))
    for text in overrides:
        try:
            target, value = parse_override(text)
        except Unreadable as error:
            merged.findings.append(error.finding)
            continue
        apply(merged, [(target, value.data, Layer(value, target, (), text, COMMAND_LINE))])
    if point is not None:
        apply(merged, sweep_overrides(merged, point, document))
        merged.data.pop("sweep")
    return merged


def _declared_root(path: pathlib.Path, document: Document) -> pathlib.Path:
    """The folder that ``root`` names, or the file's own.

    Raises:
        Unreadable: it can be no folder's name.
    """
    root = document.data.get("root") if isinstance(document.data, dict) else None
    if not isinstance(root, str):
        return path.parent
    if "\0" in root or len(root) > MAX_PATH:
        message = f"root is no folder's name: {root[:40]!r}"
        raise Unreadable(Finding("bad-value", message, ("root",), place=document.locate(("root",))[0]))
    return pathlib.Path(os.path.normpath(path.parent / root))
