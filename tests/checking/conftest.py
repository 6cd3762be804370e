"""Every test of ``check`` has a folder of its own with the classes in it."""

from __future__ import annotations

import pathlib

import pytest
from check_cases import MODEL


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
