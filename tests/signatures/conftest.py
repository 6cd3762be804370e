"""Every test of the reader of signatures stands alone."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests import modules of the same names, and leave their folders on ``sys.path``."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("model", "pkg", "layers", "data", "actors")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(
        sys, "path", [folder for folder in sys.path if not (pathlib.Path(folder) / "model.py").exists()]
    )


@pytest.fixture
def imported(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A root whose files can be imported too."""
    sys.path.append(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
