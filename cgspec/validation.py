"""Merged raw data → a ``Spec``: vars, names, types; what is wrong becomes findings, and the rest is still judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from cgspec import spec as language
from cgspec.diagnostics import Finding, Path, nearest, suggest
from cgspec.parsing import NAME, RESERVED, ValueReader
from cgspec.spec import Spec
from cgspec.values import FunctionRef, Value

WIDE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
MAX_ROUNDS = 4

_RAW_SECTIONS = frozenset({"vars", "inputs", "outputs", "metrics", "variants", "sweep"})
_RAW_KEYS: dict[str, frozenset[str]] = {
    "actors": frozenset({"args", "env", "options"}),
    "tasks": frozenset({"in", "with", "slot", "allreduce", "allgather", "reducescatter"}),
    "setup": frozenset({"with"}),
    "expect": frozenset({"equals", "close", "shape", "length", "below", "above", "task"}),
    "cluster": frozenset({"runtime_env"}),
}
"""Keys whose content is read later: values and references."""

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

_HARMLESS = frozenset({"transport", "payload", "timeout", "op", "env", "options", "resources", "num_cpus", "memory"})
"""Keys of an actor or task without which the rest of the entry still means what it says."""

_ARTICLES = {"actor": "an", "axis": "an", "input": "an"}
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


@dataclass
class Validated:
    """What is left of a spec when faulty entries are taken out.

    Attributes:
        spec: None where not even the rest makes a spec.
        reader: reads the values that are still raw, with the vars.
        faulty: (section, name) of entries that are there but could not be kept; nothing is said about who names them.
        incomplete: entries that lost a key; nothing is said about what they lack.
    """

    spec: Spec | None
    reader: ValueReader
    findings: list[Finding]
    faulty: set[tuple[str, Any]] = field(default_factory=set)
    incomplete: set[tuple[str, Any]] = field(default_factory=set)


def validate(data: Mapping[str, Any], function: Callable[[str, Path], FunctionRef]) -> Validated:
    """Judges merged raw data.

    Args:
        function: see ``ValueReader``.
    """
    kept = {key: value for key, value in data.items() if not (isinstance(key, str) and key.startswith("x-"))}
    reader = ValueReader({}, function)
    result = Validated(None, reader, [])
    _read_vars(kept.get("vars"), reader)
    filled = _fill(kept, reader)
    _check_names(filled, result)
    result.spec = _validate(filled, result)
    result.findings = reader.findings + result.findings
    return result


def _read_vars(section: Any, reader: ValueReader) -> None:
    if not isinstance(section, dict):
        return
    for name, raw in section.items():
        path: Path = ("vars", name)
        if not isinstance(name, str) or not NAME.match(name) or name in RESERVED:
            reader.report("bad-name", _name_message("var", name, wide=False), path, on="key")
            continue
        value: Value = reader.read(raw, path)
        open_names = sorted(use for use in value.uses if use not in ("env", "torch", "call"))
        if open_names:
            message = f"a var is a constant, and {name} uses {', '.join(open_names)}"
            reader.report("not-constant", message, path)
        reader.variables[name] = value


def _name_message(noun: str, name: Any, *, wide: bool) -> str:
    if name in RESERVED:
        return f"{name} is a word of the language; {_ARTICLES.get(noun, 'a')} {noun} needs another name"
    letters = "letters, digits, _ and -" if wide else "letters, digits and _"
    article = _ARTICLES.get(noun, "a")
    return f"{str(name)[:80]!r} is no name for {article} {noun}: names are {letters}, and begin with a letter or _"


def _fill(data: Mapping[str, Any], reader: ValueReader) -> dict[str, Any]:
    """The data with vars filled in wherever a constant is needed."""
    filled: dict[str, Any] = {}
    for key, value in data.items():
        if key in _RAW_SECTIONS:
            filled[key] = value
        elif key in ("actors", "tasks") and isinstance(value, dict):
            filled[key] = {name: _fill_entry(key, item, (key, name), reader) for name, item in value.items()}
        elif key in ("setup", "expect") and isinstance(value, list):
            filled[key] = [_fill_entry(key, item, (key, n), reader) for n, item in enumerate(value)]
        elif key == "cluster":
            filled[key] = _fill_entry(key, value, (key,), reader)
        else:
            filled[key] = reader.constant(value, (key,)) if _has_dollar(value) else value
    return filled


def _fill_entry(section: str, entry: Any, path: Path, reader: ValueReader) -> Any:
    raw = _RAW_KEYS[section]
    if not isinstance(entry, dict):
        return reader.constant(entry, path) if _has_dollar(entry) else entry
    if not any(_has_dollar(value) for key, value in entry.items() if key not in raw):
        return entry
    return {
        key: value if key in raw or not _has_dollar(value) else reader.constant(value, (*path, key))
        for key, value in entry.items()
    }


def _has_dollar(data: Any) -> bool:
    if isinstance(data, str):
        return "$" in data
    if isinstance(data, dict):
        return any(_has_dollar(key) or _has_dollar(value) for key, value in data.items())
    return isinstance(data, list) and any(map(_has_dollar, data))


def _check_names(data: Mapping[str, Any], result: Validated) -> None:
    """Takes entries with impossible names out."""
    for section, noun in (("actors", "actor"), ("inputs", "input"), ("tasks", "task")):
        entries = data.get(section)
        for name, entry in list(entries.items()) if isinstance(entries, dict) else ():
            if not isinstance(name, str) or not WIDE_NAME.match(name) or name in RESERVED:
                message = _name_message(noun, name, wide=True)
                result.findings.append(Finding("bad-name", message, (section, name), on="key"))
                result.faulty.add((section, name))
            else:
                _check_inner_names(section, name, entry, result)


def _check_inner_names(section: str, name: str, entry: Any, result: Validated) -> None:
    if not isinstance(entry, dict):
        return
    axes = entry.get("axes")
    for axis in axes if isinstance(axes, dict) else ():
        if not isinstance(axis, str) or not NAME.match(axis) or axis in RESERVED:
            message = _name_message("axis", axis, wide=False)
            result.findings.append(Finding("bad-name", message, (section, name, "axes", axis), on="key"))
            result.faulty.add((section, name))
    returns = entry.get("returns") if section == "tasks" else None
    seen: set[Any] = set()
    for number, item in enumerate(returns if isinstance(returns, list) else ()):
        path: Path = (section, name, "returns", number)
        if isinstance(item, str) and (not WIDE_NAME.match(item)):
            result.findings.append(Finding("bad-name", _name_message("return", item, wide=True), path))
            result.incomplete.add((section, name))
        elif isinstance(item, str) and item in seen:
            result.findings.append(Finding("duplicate-key", f"{item} is among the returns of {name} twice", path))
            result.incomplete.add((section, name))
        if isinstance(item, str):
            seen.add(item)


def _validate(data: dict[str, Any], result: Validated) -> Spec | None:
    """Validates, takes out what is faulty, and validates again; only the first round's findings are kept."""
    for section in ("actors", "inputs", "tasks"):
        if isinstance(data.get(section), dict):
            entries = data[section].items()
            data[section] = {name: entry for name, entry in entries if (section, name) not in result.faulty}
    for number in range(MAX_ROUNDS):
        try:
            return Spec.model_validate(data)
        except ValidationError as error:
            problems = error.errors(include_url=False)
        if number == 0:
            result.findings.extend(_findings(problems, data))
        paths = [_real_path(problem["loc"], data) for problem in problems]
        for problem, path in zip(problems, paths, strict=True):
            if _exists(data, path):
                data = _prune(data, path, problem["type"], result)
    return None


def _real_path(loc: tuple[str | int, ...], data: Any) -> Path:
    """pydantic's location without its own marks (union branches, ``[key]``), as far as the data goes."""
    path: list[str | int] = []
    for part in loc:
        if _exists(data, (part,)):
            data = data[part]
            path.append(part)
    return tuple(path)


def _findings(problems: list[Any], data: Any) -> list[Finding]:
    found: dict[tuple[Path, str], Finding] = {}
    unknown = [_real_path(problem["loc"], data) for problem in problems if problem["type"] == "extra_forbidden"]
    misspelt = {(path[:-1], nearest(str(path[-1]), _keys(path[:-1]))) for path in unknown}
    for problem in problems:
        if problem["type"] == "missing" and (_real_path(problem["loc"], data), problem["loc"][-1]) in misspelt:
            continue
        finding = _finding(problem, data)
        known = found.get((finding.path, finding.code))
        if known is None:
            found[finding.path, finding.code] = finding
        elif finding.code == "wrong-type" and finding.message != known.message:
            found[finding.path, finding.code] = _either(known, finding)
    return list(found.values())


def _either(first: Finding, second: Finding) -> Finding:
    """One finding for a key that may be of two types."""
    start, _, end = first.message.partition(", not ")
    other = second.message.partition(", not ")[0].split(" is ", 1)[-1]
    return Finding("wrong-type", f"{start} or {other}, not {end}", first.path)


def _finding(problem: Any, data: Any) -> Finding:
    kind, loc, path = problem["type"], problem["loc"], _real_path(problem["loc"], data)
    name = _label(path)
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        model, noun = _model(path)
        owner = f"{noun} ({path[-1]})" if len(path) > 1 and isinstance(path[-1], str) else noun
        field_info = next((f for n, f in model.model_fields.items() if (f.alias or n) == loc[-1]), None)
        hint = f": {field_info.description}" if field_info and field_info.description else ""
        return Finding("missing-key", f"{owner} needs {loc[-1]}{hint}", path, on="key")
    if loc and loc[-1] == "[key]":
        return Finding("wrong-type", f"a key is text here, not {str(loc[-2])[:60]!r}", path, on="key")
    if kind in _NOUNS:
        return Finding("wrong-type", f"{name} is {_NOUNS[kind]}, not {_show(problem['input'])}", path)
    if kind == "literal_error":
        choices = [part.strip().strip("'") for part in re.split(r",| or ", str(problem["ctx"]["expected"]))]
        return _unknown_choice(name, problem["input"], choices, path)
    if kind == "value_error":
        error = str(problem["ctx"]["error"])
        return Finding("bad-unit", f"{name}: {error}", path)
    return Finding("out-of-range", f"{name}: {_range_message(problem)}", path)


def _range_message(problem: Any) -> str:
    ctx = problem.get("ctx", {})
    shown = _show(problem["input"])
    if problem["type"] == "greater_than_equal":
        return f"{shown} is less than {ctx['ge']}, the least that is allowed"
    if problem["type"] == "less_than_equal":
        return f"{shown} is more than {ctx['le']}, the most that is allowed"
    return f"{problem['msg'][0].lower()}{problem['msg'][1:]}, and it is {shown}"


def _unknown_choice(name: str, value: Any, choices: list[str], path: Path) -> Finding:
    offer = suggest(value, choices, noun="it is one of") if isinstance(value, str) else f"it is {' or '.join(choices)}"
    return Finding("wrong-type", f"{name} cannot be {_show(value)}; {offer}", path)


def _keys(path: Path) -> list[str]:
    return [field.alias or name for name, field in _model(path)[0].model_fields.items()]


def _unknown_key(path: Path) -> Finding:
    noun = _model(path[:-1])[1]
    offer = suggest(str(path[-1]), _keys(path[:-1]), noun="its keys are", most=20)
    fix = "a key that starts with x- is ignored" if not path[:-1] else ""
    return Finding("unknown-key", f"{path[-1]} is no key of {noun}; {offer}", path, on="key", fix=fix)


def _model(path: Path) -> tuple[type[BaseModel], str]:
    for pattern, found in _MODELS.items():
        if len(pattern) == len(path) and all(p in ("*", part) for p, part in zip(pattern, path, strict=True)):
            return found
    return _model(path[:-1]) if path else (Spec, "a spec")


def _label(path: Path) -> str:
    names = [str(part) for part in path if isinstance(part, str)]
    return names[-1] if names else "a spec"


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _prune(data: Any, path: Path, kind: str, result: Validated) -> Any:
    """The data without what is at a path, and without the entry around it where the entry cannot do without it."""
    if not path:
        return data
    entry = (str(path[0]), path[1]) if len(path) > 1 and path[0] in ("actors", "tasks", "inputs") else None
    whole = entry is not None and (len(path) == 2 or (kind != "extra_forbidden" and path[2] not in _HARMLESS))
    if entry is not None:
        (result.faulty if whole else result.incomplete).add(entry)
    if kind == "missing" and entry is None and len(path) == 1:
        return {key: value for key, value in data.items() if key != path[0]}
    return _without(data, path[:2] if whole else path)


def _exists(data: Any, path: Path) -> bool:
    for part in path:
        if not (part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))):
            return False
        data = data[part]
    return True


def _without(data: Any, path: Path) -> Any:
    head, rest = path[0], path[1:]
    if isinstance(data, dict):
        if not rest:
            return {key: value for key, value in data.items() if key != head}
        return {key: _without(value, rest) if key == head else value for key, value in data.items()}
    if isinstance(data, list) and isinstance(head, int):
        if not rest:
            return [item for n, item in enumerate(data) if n != head]
        return [_without(item, rest) if n == head else item for n, item in enumerate(data)]
    return data
