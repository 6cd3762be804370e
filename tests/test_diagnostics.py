"""The formats of findings, from findings made by hand."""

from __future__ import annotations

import json
import re

import pytest

from cgspec.diagnostics import Finding, Place, Related, nearest, suggest
from cgspec.views.diagnostics import FORMATS, as_json, github, text

LINE = "  t: {call: a.inc, in: {x: inputs.x}}"
FIRST = Place("first.yaml", 3, 13, 18, LINE)
FULL = Finding(
    "unknown-method",
    "Counter has no method icn; did you mean inc?",
    ("tasks", "t", "call"),
    why="it is so",
    fix="do this",
    related=(Related("Counter is defined here", place=Place("actors.py", 9, 1, 15, "class Counter:")),),
    place=FIRST,
)
NOTE = Finding("nvtx-unrecorded", "nothing records it", ("profile", 0), "note", place=Place("b.yaml", 1, 1, 2, "x: y"))
NOWHERE = Finding("no-file", "gone.yaml cannot be read", place=Place("gone.yaml", 0, 0, 0, ""))


def test_text_shows_place_excerpt_caret_reason_fix_and_related_place() -> None:
    assert text([FULL]) == "\n".join(
        [
            "first.yaml:3:13: error: Counter has no method icn; did you mean inc? [unknown-method]",
            "    3 |   t: {call: a.inc, in: {x: inputs.x}}",
            "                    ^^^^^",
            "  why: it is so",
            "  fix: do this",
            "  see: actors.py:9:1: Counter is defined here",
            "",
            "1 error; cgspec explain unknown-method tells more",
        ]
    )


def test_text_counts_what_there_is_of_each_severity() -> None:
    assert text([FULL, FULL, NOTE]).splitlines()[-1] == "2 errors, 1 note; cgspec explain unknown-method tells more"


def test_a_file_without_lines_has_no_line_and_no_excerpt() -> None:
    assert text([NOWHERE]).splitlines()[0] == "gone.yaml: error: gone.yaml cannot be read [no-file]"
    assert json.loads(as_json([NOWHERE]))["findings"][0]["line"] is None


def test_no_findings_are_no_text() -> None:
    assert (text([]), github([]), json.loads(as_json([]))) == ("", "", {"findings": []})


def test_colour_adds_escapes_alone() -> None:
    coloured = text([FULL], colour=True)
    assert "\033[31merror\033[0m" in coloured
    assert re.sub(r"\033\[\d+m", "", coloured) == text([FULL])


def test_json_has_every_key_of_the_stable_shape() -> None:
    assert json.loads(as_json([FULL]))["findings"] == [
        {
            "code": "unknown-method",
            "severity": "error",
            "message": "Counter has no method icn; did you mean inc?",
            "file": "first.yaml",
            "line": 3,
            "column": 13,
            "path": ["tasks", "t", "call"],
            "why": "it is so",
            "fix": "do this",
            "related": [{"message": "Counter is defined here", "file": "actors.py", "line": 9, "column": 1}],
        }
    ]


ANNOTATION = re.compile(
    r"::(error|warning|notice) file=[^,:]+(,line=\d+,col=\d+,endColumn=\d+)?,title=[^,:]+::[^\n\r]+\Z"
)


@pytest.mark.parametrize("finding", [FULL, NOTE, NOWHERE], ids=lambda finding: finding.code)
def test_a_github_line_is_an_annotation(finding: Finding) -> None:
    assert ANNOTATION.match(github([finding]))


def test_github_lines_say_level_place_reason_and_fix() -> None:
    assert github([FULL, NOTE]).splitlines() == [
        "::error file=first.yaml,line=3,col=13,endColumn=18,title=unknown-method"
        "::Counter has no method icn; did you mean inc?%0Awhy: it is so%0Afix: do this",
        "::notice file=b.yaml,line=1,col=1,endColumn=2,title=nvtx-unrecorded::nothing records it",
    ]


def test_github_lines_escape_what_would_end_them() -> None:
    odd = Finding("syntax", "50% of\nit: a, b", place=Place("a,b:c%.yaml", 1, 1, 2, ""))
    assert github([odd]) == "::error file=a%2Cb%3Ac%25.yaml,line=1,col=1,endColumn=2,title=syntax::50%25 of%0Ait: a, b"


def test_carets_are_as_wide_as_what_is_meant() -> None:
    wide = Finding("x", "m", place=Place("f", 1, 3, 5, "é 日本 x"))
    assert text([wide]).splitlines()[2] == "        " + "  " + "^^^^"
    combining = Finding("x", "m", place=Place("f", 1, 4, 5, "e\u0301 x"))
    assert text([combining]).splitlines()[2] == "        " + "  " + "^"


def test_tabs_before_the_caret_stay_tabs() -> None:
    tabbed = Finding("x", "m", place=Place("f", 1, 3, 4, "a\tb"))
    assert text([tabbed]).splitlines()[2] == "        " + " \t" + "^"


def test_a_caret_at_the_end_of_a_line_is_shown() -> None:
    end = Finding("x", "m", place=Place("f", 1, 4, 5, "ab:"))
    assert text([end]).splitlines()[2] == "        " + "   " + "^"


def test_control_characters_and_long_words_are_not_printed_as_they_are() -> None:
    odd = Finding("x", f"\033[31m {'u' * 5000}", place=Place("f\033", 1, 1, 2, "\033"))
    shown = text([odd])
    assert "\033" not in shown
    assert max(map(len, shown.splitlines())) < 200


def test_the_table_of_formats_holds_all_of_them() -> None:
    assert sorted(FORMATS) == ["github", "json", "text"]


def test_the_nearest_name_is_offered_and_else_what_there_is() -> None:
    assert nearest("Sendr", ["receiver", "sender"]) == "sender"
    assert nearest("x", ["receiver", "sender"]) is None
    assert suggest("sendr", ["sender"], noun="actors") == "did you mean sender?"
    assert suggest("q", ["a", "b"], noun="actors") == "actors: a, b"
    assert suggest("q", [], noun="actors") == "there are no actors"
    assert suggest("q", map(str, range(100)), noun="tasks", most=3) == "tasks: 0, 1, 2, … (100 in all)"
