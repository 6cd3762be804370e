"""Strict YAML 1.2 with places: scalars, keys, aliases, encodings, and where each thing stands."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cgspec.diagnostics import Path
from cgspec.source import Unreadable, read


def value(text: str) -> Any:
    document = read(f"a: {text}\n", "s.yaml")
    assert document.findings == []
    return document.data["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("true", True),
        ("False", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-0.0", -0.0),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        ("+12", 12),
        ("1.2.3", "1.2.3"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("'1'", "1"),
        ('"true"', "true"),
        ("=", "="),
        ("٣", "٣"),
        ("<<", "<<"),
    ],
)
def test_a_plain_scalar_is_what_yaml_1_2_says(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_nan_is_a_number() -> None:
    assert math.isnan(value(".nan"))


def test_block_scalars_are_text() -> None:
    assert value("|\n  1\n  2\n") == "1\n2\n"
    assert value(">-\n  x\n  y\n") == "x y"


def finding(text: str) -> Any:
    (found,) = read(text, "s.yaml").findings
    return found


def test_a_duplicate_key_says_where_it_was_first() -> None:
    found = finding("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n")
    assert found.code == "duplicate-key"
    assert (found.place.line, found.place.column) == (5, 3)
    assert [(item.place.line, item.place.column) for item in found.related] == [(3, 3)]


def test_the_first_of_two_values_counts() -> None:
    assert read("a: 1\na: 2\n", "s.yaml").data == {"a": 1}


@pytest.mark.parametrize("tag", ["!!python/object:os.system", "!x", "!!str", "!!binary"])
def test_tags_are_refused(tag: str) -> None:
    assert finding(f"a: {tag} 1\n").code == "tag"


@pytest.mark.parametrize("text", ["a: 1\n---\nb: 2\n", "--- 1\n--- 2\n"])
def test_a_second_document_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="one spec"):
        read(text, "s.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [*a]\n", "without end"),
        ("a: {b: [1\n", "not YAML"),
        ("a:\n\t- 1\n", "not YAML"),
        ("a: " + "[" * 100 + "]" * 100, "deeper than"),
        ("a: *b\n", "not YAML"),
        ("a: \x07\n", "not YAML"),
    ],
)
def test_what_cannot_be_read_is_one_finding(text: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said) as caught:
        read(text, "s.yaml")
    assert caught.value.finding.place is not None


def test_aliases_that_expand_too_far_are_refused() -> None:
    lines = ["a0: &a0 [1, 2, 3]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(Unreadable, match="expand to more than"):
        read("\n".join(lines), "s.yaml")


def test_anchors_and_merge_keys_work() -> None:
    document = read("x-a: &a {p: 1, q: 2}\nb: {<<: *a, q: 3}\nc: {<<: [*a, {p: 9, r: 4}]}\nd: *a\n", "s.yaml")
    assert document.findings == []
    assert document.data["b"] == {"p": 1, "q": 3}
    assert document.data["c"] == {"p": 1, "q": 2, "r": 4}
    assert document.data["d"] == {"p": 1, "q": 2}


@pytest.mark.parametrize(
    "raw", ["é: 1\n".encode(), b"\xef\xbb\xbf\xc3\xa9: 1\n", "é: 1\n".encode("utf-16"), "é: 1\r\n".encode()]
)
def test_utf_8_and_utf_16_are_read_with_and_without_a_mark(raw: bytes) -> None:
    assert read(raw, "s.yaml").data == {"é": 1}


def test_other_encodings_are_refused_with_the_byte_and_the_line() -> None:
    with pytest.raises(Unreadable, match="byte 0xe9 in line 2"):
        read(b"a: 1\nb: \xe9\n", "s.yaml")


def test_numbers_that_are_too_long_are_findings() -> None:
    assert finding("a: " + "9" * 400).code == "bad-value"


TEXT = """\
tasks:
  send:
    call: sender.send
    in: {x: inputs.x, y: [one, two.*]}
    note: |
      first line
      second ${rows} line
  "quoted name": 1
list:
  - a
  - {b: "c.d.e"}
x: &anchor {deep: 1}
y: *anchor
"""


@pytest.mark.parametrize(
    ("path", "line", "column", "end"),
    [
        (("tasks", "send", "call"), 3, 11, 22),
        (("tasks", "send", "in", "x"), 4, 13, 21),
        (("tasks", "send", "in", "y", 1), 4, 32, 37),
        (("tasks", "send", "in"), 4, 9, 39),
        (("tasks", "send"), 2, 3, 7),
        (("tasks", "quoted name"), 8, 18, 19),
        (("list", 0), 10, 5, 6),
        (("list", 1, "b"), 11, 9, 16),
        (("y", "deep"), 12, 19, 20),
    ],
)
def test_a_path_is_located_in_blocks_flows_lists_and_aliases(path: Path, line: int, column: int, end: int) -> None:
    place, found = read(TEXT, "s.yaml").locate(path)
    assert (place.line, place.column, place.end_column, found) == (line, column, end, len(path))
    assert place.excerpt == TEXT.splitlines()[line - 1]


def test_a_key_is_located_when_it_is_meant() -> None:
    place, _ = read(TEXT, "s.yaml").locate(("tasks", "send", "in", "y"), on="key")
    assert (place.line, place.column, place.end_column) == (4, 23, 24)


def test_a_part_of_a_scalar_is_located_in_quotes_and_in_block_scalars() -> None:
    document = read(TEXT, "s.yaml")
    place, _ = document.locate(("list", 1, "b"), span=(2, 3))
    assert (place.line, place.column, place.end_column) == (11, 12, 13)
    text = document.data["tasks"]["send"]["note"]
    start = text.index("${rows}")
    place, _ = document.locate(("tasks", "send", "note"), span=(start, start + 7))
    assert (place.line, place.column, place.end_column) == (7, 14, 21)


def test_what_is_not_there_is_located_at_the_deepest_part_that_is() -> None:
    place, found = read(TEXT, "s.yaml").locate(("tasks", "send", "with", "k"))
    assert (place.line, place.column, found) == (2, 3, 2)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_whatever_ends_them(end: str) -> None:
    place, _ = read(end.join(["a: 1", "b: 2", "c: {d: 3}"]), "s.yaml").locate(("c", "d"))
    assert (place.line, place.column, place.excerpt) == (3, 8, "c: {d: 3}")


def test_columns_count_characters() -> None:
    place, _ = read("\U0001f600: {é: 1, z: 2}\n", "s.yaml").locate(("\U0001f600", "z"))
    assert (place.column, place.end_column) == (14, 15)
