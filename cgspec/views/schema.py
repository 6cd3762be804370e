"""The language as JSON Schema, for editors; made from the models of ``spec``."""

from __future__ import annotations

from typing import Any

from cgspec.parsing import KEYS
from cgspec.spec import QUANTITY, Spec

_SHORT_FORMS: dict[str, dict[str, Any]] = {
    "TransportSpec": {"enum": ["auto", "accelerator", "nccl", "shm"]},
    "ProfileSpec": {"enum": ["none", "timeline", "torch", "nsight", "nvtx"]},
    "EngineSpec": {"enum": ["compiled", "direct", "local"]},
    "PayloadSpec": {"type": "string", "pattern": QUANTITY},
}
"""Models for which one word may stand."""
_LISTED = ("axis", "same_node", "profile", "include")
"""Keys at which one value may stand for a list of one."""


def schema() -> dict[str, Any]:
    """The schema of a spec, with ``$`` values wherever the language takes them."""
    made = Spec.model_json_schema(by_alias=True, mode="validation")
    for name, model in made.get("$defs", {}).items():
        _open(model)
        if name in _SHORT_FORMS:
            made["$defs"][name] = {"anyOf": [model, _SHORT_FORMS[name], *_marked()]}
    _open(made)
    made["patternProperties"] = {"^x-": {}}
    made["required"] = ["cgspec"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "cgspec"}


def _open(model: dict[str, Any]) -> None:
    """Lets each key of a model take the short forms and ``$`` values of the language."""
    for key, entry in model.get("properties", {}).items():
        model["properties"][key] = _opened(key, entry)


def _opened(key: str, entry: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {name: entry.pop(name) for name in ("description", "default") if name in entry}
    entry.pop("title", None)
    forms = entry.pop("anyOf", None) or ([entry] if entry else [])
    if not forms:
        return kept
    if key in _LISTED:
        forms = [*forms, *(form["items"] for form in forms if "items" in form)]
    return {**kept, "anyOf": [*map(_deep, forms), *_marked()]}


def _deep(form: dict[str, Any]) -> dict[str, Any]:
    """Lets the entries of a map or list of plain values be ``$`` values too."""
    for key in ("additionalProperties", "items"):
        inner = form.get(key)
        if isinstance(inner, dict) and inner and "$ref" not in inner:
            form = {**form, key: {"anyOf": [_deep(inner), *_marked()]}}
    return form


def _marked() -> list[dict[str, Any]]:
    """A var, text with vars, or a map with a ``$key``."""
    marks = [{"required": [key]} for key in KEYS]
    return [{"type": "string", "pattern": r"\$"}, {"type": "object", "anyOf": marks}]
