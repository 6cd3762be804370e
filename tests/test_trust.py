"""What a spec may import: its own files, its project, cgspec, and what a person has allowed elsewhere than in YAML."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from cgspec.graph import ClassRef
from cgspec.trust import Trust


def of_file(file: str, name: str = "Stage") -> ClassRef:
    return ClassRef("cgspec_user.x", name, file)


def of_module(module: str, name: str = "Stage") -> ClassRef:
    return ClassRef(module, name, None)


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A project with a package, a spec folder and a virtual environment, all on ``sys.path``."""
    installed = tmp_path / "proj" / ".venv" / "lib" / "python3" / "site-packages"
    for path in (
        "proj/pkg/mod.py",
        "proj/pkg/__init__.py",
        "proj/specs/model.py",
        "proj/space/part.py",
        "other/away.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("class Stage: ...\nfrom os import system\n")
    installed.mkdir(parents=True)
    (installed / "thirdparty.py").write_text("class Stage: ...\n")
    (tmp_path / "proj" / ".venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "proj" / "pyproject.toml").write_text("")
    for folder in (installed, tmp_path / "proj", tmp_path / "other"):
        monkeypatch.syspath_prepend(str(folder))
    return tmp_path / "proj"


def test_files_below_the_root_are_allowed(project: pathlib.Path) -> None:
    trust = Trust.for_root(project / "specs")
    assert trust.refuses(of_file("model.py")) is None
    assert trust.refuses(of_file("not/there/yet.py")) is None


@pytest.mark.parametrize("file", ["../pkg/mod.py", "a/../../pkg/mod.py", "/etc/passwd.py", "link.py", "dir/mod.py"])
def test_files_that_lead_out_of_the_root_are_refused(project: pathlib.Path, file: str) -> None:
    (project / "specs" / "link.py").symlink_to(project / "pkg" / "mod.py")
    (project / "specs" / "dir").symlink_to(project / "pkg")
    reason = Trust.for_root(project / "specs").refuses(of_file(file))
    assert reason and "outside the spec's folder" in reason
    assert ("by a symlink" in reason) == (file in ("link.py", "dir/mod.py"))


def test_odd_paths_are_refused_without_raising(project: pathlib.Path) -> None:
    (project / "specs" / "loop.py").symlink_to("loop.py")
    trust = Trust.for_root(project / "specs")
    assert trust.refuses(of_file("a\0b.py"))
    trust.refuses(of_file("loop.py"))
    trust.refuses(of_file("x" * 9_000))


def test_a_link_to_the_root_itself_is_no_way_out(project: pathlib.Path) -> None:
    (project / "again").symlink_to(project / "specs")
    assert Trust.for_root(project / "again").refuses(of_file("model.py")) is None


def test_an_environment_below_the_root_is_not_the_users_own(project: pathlib.Path) -> None:
    reason = Trust.for_root(project).refuses(of_file(".venv/lib/python3/site-packages/thirdparty.py"))
    assert reason and "installed package" in reason


@pytest.mark.parametrize("module", ["pkg", "pkg.mod", "space.part", "space", "cgspec", "cgspec.trust"])
def test_modules_of_the_project_and_cgspecs_own_are_allowed(project: pathlib.Path, module: str) -> None:
    assert Trust.for_root(project / "specs").refuses(of_module(module)) is None


def test_what_a_trusted_module_imports_may_be_named(project: pathlib.Path) -> None:
    assert Trust.for_root(project / "specs").refuses(of_module("pkg.mod", "system")) is None


@pytest.mark.parametrize("module, words", [
    ("subprocess", "belongs to Python itself"), ("os", "belongs to Python itself"), ("sys", "belongs to Python itself"),
    ("builtins", "belongs to Python itself"), ("os.path", "not found"), ("thirdparty", "outside this project"),
    ("away", "outside this project"), ("torch.nn", "outside this project"), ("pkg.nothing", "not found"),
    ("", "not found"), ("pkg..mod", "not found"), (".pkg", "not found"), ("cgspecial", "not found"),
])  # fmt: skip
def test_other_modules_are_refused_with_the_way_to_allow_them(project: pathlib.Path, module: str, words: str) -> None:
    reason = Trust.for_root(project / "specs").refuses(of_module(module))
    assert reason and words in reason
    assert f"--allow-import {module}" in reason and str(project / "pyproject.toml") in reason


def test_the_project_ends_at_the_nearest_marker(project: pathlib.Path) -> None:
    (project / "specs" / ".git").mkdir()
    trust = Trust.for_root(project / "specs")
    assert trust.project == project / "specs"
    assert trust.refuses(of_module("pkg.mod")) is not None


def test_without_a_project_only_the_root_is_trusted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "beside.py").write_text("class Stage: ...")
    trust = Trust(tmp_path)
    assert trust.refuses(of_module("beside")) is None
    assert trust.refuses(of_module("json")) == (
        "json belongs to Python itself, so a spec may not import it; if it is meant to, say --allow-import json"
    )


def test_patterns_of_the_command_line_and_of_the_project_allow(project: pathlib.Path) -> None:
    (project / "pyproject.toml").write_text('[tool.cgspec]\nallow-import = ["torch.*", "thirdparty"]\n')
    trust = Trust.for_root(project / "specs", ["subproc*"])
    assert [trust.refuses(of_module(name)) for name in ("torch.nn", "thirdparty", "subprocess")] == [None] * 3
    assert trust.refuses(of_module("torch")) is not None
    assert trust.refuses(of_module("Thirdparty")) is not None
    assert trust.patterns == ("subproc*", "torch.*", "thirdparty")


@pytest.mark.parametrize("text, words", [
    ("[tool.cgspec\n", "cannot be read"), ("[tool.cgspec]\nallow-import = 'torch'\n", "no list of strings"),
    ("[tool.cgspec]\nallow-import = [1]\n", "no list of strings"), ("[tool]\ncgspec = 3\n", "cgspec is no table"),
    ("tool = []\n", "tool is no table"), ("\0", "cannot be read"), ("a = " + "[" * 50_000, "cannot be read"),
])  # fmt: skip
def test_a_malformed_project_file_is_a_sentence(project: pathlib.Path, text: str, words: str) -> None:
    (project / "pyproject.toml").write_text(text)
    trust = Trust.for_root(project / "specs")
    assert words in trust.problem and "\n" not in trust.problem and trust.patterns == ()
    assert trust.refuses(of_file("model.py")) is None
    reason = trust.refuses(of_module("torch"))
    assert reason and trust.problem in reason


def test_a_project_file_that_is_not_utf8_is_a_sentence(project: pathlib.Path) -> None:
    (project / "pyproject.toml").write_bytes(b"name = '\xff'\n")
    assert "cannot be read" in Trust.for_root(project / "specs").problem


def test_names_that_reach_into_python_are_refused(project: pathlib.Path) -> None:
    trust = Trust.for_root(project / "specs")
    for name in ("__builtins__.exec", "Stage.__class__", "Stage.__init__.__globals__"):
        assert "Python's own" in (trust.refuses(of_file("model.py", name)) or "")


def test_nothing_is_imported_to_find_out(project: pathlib.Path) -> None:
    (project / "pkg" / "__init__.py").write_text("raise SystemExit(3)")
    before = set(sys.modules)
    assert Trust.for_root(project / "specs").refuses(of_module("pkg.mod")) is None
    assert "pkg" not in set(sys.modules) - before


def test_a_root_that_the_spec_says_opens_neither_python_nor_what_is_installed(tmp_path):
    standard = pathlib.Path(os.__file__).parent
    for root, ref in (
        (standard, ClassRef("cgspec_user.subprocess", "Popen", "subprocess.py")),
        (pathlib.Path("/"), ClassRef("cgspec_user.x", "Popen", f"{standard}/subprocess.py".lstrip("/"))),
        (standard, ClassRef("subprocess", "Popen", None)),
        (standard.parent, ClassRef("json", "JSONEncoder", None)),
    ):
        assert Trust.for_root(root, declared=True).refuses(ref) is not None
    (tmp_path / "model.py").write_text("class Stage: ...\n")
    assert Trust.for_root(tmp_path, declared=True).refuses(ClassRef("cgspec_user.model", "Stage", "model.py")) is None
