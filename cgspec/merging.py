"""The rules by which layers merge, and overrides of variants, the command line and sweeps upon the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cgspec import source
from cgspec.diagnostics import Finding, Path, Place, suggest
from cgspec.layers import COMMAND_LINE, Layer, Merged
from cgspec.source import Document, Unreadable

_GROWING = ("actors", "inputs", "tasks", "outputs", "metrics", "variants")
"""Sections in which an override may add an entry."""


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


def parse_override(text: str) -> tuple[Path, Document]:
    """A ``key=value`` of the command line: the path, and the value, read as YAML.

    Raises:
        Unreadable: it has no ``=``, or the value is no YAML.
    """
    key, equals, raw = text.partition("=")
    place = Place(COMMAND_LINE, 1, 1, len(text) + 1, text)
    if not equals or not key.strip():
        fix = "write e.g. run.iterations=3"
        raise Unreadable(Finding("bad-override", f"{text} is no override: it needs key=value", place=place, fix=fix))
    value = Place(COMMAND_LINE, 1, len(key) + 2, max(len(text), len(key) + 2) + 1, text)
    try:
        document = source.read(raw, COMMAND_LINE)
    except Unreadable as error:
        said = error.finding.message.removeprefix("this is not YAML: ")
        fix = error.finding.fix or f"write the value as in the file, e.g. {key}=3"
        raise Unreadable(
            Finding("bad-override", f"the value of {key} is no YAML: {said}", place=value, fix=fix)
        ) from None
    if document.findings:
        first = document.findings[0]
        raise Unreadable(Finding("bad-override", first.message, place=value, fix=first.fix))
    return split_path(key.strip()), document


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
    return place if not layer.text else Place(place.file, 1, 1, max(place.column - 1, 2), place.excerpt)


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


def sweep_overrides(
    merged: Merged, choice: Iterable[tuple[str, int]], document: Document
) -> Iterator[tuple[Path, Any, Layer]]:
    """The overrides of a sweep's point; each stands where the matrix gives its value."""
    matrix = merged.data["sweep"]["matrix"]
    for dotted, number in choice:
        inside: Path = ("sweep", "matrix", dotted, number)
        owner = _document_of(merged, inside) or document
        path = split_path(dotted)
        yield path, matrix[dotted][number], Layer(owner, path, inside, "", f"{owner.file} (sweep)")


def _document_of(merged: Merged, path: Path) -> Document | None:
    for layer in reversed(merged.sources.layers):
        if not layer.text and layer.document.locate(path)[1] == len(path):
            return layer.document
    return None
