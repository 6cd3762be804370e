"""Every finding has the place where its text stands."""

from __future__ import annotations

import pathlib

import pytest
from check_cases import SPEC, codes, marked, of, place, run, spec


def test_a_place_in_a_block_scalar() -> None:
    checked = of(spec(("inputs: {x: 1}", "inputs:\n  x: |\n    one\n    costs ${rows} here")))
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-var"], "spec.yaml:8:11", "${rows}")


def test_a_place_in_a_folded_expression() -> None:
    checked = of(spec(("inputs: {x: 1}", "inputs:\n  x:\n    $expr: >-\n      1 +\n      rows * 2")))
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-var"], "spec.yaml:9:7", "rows")


def test_a_place_in_a_flow_list_over_several_lines() -> None:
    checked = of(spec(("outputs: u", "outputs: [\n  u,\n  t, uu]")))
    assert (place(checked), marked(checked)) == ("spec.yaml:11:6", "uu")


def test_a_place_in_a_quoted_reference() -> None:
    checked = of(spec(("in: {x: t}", 'in: {x: "t.0"}')))
    assert (codes(checked), marked(checked)) == (["wrong-selectors"], "0")


def test_a_place_in_an_included_file_is_that_file_and_shows_the_include(folder: pathlib.Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "base.yaml").write_text("cgspec: 1\ninputs:\n  x: $rows\n  x: 2\n")
    checked = of(spec(("inputs: {x: 1}", "include: [parts/base.yaml]")))
    assert codes(checked) == ["unknown-var", "duplicate-key"]
    assert place(checked, 0) == "parts/base.yaml:3:6"
    assert place(checked, 1) == "parts/base.yaml:4:3"
    related = [(item.message, str(item.place)) for item in checked.findings[1].related]
    assert related[-1] == ("parts/base.yaml is included here", "spec.yaml:5:11")


def test_findings_of_the_main_file_come_first() -> None:
    pathlib.Path("base.yaml").write_text("cgspec: 1\ninputs: {x: $rows}\n")
    checked = of(spec(("inputs: {x: 1}", "include: base.yaml"), ("in: {x: t}", "in: {x: tt}")))
    assert [place(checked, number).split(":")[0] for number in range(2)] == ["spec.yaml", "base.yaml"]


def test_a_place_in_an_override_is_the_command_line() -> None:
    checked = of(SPEC, overrides=["run.iterations=many", "tasks.u.timeout=3", "runn.warmup=3"])
    assert codes(checked) == ["unknown-key", "wrong-type", "bad-unit"]
    found = {finding.code: finding.place for finding in checked.findings}
    assert found["wrong-type"] is not None
    assert found["wrong-type"].file == "command line"
    assert found["wrong-type"].excerpt == "run.iterations=many"
    assert [marked(checked, number) for number in (1, 2)] == ["many", "3"]


def test_a_reference_in_an_override_has_its_place_there() -> None:
    checked = of(SPEC, overrides=["tasks.u.in={x: tt}"])
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-reference"], "command line:1:16", "tt")
    assert checked.findings[0].place is not None
    assert checked.findings[0].place.excerpt == "tasks.u.in={x: tt}"


def test_a_place_in_a_variant_is_the_variant() -> None:
    checked = of(spec(more="variants:\n  fast: {run.iterations: many}\n"), variant="fast")
    assert (codes(checked), place(checked), marked(checked)) == (["wrong-type"], "spec.yaml:11:26", "many")


def test_a_place_behind_an_alias_and_a_merge_key_is_where_the_text_stands() -> None:
    text = spec(
        ("actors:\n", "x-base: &base {class: model.py:Stgae}\nactors:\n"), ("a: {class: model.py:Stage}", "a: *base")
    )
    assert place(of(text)) == "spec.yaml:2:32"
    merged = text.replace("a: *base", "a: {<<: *base, num_gpus: 1}")
    assert (place(of(merged)), marked(of(merged))) == ("spec.yaml:2:32", "Stgae")


def test_of_several_merged_maps_the_first_that_has_a_key_has_the_place() -> None:
    bases = "x-one: &one {class: model.py:Stgae}\nx-two: &two {class: model.py:Other}\n"
    merged = ("a: {class: model.py:Stage}", "a: {<<: [*one, *two]}")
    checked = of(spec(("actors:\n", f"{bases}actors:\n"), merged))
    assert (codes(checked), place(checked), marked(checked)) == (["unknown-class"], "spec.yaml:2:30", "Stgae")


def test_one_thing_that_stands_for_a_list_has_a_place_of_its_own() -> None:
    checked = of(spec(more="profile: {kind: torch, actors: [aa]}\n"))
    assert (codes(checked), marked(checked)) == (["profile-actor"], "aa")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_are_counted_with_any_line_end(end: str) -> None:
    checked = of(spec(("outputs: u", "outputs: uu")).replace("\n", end).encode())
    assert (place(checked), marked(checked)) == ("spec.yaml:9:10", "uu")


def test_a_byte_order_mark_is_no_column() -> None:
    checked = of(b"\xef\xbb\xbf" + spec(("cgspec: 1\n", "cgspec: 1\nnaem: x\n")).encode())
    assert place(checked) == "spec.yaml:2:1"
    assert place(of(b"\xef\xbb\xbfcgspec: 2\n")) == "spec.yaml:1:9"


def test_utf_16_is_read() -> None:
    assert place(of(spec(("outputs: u", "outputs: uu")).encode("utf-16"))) == "spec.yaml:9:10"


def test_carets_stand_under_what_is_meant_behind_tabs_and_wide_characters() -> None:
    of(spec(("outputs: u", "outputs:\t{日本: uu}")))
    lines = run("spec.yaml").stdout.splitlines()
    assert lines[1] == "    9 | outputs:\t{日本: uu}"
    assert lines[2] == "        " + " " * 8 + "\t" + " " * 7 + "^^"


def test_a_long_line_is_cut_around_the_caret() -> None:
    of(spec(("in: {x: t}}", f"in: {{x: t}}, with: {{scale: [{'1, ' * 500}1]}}, timeout: 3}}")))
    lines = run("spec.yaml").stdout.splitlines()
    column = lines[2].index("^")
    assert lines[1][column] == "3"
    assert len(lines[1]) < 200
