"""The spec after include, variants and overrides, as YAML or JSON, and where each of its values came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cgspec.checking import Checked
from cgspec.diagnostics import Path
from cgspec.writing import as_yaml


def data(checked: Checked) -> dict[str, Any]:
    """The spec as plain data that is a valid spec itself, wherever it is put: it says its ``root``."""
    return {"cgspec": 1, "name": checked.name, "root": str(checked.root), **_without_place(checked.data)}


def _without_place(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in ("cgspec", "name", "root", "include")}


def text(checked: Checked, *, as_json: bool) -> str:
    """The resolved spec."""
    shown = data(checked)
    return json.dumps(shown, indent=2, ensure_ascii=False) if as_json else as_yaml(shown).rstrip()


def origins(checked: Checked, *, as_json: bool) -> str:
    """Every value with its path and the place that said it: ``file:line``, or the command line."""
    found = {_dotted(path): (value, checked.sources.origin(path)) for path, value in _leaves(checked.data, ())}
    if as_json:
        listed = {path: {"value": value, "from": origin} for path, (value, origin) in found.items()}
        return json.dumps(listed, indent=2, ensure_ascii=False)
    return "\n".join(
        f"{path} = {json.dumps(value, ensure_ascii=False)}  # {origin}" for path, (value, origin) in found.items()
    )


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every scalar, and every list or map that is empty."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    else:
        yield path, value
