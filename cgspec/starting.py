"""``cgspec init``: a starter spec with its actors."""

from __future__ import annotations

import pathlib
from importlib import resources

from cgspec.errors import UsageError


def write_starter(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the starter's files into a folder, which is made where it is missing.

    Raises:
        UsageError: one of the files is there already, or the folder cannot be written.
    """
    source = resources.files("cgspec") / "starter"
    files = sorted((item for item in source.iterdir() if item.name.endswith((".yaml", ".py"))), key=lambda f: f.name)
    targets = [folder / item.name for item in files]
    there = [str(target) for target in targets if target.exists()]
    if there:
        raise UsageError(f"{' and '.join(there)} would be overwritten; name another folder: cgspec init DIR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for item, target in zip(files, targets, strict=True):
            target.write_text(item.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {(error.strerror or str(error)).lower()}") from None
    return targets
