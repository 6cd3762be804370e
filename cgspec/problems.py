"""What pydantic finds wrong with a spec, as findings in the user's words."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence, Set
from typing import Any

from pydantic import BaseModel

from cgspec import spec as language
from cgspec.diagnostics import Finding, Path, nearest, suggest
from cgspec.spec import Spec

_MODELS: dict[tuple[str, ...], tuple[type[BaseModel], str]] = {
    (): (Spec, "a spec"),
    ("actors", "*"): (language.ActorSpec, "an actor"),
    ("tasks", "*"): (language.TaskSpec, "a task"),
    ("tasks", "*", "transport"): (language.TransportSpec, "a transport"),
    ("tasks", "*", "payload"): (language.PayloadSpec, "a payload"),
    ("engine",): (language.EngineSpec, "engine"),
    ("engine", "timeouts"): (language.TimeoutsSpec, "timeouts"),
    ("cluster",): (language.ClusterSpec, "cluster"),
    ("setup", "*"): (language.SetupSpec, "a setup call"),
    ("run",): (language.RunSpec, "run"),
    ("profile",): (language.ProfileSpec, "a profile"),
    ("profile", "*"): (language.ProfileSpec, "a profile"),
    ("expect", "*"): (language.ExpectSpec, "an expectation"),
    ("expect", "*", "close"): (language.CloseSpec, "close"),
    ("sweep",): (language.SweepSpec, "a sweep"),
}


_NOUNS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a map",
    "list_type": "a list",
    "model_type": "a map",
    "model_attributes_type": "a map",
}


_ALSO = {
    "profile": "the name of a profiler, a map or a list",
    "transport": "a kind (accelerator, shm, auto) or a map",
    "engine": "a kind (compiled, direct, local) or a map",
}
"""Sections that may be a word, too."""

_SHAPES: dict[str | int, str] = {
    "actors": "write NAME: {class: file.py:Class} under actors",
    "inputs": "write NAME: value under inputs",
    "tasks": "write NAME: {call: actor.method, in: {parameter: inputs.x}} under tasks",
    "setup": "write - {call: actor.method}",
    "expect": "write - {output: NAME, equals: value}",
}
"""What the entries of a section look like."""

_EXAMPLES = {
    "actors": "actors: {name: {class: file.py:Class}}",
    "tasks": "tasks: {name: {call: actor.method, in: {parameter: inputs.x}}}",
    "class": "class: file.py:Class (relative to the file that says it) or package.module:Class",
    "kind": "kind, e.g. kind: torch for a profile, kind: accelerator for a transport",
}
"""What a key may look like that is missing."""


def findings_of(problems: list[Any], data: Any, lost: Set[Path]) -> list[Finding]:
    """One finding for each problem.

    Args:
        problems: ``ValidationError.errors()``.
        data: what was validated.
        lost: paths that were there and had to be left out, so that nothing is said about their absence.
    """
    found: dict[tuple[Path, str], Finding] = {}
    unknown = [real_path(problem["loc"], data) for problem in problems if problem["type"] == "extra_forbidden"]
    excused = {(*path[:-1], nearest(str(path[-1]), keys_of(path[:-1]))) for path in unknown} | lost
    for problem in problems:
        missing = problem["type"] == "missing"
        if missing and (*real_path(problem["loc"], data), problem["loc"][-1]) in excused:
            continue
        finding = _finding(problem, data)
        key = finding.path, f"{finding.code} {problem['loc'][-1] if missing else ''}"
        known = found.get(key)
        if known is None:
            found[key] = finding
        elif finding.code == "wrong-type" and finding.message != known.message:
            found[key] = _either(known, finding)
    return list(found.values())


def _either(first: Finding, second: Finding) -> Finding:
    """One finding for a key that may be of two types."""
    start, _, end = first.message.partition(", not ")
    other = second.message.partition(", not ")[0].split(" is ", 1)[-1]
    return Finding("wrong-type", f"{start} or {other}, not {end}", first.path)


def _finding(problem: Any, data: Any) -> Finding:
    kind, loc, path = problem["type"], problem["loc"], real_path(problem["loc"], data)
    name = _label(path)
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return _missing_key(path, str(loc[-1]))
    if loc and loc[-1] == "[key]":
        return Finding("wrong-type", f"a key is text here, not {str(loc[-2])[:60]!r}", path, on="key")
    if kind == "invalid_key":
        shown = "nothing" if problem["input"] is None else str(problem["input"]).lower()
        owner = path[:-1] if path and path[-1] == problem["input"] else path
        return Finding("unknown-key", f"{shown} is no key of {_model(owner)[1]}", (*owner, problem["input"]), on="key")
    if kind in _NOUNS:
        noun = _ALSO.get(str(path[-1]) if path else "", _NOUNS[kind]) if kind.startswith("model") else _NOUNS[kind]
        fix = _SHAPES.get(path[0], "") if path and len(path) < 3 else ""
        fix = fix or (_plain_word(problem["input"], ("true", "false")) if kind == "bool_type" else "")
        return Finding("wrong-type", f"{name} is {noun}, not {_show(problem['input'])}", path, fix=fix)
    if kind == "literal_error":
        choices = [part.strip().strip("'") for part in re.split(r",| or ", str(problem["ctx"]["expected"]))]
        return _unknown_choice(name, problem["input"], choices, path)
    if kind == "value_error":
        error = str(problem["ctx"]["error"])
        return Finding("bad-unit", f"{name}: {error}", path)
    return Finding("out-of-range", f"{name}: {_range_message(problem)}", path)


def _missing_key(path: Path, key: str) -> Finding:
    model, noun = _model(path)
    named = len(path) > 1 and isinstance(path[-1], str) and path[-2] in ("actors", "tasks")
    owner = f"{noun.split()[-1]} {path[-1]}" if named else noun
    fix = _EXAMPLES.get(key, "")
    if not fix:
        field_info = next((f for n, f in model.model_fields.items() if (f.alias or n) == key), None)
        fix = f"{key}: {field_info.description}" if field_info and field_info.description else ""
    return Finding("missing-key", f"{owner} needs {key}", path, on="key", fix=fix and f"add {fix}")


def _range_message(problem: Any) -> str:
    ctx = problem.get("ctx", {})
    shown = _show(problem["input"])
    if problem["type"] == "greater_than_equal":
        return f"{shown} is less than {ctx['ge']}, the least that is allowed"
    if problem["type"] == "less_than_equal":
        return f"{shown} is more than {ctx['le']}, the most that is allowed"
    return f"{problem['msg'][0].lower()}{problem['msg'][1:]}, and it is {shown}"


def _unknown_choice(name: str, value: Any, choices: list[str], path: Path) -> Finding:
    known = [{"True": "true", "False": "false"}.get(choice, choice) for choice in choices]
    offered = isinstance(value, str) and len(known) > 1
    offer = suggest(value, known, noun="it is one of") if offered else f"it is {' or '.join(known)}"
    return Finding("wrong-type", f"{name} cannot be {_show(value)}; {offer}", path, fix=_plain_word(value, known))


def _plain_word(value: Any, known: Sequence[str]) -> str:
    """What helps who writes a truth value as YAML 1.1 does, or as text."""
    if not isinstance(value, str) or not {"true", "false"} & {*known}:
        return ""
    if value.lower() in ("yes", "no", "on", "off"):
        return f"in YAML 1.2 {value} is text: write {' or '.join(known)}"
    return f"write {value.lower()} without quotes" if value.lower() in known else ""


def keys_of(path: Path) -> tuple[str, ...]:
    """The keys that the map at a path may have."""
    return _keys(_model(path)[0])


@functools.cache
def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _unknown_key(path: Path) -> Finding:
    noun = _model(path[:-1])[1]
    offer = suggest(str(path[-1]), keys_of(path[:-1]), noun="its keys are", most=20)
    far = nearest(str(path[-1]), keys_of(path[:-1])) is None
    fix = "a key that starts with x- is ignored" if far and not path[:-1] else ""
    return Finding("unknown-key", f"{path[-1]} is no key of {noun}; {offer}", path, on="key", fix=fix)


def _model(path: Path) -> tuple[type[BaseModel], str]:
    for pattern, found in _MODELS.items():
        if len(pattern) == len(path) and all(p in ("*", part) for p, part in zip(pattern, path, strict=True)):
            return found
    return _model(path[:-1]) if path else (Spec, "a spec")


def _label(path: Path) -> str:
    if len(path) == 2 and path[0] in ("actors", "tasks"):
        return f"{str(path[0]).removesuffix('s')} {path[1]}"
    names = [str(part) for part in path if isinstance(part, str)]
    return names[-1] if names else "a spec"


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def real_path(loc: tuple[str | int, ...], data: Any) -> Path:
    """pydantic's location without its own marks (union branches, ``[key]``), as far as the data goes."""
    path: list[str | int] = []
    for part in loc:
        if exists(data, (part,)):
            data = data[part]
            path.append(part)
    return tuple(path)


def exists(data: Any, path: Path) -> bool:
    """Whether data has something at a path."""
    for part in path:
        if not (part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))):
            return False
        data = data[part]
    return True
