"""Every code has a case: ``cases/<code>.yaml``, or ``<code>-<variant>.yaml``, and the text that ``check`` prints of it.

A case may begin with the command that it is checked by: ``# $ cgspec check x.yaml run.iterations=3``. Written anew by
``python tests/test_cases.py``; read what it wrote before you commit it.
"""

from __future__ import annotations

import pathlib
import shlex

import pytest
from click.testing import CliRunner
from codes import codes

from cgspec import explaining
from cgspec.checking import check
from cgspec.cli import cli
from cgspec.rules import running

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))
SEVERAL = {"missing-key-top": 2, "tag": 2}
"""Cases that show several findings of their code, and how many."""


def code_of(name: str) -> str:
    """The code of a case: the longest one that its name begins with."""
    return max((code for code in codes() if f"{name}-".startswith(f"{code}-")), key=len)


def output_of(name: str) -> str:
    """What the command line prints for a case, with the repository's own place left out."""
    head = (CASES / f"{name}.yaml").read_bytes().decode(errors="replace").partition("\n")[0]
    command = head.removeprefix("# $ cgspec ") if head.startswith("# $ ") else f"check {name}.yaml"
    result = CliRunner().invoke(cli, shlex.split(command), standalone_mode=False)
    assert result.exception is None, result.exception
    return result.stdout.replace(str(HERE.parent), "REPOSITORY")


@pytest.fixture(autouse=True)
def in_the_folder_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    monkeypatch.setattr(running, "_memory", lambda: 64 * 2**30)


@pytest.mark.parametrize("name", NAMES)
def test_a_case_prints_what_was_written_down(name: str) -> None:
    assert output_of(name) == (CASES / f"{name}.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_case_holds_nothing_but_its_code(name: str) -> None:
    text = (CASES / f"{name}.out").read_text(encoding="utf-8")
    found = [line.rsplit("[", 1)[1].rstrip("]") for line in text.splitlines() if line.endswith("]") and ": " in line]
    found = [code for code in found if code in codes()]
    assert found == [code_of(name)] * SEVERAL.get(name, 1)


def test_every_code_has_a_case() -> None:
    assert set(map(code_of, NAMES)) == codes()


def test_every_case_has_an_output_and_no_output_is_left_over() -> None:
    assert sorted(path.stem for path in CASES.glob("*.out")) == NAMES


def test_every_code_has_an_explanation() -> None:
    assert {item.code for item in explaining.every()} == codes()


def test_the_cases_differ_from_a_clean_spec_by_their_mistake_alone(tmp_path: pathlib.Path) -> None:
    text = (CASES / "unused-input.yaml").read_text(encoding="utf-8").replace(", y: 2", "")
    (tmp_path / "actors.py").write_text((CASES / "actors.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    assert check(tmp_path / "spec.yaml").findings == ()


def _write() -> None:
    import os

    os.chdir(CASES)
    running._memory = lambda: 64 * 2**30
    for name in NAMES:
        (CASES / f"{name}.out").write_text(output_of(name), encoding="utf-8")


if __name__ == "__main__":
    _write()
