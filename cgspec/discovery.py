"""Finds the specs in a folder."""

from __future__ import annotations

import os

from cgspec.errors import UsageError

SKIPPED = frozenset({"runs", "node_modules", "__pycache__", "venv", "build", "dist"})
"""Folders that hold no checked-in specs, beside those that begin with a dot."""


def specs_in(path: str) -> list[str]:
    """The file itself, or every spec in a folder and below, sorted: YAML files with ``cgspec:`` at the top.

    Raises:
        UsageError: a folder without a spec.
    """
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        names = sorted(name for name in files if name.endswith((".yaml", ".yml")))
        found += [file for file in (os.path.join(folder, name) for name in names) if _is_spec(file)]
    if not found:
        raise UsageError(f"there is no spec in {path}: a spec is a YAML file that says `cgspec: 1`")
    return found


def _is_spec(file: str) -> bool:
    try:
        with open(file, "rb") as stream:
            return any(line.startswith((b"cgspec:", b'"cgspec"', b"\xef\xbb\xbfcgspec:")) for line in stream)
    except OSError:
        return False
