"""Merged raw data → a ``Spec``: vars, names, types; what is wrong becomes findings, and the rest is still judged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from cgspec.diagnostics import Finding, Path, Related, nearest
from cgspec.merging import is_marked
from cgspec.parsing import LOST, NAME, RESERVED, ValueReader
from cgspec.problems import findings_of, keys_of, real_path
from cgspec.spec import Spec
from cgspec.values import FunctionRef, Value

WIDE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
MAX_ROUNDS = 4
MAX_PROBLEMS = 300
"""Problems of one spec that are told; who has more than these has one cause for most of them."""

_RAW_SECTIONS = frozenset({"vars", "inputs", "outputs", "metrics", "variants", "sweep"})
_RAW_KEYS: dict[str, frozenset[str]] = {
    "actors": frozenset({"args", "env", "options"}),
    "tasks": frozenset({"in", "with", "slot", "allreduce", "allgather", "reducescatter"}),
    "setup": frozenset({"with"}),
    "expect": frozenset({"equals", "close", "shape", "length", "below", "above", "task"}),
}
"""Keys whose content is read later: values and references."""


_OF_TASKS = ("transport", "payload", "timeout", "op", "in", "with", "returns")
_OF_ACTORS = ("args", "num_cpus", "num_gpus", "memory", "accelerator_type", "resources", "options", "env", "same_node")
_HARMLESS = frozenset({*_OF_TASKS, *_OF_ACTORS, "process_group"})
"""Keys of an actor or task without which the rest of the entry may still be spoken of."""

_EVERY = "*"
"""In ``faulty``, stands for all entries of a section that could not be read."""

_SECTIONS = ("actors", "inputs", "tasks", "outputs")

_ARTICLES = {"actor": "an", "axis": "an", "input": "an"}


@dataclass
class Validated:
    """What is left of a spec when faulty entries are taken out.

    Attributes:
        spec: None where not even the rest makes a spec.
        reader: reads the values that are still raw, with the vars.
        faulty: (section, name) of entries that are there but could not be kept; nothing is said about who names them.
        incomplete: entries that lost a key; nothing is said about what they lack.
        lost: raw data of faulty and incomplete tasks, which may read what nobody else reads.
        unknown_reads: whether one of these does not even say what it reads.
        partial: whether anything may be said in a file that could not be read.
    """

    spec: Spec | None
    reader: ValueReader
    findings: list[Finding]
    faulty: set[tuple[str, Any]] = field(default_factory=set)
    incomplete: set[tuple[str, Any]] = field(default_factory=set)
    lost: list[Any] = field(default_factory=list)
    unknown_reads: bool = False
    partial: bool = False
    _lost_paths: set[Path] = field(default_factory=set)

    def is_lost(self, section: str) -> bool:
        """Whether a section is there, in some form, and could not be read."""
        return (section, _EVERY) in self.faulty


def validate(
    data: Mapping[str, Any], function: Callable[[str, Path], FunctionRef], *, partial: bool = False
) -> Validated:
    """Judges merged raw data.

    Args:
        function: see ``ValueReader``.
        partial: whether the data may lack anything, so that nothing is said about what is not there.
    """
    kept = {key: value for key, value in data.items() if not (isinstance(key, str) and key.startswith("x-"))}
    reader = ValueReader({}, function)
    result = Validated(None, reader, [])
    kept = _named_by_text(kept, result)
    _note_misspelt(kept, result)
    if partial or result.partial:
        result.faulty.update((section, _EVERY) for section in _SECTIONS)
        result.partial = True
        reader.later = None
        kept = {key: _without_deletions(value) if key in _SECTIONS else value for key, value in kept.items()}
    _read_vars(kept.get("vars"), reader)
    filled = _fill(kept, result)
    _check_names(filled, result)
    result.spec = _validate(filled, result)
    result.findings = reader.findings + result.findings
    tasks = data.get("tasks")
    if isinstance(tasks, dict):
        off = result.faulty | result.incomplete
        result.lost = [task for name, task in tasks.items() if ("tasks", name) in off]
        result.unknown_reads = any(not _says_what_it_reads(task) for task in result.lost)
    return result


_NAMED_BY_TEXT = ("args", "env", "options", "resources", "in", "with")


def _named_by_text(data: Mapping[Any, Any], result: Validated) -> dict[str, Any]:
    """The data without keys of entries that are no text, each of which becomes a finding."""
    kept = dict(data)
    for section in ("actors", "tasks"):
        entries = kept.get(section)
        for name, entry in list(entries.items()) if isinstance(entries, dict) else ():
            for key in _NAMED_BY_TEXT if isinstance(entry, dict) else ():
                inner = entry.get(key)
                wrong = [each for each in inner if not isinstance(each, str)] if isinstance(inner, dict) else []
                if wrong:
                    result.findings += [_unnamed((section, name, key, each)) for each in wrong]
                    result.incomplete.add((section, name))
                    entry = {**entry, key: {each: inner[each] for each in inner if isinstance(each, str)}}
                    kept[section] = {**kept[section], name: entry}
    return kept


def _unnamed(path: tuple[Any, ...]) -> Finding:
    shown = "nothing" if path[-1] is None else str(path[-1]).lower()
    fix = f'write "{shown}" if that is its name' if path[-1] is not None else ""
    fix = f"{fix}; what is given by position is a list" if fix and path[-2] in ("in", "args") else fix
    return Finding("wrong-type", f"a name is text, and {shown} is not", path, on="key", fix=fix)


def _without_deletions(section: Any) -> Any:
    """A section without the entries that delete what an included file says."""
    return {k: v for k, v in section.items() if v is not None} if isinstance(section, dict) else section


def _note_misspelt(data: Mapping[str, Any], result: Validated) -> None:
    """A section that is misspelt is lost: its key is reported, and not what it seems to lack."""
    known = [field.alias or name for name, field in Spec.model_fields.items()]
    for key in itertools.islice((key for key in data if key not in known), MAX_PROBLEMS):
        near = nearest(str(key), known)
        if near is None or near in data:
            continue
        if near == "vars":
            result.reader.later = None
        elif near == "include":
            result.partial = True
        elif near in _SECTIONS:
            result.faulty.add((near, _EVERY))


def _read_vars(section: Any, reader: ValueReader) -> None:
    if not isinstance(section, dict):
        reader.later = reader.later if section is None else None
        return
    names = [name for name in section if isinstance(name, str)]
    unknown = reader.later is None
    for number, (name, raw) in enumerate(section.items()):
        path: Path = ("vars", name)
        if not isinstance(name, str) or not NAME.match(name) or name in RESERVED:
            problem = _name_problem("var", name, wide=False)
            reader.report("bad-name", problem.message, path, fix=problem.fix, on="key")
            reader.faulty.add(str(name))
            continue
        reader.later = None if unknown else tuple(names[number:])
        value: Value = reader.read(raw, path)
        open_names = sorted(use for use in value.uses if use not in ("env", "torch", "call", "lost"))
        if open_names:
            message = f"a var is a constant, and {name} uses {', '.join(open_names)}"
            fix = "write the value where it is used: there it may change with the iteration or the member"
            reader.report("not-constant", message, path, fix=fix)
        if open_names or "lost" in value.uses:
            reader.faulty.add(name)
        else:
            reader.variables[name] = value
    reader.later = None if unknown else ()


def _name_problem(noun: str, name: Any, *, wide: bool) -> Finding:
    """Why something is no name, and one that would be."""
    article = _ARTICLES.get(noun, "a")
    if name in RESERVED:
        return Finding("bad-name", f"{name} is a word of the language; {article} {noun} needs another name")
    letters = "letters, digits, _ and -" if wide else "letters, digits and _"
    shown = str(name)[:80]
    clean = re.sub(r"[^A-Za-z0-9_]+", "_", shown).strip("_")
    clean = clean if NAME.match(clean) else f"{noun}_{clean}".rstrip("_")
    message = f"{shown!r} is no name for {article} {noun}: names are {letters}, and begin with a letter or _"
    return Finding("bad-name", message, fix=f"call it e.g. {clean}")


def _fill(data: Mapping[str, Any], result: Validated) -> dict[str, Any]:
    """The data with vars filled in wherever a constant is needed."""
    filled: dict[str, Any] = {}
    known = keys_of(())
    for key, value in data.items():
        if key in _RAW_SECTIONS or key not in known:
            filled[key] = value
        elif key in ("actors", "tasks") and isinstance(value, dict):
            filled[key] = {name: _fill_entry(key, item, (key, name), result) for name, item in value.items()}
        elif key in ("setup", "expect") and isinstance(value, list):
            filled[key] = [_fill_entry(key, item, (key, n), result) for n, item in enumerate(value)]
        elif key == "cluster":
            filled[key] = _fill_entry(key, value, (key,), result)
        else:
            filled[key] = _constants(value, (key,), result)
    return {key: value for key, value in filled.items() if value is not LOST}


def _fill_entry(section: str, entry: Any, path: Path, result: Validated) -> Any:
    if not isinstance(entry, dict) or is_marked(entry):
        return _constants(entry, path, result)
    known = keys_of((section, "*"))  # of a section that is one entry, these are its own
    unknown = [key for key in entry if key not in known]
    return _filled_map(entry, path, result, _RAW_KEYS.get(section, frozenset()).union(unknown))


def _constants(data: Any, path: Path, result: Validated) -> Any:
    """Data with its vars filled in; a part that cannot be is left out, and noted as lost."""
    if not _has_dollar(data):
        return data
    if isinstance(data, dict) and not is_marked(data):
        return _filled_map(data, path, result)
    if isinstance(data, list):
        items = [_constants(item, (*path, number), result) for number, item in enumerate(data)]
        return LOST if any(item is LOST for item in items) else items
    return result.reader.constant(data, path)


def _filled_map(data: Mapping[Any, Any], path: Path, result: Validated, raw: frozenset[str] = frozenset()) -> Any:
    filled = {}
    for key, value in data.items():
        inner = value if key in raw else _constants(value, (*path, key), result)
        if inner is LOST:
            result._lost_paths.add((*path, key))
            _note_loss((*path, key), result)
        else:
            filled[key.replace("$$", "$") if isinstance(key, str) else key] = inner
    return filled


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
                result.findings.append(replace(_name_problem(noun, name, wide=True), path=(section, name), on="key"))
                result.faulty.add((section, name))
                result.faulty.add((section, str(name)))
            else:
                _check_inner_names(section, name, entry, result)


def _check_inner_names(section: str, name: str, entry: Any, result: Validated) -> None:
    if not isinstance(entry, dict):
        return
    axes = entry.get("axes")
    for axis in axes if isinstance(axes, dict) else ():
        if not isinstance(axis, str) or not NAME.match(axis) or axis in RESERVED:
            problem = _name_problem("axis", axis, wide=False)
            result.findings.append(replace(problem, path=(section, name, "axes", axis), on="key"))
            result.faulty.add((section, name))
    returns = entry.get("returns") if section == "tasks" else None
    seen: dict[Any, Path] = {}
    for number, item in enumerate(returns if isinstance(returns, list) else ()):
        path: Path = (section, name, "returns", number)
        if isinstance(item, str) and (not WIDE_NAME.match(item)):
            result.findings.append(replace(_name_problem("return", item, wide=True), path=path))
            result.incomplete.add((section, name))
        elif isinstance(item, str) and item in seen:
            message = f"{item} is among the returns of {name} twice"
            first = (Related("it is here first", seen[item]),)
            fix = "give every return a name of its own"
            result.findings.append(Finding("duplicate-key", message, path, fix=fix, related=first))
            result.incomplete.add((section, name))
        if isinstance(item, str):
            seen.setdefault(item, path)


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
            problems = error.errors(include_url=False)[:MAX_PROBLEMS]
        if number == 0:
            said = [problem for problem in problems if not (result.partial and problem["type"] == "missing")]
            result.findings.extend(findings_of(said, data, result._lost_paths))
        doomed: list[Path] = []
        for problem in problems:
            path = real_path(problem["loc"], data)
            if problem["type"] == "missing" and not path:
                data[str(problem["loc"][-1])] = {}
                result.faulty.add((str(problem["loc"][-1]), _EVERY))
            elif path:
                doomed.append(_doomed(path, problem["type"], result))
        data = _without(data, doomed)
    return None


def _doomed(path: Path, kind: str, result: Validated) -> Path:
    """What has to go for the sake of a path: it alone, or the entry around it where that cannot do without it."""
    if isinstance(path[-1], int) and len(path) > 1:  # a list goes whole: what is behind an item keeps its place
        return _doomed(path[:-1], kind, result)
    if len(path) == 1 and path[0] in _SECTIONS:
        result.faulty.add((str(path[0]), _EVERY))
    meant = path
    if kind == "extra_forbidden":
        near = nearest(str(path[-1]), keys_of(path[:-1]))
        meant = (*path[:-1], near or "with")  # a key that is nothing like one of the language is no loss
    whole = _note_loss(meant, result)
    return path[:2] if whole else path


def _says_what_it_reads(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("in", []), (dict, list))


def _note_loss(path: Path, result: Validated) -> bool:
    """Notes that an entry lost what is at a path; whether the entry cannot do without it."""
    if len(path) > 1 and path[0] in ("expect", "sweep"):
        result.incomplete.add((str(path[0]), path[1]))
    if len(path) < 2 or path[0] not in ("actors", "tasks", "inputs"):
        return False
    whole = len(path) == 2 or path[2] not in _HARMLESS
    (result.faulty if whole else result.incomplete).add((str(path[0]), path[1]))
    return whole


def _without(data: Any, paths: Iterable[Path]) -> Any:
    """The data without what is at some paths."""
    inner: dict[Any, list[Path]] = {}
    for path in paths:
        inner.setdefault(path[0], []).append(path[1:])
    gone = {head for head, rests in inner.items() if () in rests}
    if isinstance(data, dict):
        kept = {key: value for key, value in data.items() if key not in gone}
        return {key: _without(value, inner[key]) if key in inner else value for key, value in kept.items()}
    if isinstance(data, list):
        return [_without(item, inner.get(n, ())) for n, item in enumerate(data) if n not in gone]
    return data
