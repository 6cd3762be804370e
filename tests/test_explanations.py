"""Every explanation's wrong spec has its code as its only finding, and its right spec has none."""

from __future__ import annotations

import pathlib
import re
import shlex
import shutil

import pytest
from codes import codes

from cgspec import explaining
from cgspec.checking import Checked, check
from cgspec.diagnostics import Finding
from cgspec.errors import UsageError
from cgspec.rules import running

EXPLAINED = pathlib.Path(__file__).parent / "explained"
EXPLANATIONS = explaining.every()
BESIDE = {
    "base.yaml": "cgspec: 1\ninputs: {x: 1}\n",
    "ring.yaml": "cgspec: 1\ninclude: [spec.yaml]\n",
    "broken.py": "class Stage(\n    pass\n",
}
"""Files that stand beside an example; its first line says so."""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    for file in EXPLAINED.glob("*.py"):
        shutil.copy(file, tmp_path)
    for name, text in BESIDE.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "_memory", lambda: 64 * 2**30)
    return tmp_path


def examples(item: explaining.Explanation) -> tuple[str, str]:
    """The wrong and the right spec."""
    wrong, right = re.findall(r"```yaml\n(.*?)```", item.text + "\n", re.DOTALL)
    return wrong, right


def checked(spec: str) -> Checked:
    """An example, checked as its first line says."""
    pathlib.Path("spec.yaml").write_text(spec, encoding="utf-8")
    head = spec.partition("\n")[0]
    words = shlex.split(head.removeprefix("# cgspec check ")) if head.startswith("# cgspec") else ["spec.yaml"]
    options = dict(zip(words[1::2], words[2::2], strict=False)) if "--" in head else {}
    return check(
        words[0],
        overrides=() if options else words[1:],
        variant=options.get("--variant"),
        allow_import=[options["--allow-import"]] if "--allow-import" in options else (),
    )


def shown(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in findings]


@pytest.mark.parametrize("item", EXPLANATIONS, ids=lambda item: item.code)
def test_the_wrong_example_has_that_code_and_no_other(item: explaining.Explanation, folder: pathlib.Path) -> None:
    found = checked(examples(item)[0]).findings
    assert [finding.code for finding in found] == [item.code], shown(found)


@pytest.mark.parametrize("item", EXPLANATIONS, ids=lambda item: item.code)
def test_the_right_example_is_clean(item: explaining.Explanation, folder: pathlib.Path) -> None:
    result = checked(examples(item)[1])
    assert result.findings == (), shown(result.findings)
    assert result.graph is not None


@pytest.mark.parametrize("item", EXPLANATIONS, ids=lambda item: item.code)
def test_an_explanation_begins_with_code_and_summary_and_says_more(item: explaining.Explanation) -> None:
    head, rest = item.text.split("\n\n", 1)
    assert head == f"# {item.code}: {item.summary}"
    assert 5 < len(item.summary) < 70
    prose = rest.partition("Wrong:")[0]
    assert len(prose.split()) >= 8
    assert max(map(len, item.text.splitlines())) <= 130


def test_explain_knows_every_code_and_offers_the_nearest() -> None:
    assert {item.code for item in EXPLANATIONS} == codes()
    assert explaining.explain("cycle").summary == "tasks that wait for each other"
    with pytest.raises(UsageError, match="did you mean unknown-actor"):
        explaining.explain("unknown-acter")
