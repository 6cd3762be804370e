"""Reads YAML text once, strictly (YAML 1.2 core scalars, no tags, no duplicate keys), and knows where all of it is.

Paths come first, lines last: a ``Document`` holds plain data and the node tree; ``locate`` turns a path into a place
only when something is shown.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from cgspec.diagnostics import Finding, Path, Place, Related

MAX_DEPTH = 60
MAX_ALIASED = 100_000
MAX_DIGITS = 300
MAX_BYTES = 32 * 2**20
MAX_NODES = 300_000
"""Values in one file: 10,000 tasks written out have about 100,000."""

_PLAIN, _QUOTED = "?", "q"
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_INT = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
_WORDS |= {sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
_WORDS |= {word: float("nan") for word in (".nan", ".NaN", ".NAN")}


class _TooMany(yaml.YAMLError):
    """A text with more values than can be looked at in time."""


class _Loader(yaml.CLoader):
    """Composes without resolving: a tag that is neither mark was written in the file."""

    nodes = 0

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _TooMany
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else _QUOTED


class Unreadable(Exception):
    """Carries the finding that keeps a text from being read at all."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass
class Document:
    """One YAML text.

    Attributes:
        file: as shown to the user.
        text: without a byte order mark.
        data: plain data; maps are dicts in file order.
        findings: duplicate keys, tags and the like, already with their places.
        dropped: the values of duplicate keys, which ``data`` does not hold.
    """

    file: str
    text: str
    root: yaml.Node | None
    data: Any = None
    findings: list[Finding] = field(default_factory=list)
    dropped: list[Any] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _maps: dict[int, dict[Any, tuple[yaml.Node, yaml.Node]]] = field(default_factory=dict)

    def locate(
        self, path: Path, *, on: Literal["key", "value"] = "value", span: tuple[int, int] | None = None
    ) -> tuple[Place, int]:
        """The place of a path, or of its deepest part that is there, and how many of its parts were found."""
        key, node, found = self._walk(path)
        exact = found == len(path)
        if key is not None and (on == "key" or not exact or _is_block(node)):
            return self._place(key), found
        if exact and span is not None and isinstance(node, yaml.ScalarNode):
            return self._place_within(node, span), found
        return (self._place(node) if node is not None else Place(self.file, 1, 1, 2, self.line(1))), found

    def nodes(self, path: Path) -> tuple[yaml.Node | None, yaml.Node] | None:
        """The key's node, where there is a key, and the value's at a path; None where not all of the path is there."""
        key, node, found = self._walk(path)
        return (key, node) if node is not None and found == len(path) else None

    def line(self, number: int) -> str:
        """The text of a line, from 1."""
        starts = self._starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n\x85\u2028\u2029")

    def place_at(self, index: int, length: int = 1) -> Place:
        """The place of characters in the text; a range over several lines is cut at the first line's end."""
        starts = self._starts()
        number = bisect.bisect_right(starts, index)
        column = index - starts[number - 1] + 1
        excerpt = self.line(number)
        end = min(column + max(length, 1), max(len(excerpt) + 1, column + 1))
        return Place(self.file, number, column, end, excerpt)

    def _starts(self) -> list[int]:
        if not self._lines:
            self._lines = [0, *(match.end() for match in _BREAK.finditer(self.text))]
        return self._lines

    def _walk(self, path: Path) -> tuple[yaml.Node | None, yaml.Node | None, int]:
        """The key and the node of a path's deepest part; one thing stands for a list of one, so its 0 is the thing."""
        key, node = None, self.root
        for depth, part in enumerate(path):
            if isinstance(node, yaml.MappingNode):
                pair = self._pairs(node).get(_hashable(part))
                if pair is None and part != 0:
                    return key, node, depth
                key, node = pair or (key, node)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
                key, node = None, node.value[part]
            elif part != 0 or not isinstance(node, yaml.ScalarNode):
                return key, node, depth
        return key, node, len(path)

    def _pairs(self, node: yaml.MappingNode) -> dict[Any, tuple[yaml.Node, yaml.Node]]:
        if id(node) not in self._maps:
            own: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
            merged: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
            for key, value in node.value:
                if _is_merge(key):
                    for other in _merged_nodes(value):
                        merged = {**self._pairs(other), **merged}  # as in the data, the first one that has a key wins
                elif isinstance(key, yaml.ScalarNode):
                    own.setdefault(_hashable(_scalar(key)), (key, value))
            self._maps[id(node)] = {**merged, **own}
        return self._maps[id(node)]

    def _place(self, node: yaml.Node) -> Place:
        start, end = node.start_mark.index, node.end_mark.index
        return self.place_at(start, len(self.text[start:end].rstrip()))

    def _place_within(self, node: yaml.ScalarNode, span: tuple[int, int]) -> Place:
        """Finds the span's text in the raw text of the scalar, counting its earlier occurrences."""
        wanted, before = node.value[span[0] : span[1]], node.value[: span[0]]
        start, end = node.start_mark.index, node.end_mark.index
        if wanted:
            at = start
            for _ in range(len(re.findall(f"(?={re.escape(wanted)})", before + wanted))):
                found = self.text.find(wanted, at, end)
                if found < 0:
                    return self._place(node)
                at = found + 1
            return self.place_at(at - 1, len(wanted))
        return self._place(node)


def read(raw: bytes | str, file: str) -> Document:
    """Reads a text.

    Raises:
        Unreadable: it is no YAML, not text, more than one document, or would expand without end.
    """
    text = _decode(raw, file) if isinstance(raw, bytes) else raw.removeprefix("\ufeff")
    document = Document(file, text, None)
    document.root = _compose(document)
    if document.root is not None:
        document.data = _Converter(document).convert(document.root)
    return document


def _decode(raw: bytes, file: str) -> str:
    if len(raw) > MAX_BYTES:
        message = f"{file} has {len(raw) / 2**20:.0f} MiB; a spec has at most {MAX_BYTES // 2**20}"
        raise Unreadable(Finding("not-a-spec", message, place=Place(file, 0, 0, 0, "")))
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"{file} is not UTF-8 text: byte 0x{raw[error.start]:02x} in line {line}"
        place = Place(file, line, 1, 2, "")
        raise Unreadable(Finding("syntax", message, place=place, fix="save the file as UTF-8")) from None


def _compose(document: Document) -> yaml.Node | None:
    try:
        loader = _Loader(document.text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except _TooMany:
        place = Place(document.file, 1, 1, 2, document.line(1))
        raise Unreadable(Finding("syntax", f"it has more than {MAX_NODES} values", place=place)) from None
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_syntax_finding(document, error)) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", 0) or 0
        said = str(getattr(error, "reason", error)).splitlines()[0]
        place = document.place_at(min(position, len(document.text)))
        raise Unreadable(Finding("syntax", f"this is not YAML: {said}", place=place)) from None
    except UnicodeEncodeError as error:
        place = document.place_at(error.start)
        raise Unreadable(Finding("syntax", "this is not YAML: a lone surrogate is no character", place=place)) from None


def _syntax_finding(document: Document, error: yaml.MarkedYAMLError) -> Finding:
    mark, begun = error.problem_mark or error.context_mark, error.context_mark
    said = ", ".join(part for part in (error.context, error.problem) if part)
    place = document.place_at(min(mark.index, len(document.text))) if mark else Place(document.file, 1, 1, 2, "")
    related: tuple[Related, ...] = ()
    if mark and begun and begun.index < mark.index and error.context and error.context.startswith("while parsing"):
        noun = "list" if "sequence" in error.context else "map" if "mapping" in error.context else "text"
        related = (Related(f"the {noun} begins here", place=document.place_at(begun.index)),)
    return Finding("syntax", _syntax_message(said), place=place, fix=_syntax_fix(said, place), related=related)


def _syntax_message(said: str) -> str:
    if "expected a single document" in said or "but found another document" in said:
        return "a file holds one spec: this is a second document"
    return f"this is not YAML: {said}"


_SYNTAX_FIXES = {
    "mapping values are not allowed": "quote the text if it holds `: `, or check the indentation of this line",
    "flow mapping": "close the map with }, or put a comma between its entries",
    "flow sequence": "close the list with ], or put a comma between its entries",
    "did not find expected key": "the keys of one map begin in one column: check the indentation of this line",
    "undefined alias": "an alias (*name) names an anchor (&name) above it; quote the text if it is none",
    "another document": "write one file for each spec; what differs a little are `variants`",
    "found unexpected end of stream": "close the quotes",
    "found character that cannot start": "quote the text",
}
"""Words of the parser to what helps."""


def _syntax_fix(said: str, place: Place) -> str:
    if "\t" in place.excerpt[: place.column]:
        return "indent with spaces: YAML allows no tabs here"
    return next((fix for words, fix in _SYNTAX_FIXES.items() if words in said), "")


def _hashable(part: Any) -> Any:
    return (type(part).__name__, part) if isinstance(part, (bool, float)) else part


def _is_block(node: yaml.Node | None) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.tag == _PLAIN and key.value == "<<"


def _merged_nodes(value: yaml.Node) -> list[yaml.MappingNode]:
    """The maps that a merge key names, the strongest first."""
    nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
    return [node for node in nodes if isinstance(node, yaml.MappingNode)]


def _scalar(node: yaml.ScalarNode) -> Any:
    """The scalar by YAML 1.2's core schema; a number that is too long stays text (the converter reports it)."""
    text = node.value
    if node.tag != _PLAIN:
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first.isdigit() or first in "+-.":
        if len(text) > MAX_DIGITS:
            return text
        if _INT.match(text):
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if _FLOAT.match(text):
            return float(text)
    return text


class _Converter:
    """Turns nodes into plain data; shared nodes (aliases) become shared data."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.done: dict[int, tuple[Any, int]] = {}
        self.open: set[int] = set()
        self.aliased = 0

    def convert(self, node: yaml.Node) -> Any:
        return self._convert(node, 0)[0]

    def _convert(self, node: yaml.Node, depth: int) -> tuple[Any, int]:
        """The data, and how many nodes it has when aliases are written out."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag not in (_PLAIN, _QUOTED):
                self._report_tag(node)
            value = _scalar(node)
            if type(value) is str and len(value) > MAX_DIGITS and node.tag == _PLAIN and _INT.match(value):
                self._report("bad-value", f"a number of {len(value)} digits is too long", node)
            return value, 1
        known = self.done.get(id(node))
        if known is not None:
            self.aliased += known[1]
            if self.aliased > MAX_ALIASED:
                raise self._fatal("syntax", f"its aliases expand to more than {MAX_ALIASED} values", node)
            return known
        if id(node) in self.open:
            message, fix = "an alias stands inside its own anchor: it would expand without end", "remove the alias"
            raise self._fatal("syntax", message, node, fix)
        if depth > MAX_DEPTH:
            raise self._fatal("syntax", f"it is nested deeper than {MAX_DEPTH} levels", node)
        if node.tag != _QUOTED:
            self._report_tag(node)
        self.open.add(id(node))
        result = self._map(node, depth + 1) if isinstance(node, yaml.MappingNode) else self._list(node, depth + 1)
        self.open.discard(id(node))
        self.done[id(node)] = result
        return result

    def _list(self, node: yaml.Node, depth: int) -> tuple[list[Any], int]:
        pairs = [self._convert(item, depth) for item in node.value]
        return [value for value, _ in pairs], 1 + sum(size for _, size in pairs)

    def _map(self, node: yaml.MappingNode, depth: int) -> tuple[dict[Any, Any], int]:
        data: dict[Any, Any] = {}
        own: dict[Any, yaml.Node] = {}
        total = 1
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                total += self._merge(value_node, data, own, depth)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._report("wrong-type", "a key is a word or a number, not a list or a map", key_node)
                continue
            if key_node.tag not in (_PLAIN, _QUOTED):
                self._report_tag(key_node)
            key = _scalar(key_node)
            value, size = self._convert(value_node, depth)
            total += size + 1
            if key in own:
                first = Related("it is here first", place=self.document._place(own[key]))
                fix = "remove one of the two, or give one another name"
                self._report("duplicate-key", f"{key} stands here twice", key_node, fix=fix, related=first)
                self.document.dropped.append(value)
                continue
            own[key] = key_node
            data[key] = value
        return data, total

    def _merge(self, value_node: yaml.Node, data: dict[Any, Any], own: dict[Any, yaml.Node], depth: int) -> int:
        value, size = self._convert(value_node, depth)
        maps = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in maps):
            self._report("wrong-type", "<< takes a map, or a list of maps (usually aliases)", value_node)
            return size
        for item in maps:
            for key, inner in item.items():
                data.setdefault(key, inner)
        return size

    def _report_tag(self, node: yaml.Node) -> None:
        fix = "remove the tag; text is quoted, and what is not literal is a map with a $key"
        self._report("tag", f"cgspec knows no tags: {_tag(node)}", node, fix=fix)

    def _report(
        self, code: str, message: str, node: yaml.Node, *, fix: str = "", related: Related | None = None
    ) -> None:
        place = self.document._place(node)
        more = (related,) if related else ()
        self.document.findings.append(Finding(code, message, place=place, fix=fix, related=more))

    def _fatal(self, code: str, message: str, node: yaml.Node, fix: str = "") -> Unreadable:
        return Unreadable(Finding(code, message, place=self.document._place(node), fix=fix))


def _tag(node: yaml.Node) -> str:
    return str(node.tag).replace("tag:yaml.org,2002:", "!!")
