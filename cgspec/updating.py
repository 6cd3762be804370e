"""Writes observed values back into the spec's files, where failed expectations said theirs; nothing else is touched.

A value is spliced into the text between the marks of its node. It is not written where it came from elsewhere than a
file's own ``expect`` (the command line, a variant), where it stands behind an anchor or is a ``$`` value, where
comments stand inside it, where the file changed since it was read, or where the new text would say something else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from cgspec import source
from cgspec.diagnostics import Path as SpecPath
from cgspec.layers import COMMAND_LINE, Sources
from cgspec.loading import read_file
from cgspec.observing import Observed
from cgspec.record import Record
from cgspec.source import Document, Unreadable
from cgspec.writing import quoted


@dataclass(frozen=True)
class Update:
    """What became of one expectation.

    Attributes:
        what: the condition in words.
        file, line: where its value stands, where that is known.
        old, new: the text of the value; ``new`` is empty where it was not written, and ``why`` says why.
    """

    what: str
    file: str = ""
    line: int | None = None
    old: str = ""
    new: str = ""
    why: str = ""

    @property
    def written(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class _Edit:
    """One value in one file, at ``path``; it goes to ``at``, and the old one is ``start`` to ``end`` of the text."""

    update: Update
    document: Document
    path: SpecPath
    at: int
    start: int
    end: int

    def within(self, text: str) -> str:
        """A text that is the document's own up to ``end``, with the new value in it."""
        apart = " " if text[: self.at].endswith(":") else ""
        return text[: self.at] + apart + self.update.new + text[self.at : self.start] + text[self.end :]


class _No(Exception):
    """Why a value cannot be written."""


def update(sources: Sources, data: Mapping[str, Any], observed: Sequence[Observed]) -> list[Update]:
    """Writes what can be written; one Update per observation, in order.

    Args:
        sources, data: the layers and the merged raw data of the spec that was run.
    """
    planned = [_plan(sources, data, seen) for seen in observed]
    documents = {id(edit.document): edit.document for edit in planned if isinstance(edit, _Edit)}
    done: dict[int, Update] = {}
    for key, document in documents.items():
        edits = [edit for edit in planned if isinstance(edit, _Edit) and id(edit.document) == key]
        done |= {id(edit): told for edit, told in _write(document, edits)}
    return [done[id(plan)] if isinstance(plan, _Edit) else plan for plan in planned]


def settles(record: Record, updates: Sequence[Update]) -> bool:
    """Whether the spec now says what the run gave: everything that failed was written."""
    failed = sum(verdict.passed is False for verdict in record.expect)
    return record.failure is None and sum(update.written for update in updates) == failed


def _plan(sources: Sources, data: Mapping[str, Any], seen: Observed) -> _Edit | Update:
    place = sources.locate(seen.path)
    told = Update(seen.what, place.file if place else "", place.line if place else None)
    try:
        return _edit(sources, data, seen, told)
    except _No as reason:
        return replace(told, why=str(reason))


def _edit(sources: Sources, data: Mapping[str, Any], seen: Observed, told: Update) -> _Edit:
    if seen.why:
        raise _No(seen.why)
    document = _document(sources, seen.path)
    key, node = document.nodes(seen.path) or (None, None)
    assert key is not None and node is not None
    raw = _at(document.data, seen.path)
    if repr(raw) != repr(_at(data, seen.path)):
        raise _No("a part of it was said elsewhere")
    if _is_marked(raw):
        raise _No("it is a $ value; change it by hand")
    if id(node) in _shared(document) or document.text[node.start_mark.index :][:1] in ("&", "!"):
        raise _No("it stands behind an anchor or an alias; change it by hand")
    start, end = _span(document, node)
    if _has_comments(document, node, start, end):
        raise _No("comments stand inside it; change it by hand")
    told = replace(told, old=document.text[start:end], new=_in_style(seen.text, node))
    at, begin = _place(document.text, key, start) if _is_block(node) else (start, start)
    return _Edit(told, document, seen.path, at, begin, end)


def _document(sources: Sources, path: SpecPath) -> Document:
    """The file whose own ``expect`` says the value."""
    layer = sources.owner(path)
    if layer is None:
        raise _No("it is not written anywhere")
    if layer.document is None or layer.at:
        raise _No(f"it comes from {'the ' * (layer.origin == COMMAND_LINE)}{layer.origin}")
    return layer.document


def _at(data: Any, path: SpecPath) -> Any:
    for part in path:
        data = data[part]
    return data


def _is_marked(raw: Any) -> bool:
    """Whether a ``$`` in it stands for something."""
    if isinstance(raw, dict):
        return any(_is_marked(key) or _is_marked(value) for key, value in raw.items())
    if isinstance(raw, list):
        return any(map(_is_marked, raw))
    return isinstance(raw, str) and "$" in raw.replace("$$", "")


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from (key, value)
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _shared(document: Document) -> set[int]:
    """The ids of nodes that stand behind an anchor which is used, or that hold an alias."""
    known: dict[int, yaml.Node] = {}
    twice: list[yaml.Node] = []
    holders: dict[int, list[int]] = {}
    stack = [document.root] if document.root is not None else []
    while stack:
        node = stack.pop()
        for child in _children(node):
            holders.setdefault(id(child), []).append(id(node))
            if id(child) in known:
                twice.append(child)
            else:
                known[id(child)] = child
                stack.append(child)
    return _below(twice) | _above([id(node) for node in twice], holders)


def _below(nodes: list[yaml.Node]) -> set[int]:
    found: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found.add(id(node))
            stack.extend(_children(node))
    return found


def _above(ids: list[int], holders: Mapping[int, list[int]]) -> set[int]:
    found: set[int] = set()
    stack = list(ids)
    while stack:
        for holder in holders.get(stack.pop(), ()):
            if holder not in found:
                found.add(holder)
                stack.append(holder)
    return found


def _leaves(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.ScalarNode) or not node.value:
        yield node
    for child in _children(node):
        yield from _leaves(child)


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def _place(text: str, key: yaml.Node, start: int) -> tuple[int, int]:
    """Where a value goes that now fits on its key's line, and from where on the lines go that it was on."""
    at = text.index(":", key.end_mark.index) + 1
    return at, at + len(text[at:start].rstrip())


def _span(document: Document, node: yaml.Node) -> tuple[int, int]:
    """The characters of a value; a block's end mark is behind the comments that follow it."""
    start = node.start_mark.index
    return start, start + len(document.text[start : _end(node)].rstrip())


def _end(node: yaml.Node) -> int:
    return max(map(_end, _children(node))) if _is_block(node) else int(node.end_mark.index)


def _has_comments(document: Document, node: yaml.Node, start: int, end: int) -> bool:
    """Whether a ``#`` between its leaves, or in the head of a block text, begins a comment."""
    text = document.text
    if isinstance(node, yaml.ScalarNode):
        return node.style in ("|", ">") and "#" in text[start:end].partition("\n")[0]
    gaps, at = [], start
    for leaf in _leaves(node):
        gaps.append(text[at : leaf.start_mark.index])
        if isinstance(leaf, yaml.ScalarNode) and leaf.style in ("|", ">"):
            gaps.append(text[leaf.start_mark.index : leaf.end_mark.index].partition("\n")[0])
        at = leaf.end_mark.index
    return any("#" in gap for gap in [*gaps, text[at:end]])


def _in_style(text: str, node: yaml.Node) -> str:
    """A word in the quotes that the old value had."""
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if style not in ("'", '"') or text[:1] == '"' or not isinstance(source.read(text, "").data, str):
        return text
    return quoted(text) if style == '"' else f"'{text}'"


def _write(document: Document, edits: Sequence[_Edit]) -> Iterator[tuple[_Edit, Update]]:
    """Splices the edits, the last one first, and writes the file."""
    text, data, good = document.text, document.data, []
    for edit in sorted(edits, key=lambda edit: -edit.start):
        trial, wanted = edit.within(text), _with(data, edit.path, source.read(edit.update.new, "").data)
        if _says(document, trial, wanted):
            text, data = trial, wanted
            good.append(edit)
        else:
            yield edit, _not(edit, "the file would say something else; change it by hand")
    trouble = _replace(document, text) if good else ""
    for edit in good:
        yield edit, _not(edit, trouble) if trouble else edit.update


def _with(data: Any, path: SpecPath, value: Any) -> Any:
    """The data with the value at a path replaced, without changing it."""
    if not path:
        return value
    if isinstance(data, list):
        return [_with(item, path[1:], value) if n == path[0] else item for n, item in enumerate(data)]
    return {key: _with(item, path[1:], value) if key == path[0] else item for key, item in data.items()}


def _not(edit: _Edit, why: str) -> Update:
    return replace(edit.update, new="", why=why)


def _says(document: Document, text: str, wanted: Any) -> bool:
    try:
        found = source.read(text, document.file)
    except Unreadable:
        return False
    return len(found.findings) == len(document.findings) and repr(found.data) == repr(wanted)


def _replace(document: Document, text: str) -> str:
    """Writes a file whole, unless it changed; what keeps it from being written, or the empty string."""
    path = Path(os.path.realpath(document.file))
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        before = read_file(path)
        if source.read(before, document.file).text != document.text:
            return "the file was changed since it was read"
        new.write_bytes(_encoded(text, before))
        shutil.copymode(path, new)
        if read_file(path) != before:
            return "the file was changed since it was read"
        os.replace(new, path)
    except (OSError, ValueError, Unreadable) as error:
        return f"the file cannot be written: {getattr(error, 'strerror', None) or error}"
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
    return ""


def _encoded(text: str, before: bytes) -> bytes:
    """The text in the encoding that the file had, with its byte order mark."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8")):
        if before.startswith(mark):
            return mark + text.encode(encoding)
    return text.encode("utf-8")
