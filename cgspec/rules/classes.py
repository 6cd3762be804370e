"""Rules about the user's code: classes, methods, arguments, and what may be imported."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cgspec import classes
from cgspec.classes import BadReference, ClassRef
from cgspec.diagnostics import Finding, Path, Place, Related, Severity
from cgspec.families import ActorFamily, TaskFamily
from cgspec.merging import is_marked
from cgspec.rules.context import Context, Rule
from cgspec.signatures import ClassInfo, NotFound, Problem, Signature

_NOT_FOUND_CODES = {
    "file": "unknown-class-file",
    "unreadable": "unreadable-class-file",
    "syntax": "unreadable-class-file",
    "module": "unknown-module",
    "no-source": "unreadable-class",
    "name": "unknown-class",
    "not-a-class": "unknown-class",
    "not-a-function": "unknown-class",
}
WHY_UNTRUSTED = "a spec is code: a YAML edit alone must not be able to reach any module there is"
_ABOUT_FILES = ("unknown-class-file", "unreadable-class-file", "unknown-module")
_PROBLEM_CODES = {
    "missing": "missing-argument",
    "unexpected": "unknown-argument",
    "too-many": "too-many-arguments",
    "twice": "argument-twice",
    "no-self": "unknown-method",
}


def _refs(context: Context) -> Iterator[tuple[ClassRef, Path, str]]:
    """Every class and function that the spec names, with its path."""
    for name, actor in context.catalogue.actors.items():
        try:
            yield classes.parse(actor.spec.class_), ("actors", name, "class"), "class"
        except BadReference:
            continue
    for ref, path in context.calls:
        yield ref, path, "function"


def untrusted(context: Context) -> Iterator[Finding]:
    """A class or function outside what a spec may import."""
    for ref, path, _ in _refs(context):
        reason = context.trust.refuses(ref)
        if reason is not None:
            message, _, fix = reason.partition("; ")
            yield Finding("untrusted-class", message, path, why=WHY_UNTRUSTED, fix=fix)


def _not_found(context: Context, code: str) -> Iterator[Finding]:
    for ref, path, noun in _refs(context):
        if context.trust.refuses(ref) is not None:
            continue
        read = context.classes.read_class(ref) if noun == "class" else context.classes.read_function(ref)
        if isinstance(read, NotFound) and _NOT_FOUND_CODES.get(read.kind, "unknown-class") == code:
            text = str(ref)
            colon = text.find(":")
            start, end = (0, colon) if code in _ABOUT_FILES else (colon + 1, len(text))
            note = code == "unreadable-class"
            message, _, fix = read.message.partition("; ") if note else (read.message, "", "")
            if code == "unknown-module":
                fix = "install it where cgspec runs, or name a file of your own: file.py:Class"
            made = _stated(context, read.file, read.line, "Python stops reading here" if read.kind == "syntax" else "")
            severity: Severity = "note" if note else "error"
            why = _WHY_NOTE if note else ""
            yield Finding(code, message, path, severity, span=(start, end), why=why, fix=fix, related=made)


_WHY_NOTE = "classes are read without importing them, so calls of this one are judged only when it runs"


def _stated(context: Context, file: str, line: int, what: str) -> tuple[Related, ...]:
    """A line of a Python file that explains a finding; empty where it is not known."""
    if not what or not file or not line:
        return ()
    root = context.trust.root
    path = pathlib.Path(file)
    text = _line_of(root / path, line)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    shown = str(path) if path.is_absolute() else os.path.normpath(os.path.join(context.folder, path))
    start = len(text) - len(text.lstrip())
    return (Related(what, place=Place(shown, line, start + 1, max(len(text) + 1, 2), text)),)


def _line_of(file: pathlib.Path, line: int) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return ""
    return lines[line - 1] if line <= len(lines) else ""


def unknown_class_file(context: Context) -> Iterator[Finding]:
    """A file that is not there."""
    yield from _not_found(context, "unknown-class-file")


def unreadable_class_file(context: Context) -> Iterator[Finding]:
    """A file that cannot be read as Python."""
    yield from _not_found(context, "unreadable-class-file")


def unknown_module(context: Context) -> Iterator[Finding]:
    """A module that is not installed."""
    yield from _not_found(context, "unknown-module")


def unknown_class(context: Context) -> Iterator[Finding]:
    """A file or module without a class of that name."""
    yield from _not_found(context, "unknown-class")


def unreadable_class(context: Context) -> Iterator[Finding]:
    """A class or method whose signature cannot be read without importing it: a note, not a false alarm."""
    yield from _not_found(context, "unreadable-class")
    for actor in context.catalogue.actors.values():
        info = _info(context, actor)
        if info is not None and not info.complete:
            message = f"{actor.spec.class_} cannot be read whole without importing it: {info.why_incomplete}"
            yield Finding("unreadable-class", message, ("actors", actor.name, "class"), "note", why=_WHY_NOTE)


def _info(context: Context, actor: ActorFamily) -> ClassInfo | None:
    """The actor's class, where it can be read and may be imported."""
    try:
        ref = classes.parse(actor.spec.class_)
    except BadReference:
        return None
    if context.trust.refuses(ref) is not None:
        return None
    read = context.classes.read_class(ref)
    return read if isinstance(read, ClassInfo) else None


def _called(context: Context) -> Iterator[tuple[ActorFamily, str, Path]]:
    """Every (actor, method, path of the call) of tasks and of setup."""
    for name, family in context.wiring.tasks.items():
        if family.target is not None:
            yield family.target.actor, family.target.method, ("tasks", name, "call")
    for number, call in enumerate(context.spec.setup):
        target = context.catalogue.target(call.call, ("setup", number, "call"))
        if target is not None:
            yield target.actor, target.method, ("setup", number, "call")


def unknown_method(context: Context) -> Iterator[Finding]:
    """A class without a method of that name."""
    for actor, method, path in _called(context):
        info = _info(context, actor)
        found = info.method(method) if info is not None else None
        if info is not None and isinstance(found, NotFound):
            call = _call_text(context, path)
            made = _stated(context, info.file, info.line, f"{info.name} is defined here")
            yield Finding("unknown-method", found.message, path, span=_method_span(call), related=made)
    yield from _problems(context, "unknown-method")


def _method_span(call: str) -> tuple[int, int]:
    return call.rfind(".") + 1, len(call)


def _call_text(context: Context, path: Path) -> str:
    if path[0] == "setup":
        return context.spec.setup[int(path[1])].call
    return context.spec.tasks[str(path[1])].call or ""


def _signature(context: Context, actor: ActorFamily, method: str) -> Signature | None:
    info = _info(context, actor)
    found = info.method(method) if info is not None else None
    return found if isinstance(found, Signature) and found.readable else None


@dataclass(frozen=True)
class _Given:
    """One call or constructor: what it takes, and what it is given.

    Attributes:
        path: of the entry; ``sections``: the keys of it that hold arguments, the first being the one for constants.
        target: of the text that names what is called.
        whole: whether all that it is given could be read.
    """

    signature: Signature
    positional: int
    names: list[str]
    path: Path
    sections: tuple[str, ...]
    target: Path
    whole: bool = True


def _calls(context: Context) -> Iterator[_Given]:
    """Every call whose signature can be read."""
    for name, family in context.wiring.tasks.items():
        if family.target is None:
            continue
        signature = _signature(context, family.target.actor, family.target.method)
        if signature is not None:
            whole, path = context.is_whole("tasks", name), ("tasks", name)
            yield _Given(signature, *_arguments(context, family), path, ("with", "in"), (*path, "call"), whole)
    for number, call in enumerate(context.spec.setup):
        target = context.catalogue.target(call.call, ("setup", number, "call"))
        signature = _signature(context, target.actor, target.method) if target is not None else None
        if signature is not None:
            where: Path = ("setup", number)
            yield _Given(signature, 0, list(call.with_ or {}), where, ("with",), (*where, "call"))
    yield from _constructors(context)
    yield from _functions(context)


def _constructors(context: Context) -> Iterator[_Given]:
    for actor in context.catalogue.actors.values():
        info = _info(context, actor)
        if info is not None and info.init.readable and context.is_whole("actors", actor.name):
            path = ("actors", actor.name)
            yield _Given(info.init, *_counted(actor.spec.args), path, ("args",), (*path, "class"))


def _functions(context: Context) -> Iterator[_Given]:
    for ref, path in context.calls:
        read = context.classes.read_function(ref) if context.trust.refuses(ref) is None else None
        args = context.raw((*path[:-1], "args"))
        if isinstance(read, Signature) and read.readable and not is_marked(args):
            yield _Given(read, *_counted(args), path[:-1], ("args",), path)


def _counted(args: object) -> tuple[int, list[str]]:
    """How many arguments are given by position, and the names of the others."""
    if isinstance(args, list):
        return len(args), []
    return 0, [str(name) for name in args] if isinstance(args, dict) else []


def _arguments(context: Context, family: TaskFamily) -> tuple[int, list[str]]:
    """How many arguments a task gives by position, and the names of the others."""
    raw = context.raw(("tasks", family.name, "in"))
    wires = context.wiring.wires.get(family.name, ())
    positional = sum(wire.positions for wire in wires if wire.name is None)
    names = [name for name in raw if isinstance(name, str)] if isinstance(raw, dict) else []
    return positional, [*names, *(family.spec.with_ or {})]


def _problems(context: Context, code: str) -> Iterator[Finding]:
    for given in _calls(context):
        for problem in given.signature.problems(given.positional, given.names):
            if _PROBLEM_CODES[problem.kind] != code or (problem.kind == "missing" and not given.whole):
                continue
            where, on = _place(context, problem, given)
            signature = given.signature
            made = _stated(context, signature.file, signature.line, f"{signature.name} is defined here")
            fix = problem.fix or _fix(problem, given)
            related = (*_twins(context, problem, given, where), *made)
            call = _text_at(context, where) if on == "value" and where == given.target else ""
            span = _method_span(call) if "." in call and given.path[0] in ("tasks", "setup") else None
            yield Finding(code, problem.message, where, on=on, span=span, fix=fix, related=related)


def _fix(problem: Problem, given: _Given) -> str:
    """What helps where the problem does not say it."""
    named = " and ".join(problem.names)
    if problem.kind == "missing" and "in" in given.sections:
        return f"give {named} under in (what flows) or under with (a constant)"
    if problem.kind == "missing":
        return f"give {named} under {given.sections[0]}"
    if problem.kind == "twice":
        return f"remove one of them: in is for what flows, {given.sections[0]} for constants"
    return f"it takes {', '.join(given.signature.names) or 'nothing'}"


def _twins(context: Context, problem: Problem, given: _Given, where: Path) -> tuple[Related, ...]:
    """The other place where an argument is given."""
    if problem.kind != "twice":
        return ()
    name = problem.names[0]
    if isinstance(context.raw((*given.path, "in")), list):
        number = given.signature.names.index(name)
        return (Related(f"{name} is given here, too", (*given.path, "in", number)),)
    places = [(*given.path, section, name) for section in given.sections]
    return tuple(Related(f"{name} is given here, too", path, "key") for path in places if path != where)


def _place(context: Context, problem: Problem, given: _Given) -> tuple[Path, Literal["key", "value"]]:
    """The path of the argument that is meant, or of the call."""
    for name in problem.names:
        for section in given.sections:
            arguments = context.raw((*given.path, section))
            if isinstance(arguments, dict) and name in arguments and problem.kind != "missing":
                return (*given.path, section, name), "key"
    listed = next((s for s in given.sections if isinstance(context.raw((*given.path, s)), list)), None)
    if problem.kind == "too-many" and listed:
        return (*given.path, listed), "value"
    return given.target, "value"


def _text_at(context: Context, path: Path) -> str:
    return str(context.raw(path))


def missing_argument(context: Context) -> Iterator[Finding]:
    """A parameter without a default that nothing is given for."""
    yield from _problems(context, "missing-argument")


def unknown_argument(context: Context) -> Iterator[Finding]:
    """An argument that the method has no parameter for."""
    yield from _problems(context, "unknown-argument")


def too_many_arguments(context: Context) -> Iterator[Finding]:
    """More arguments by position than the method takes."""
    yield from _problems(context, "too-many-arguments")


def argument_twice(context: Context) -> Iterator[Finding]:
    """A parameter that is given twice."""
    yield from _problems(context, "argument-twice")


def returns_mismatch(context: Context) -> Iterator[Finding]:
    """``ray.method(num_returns=…)`` says another number than ``returns``."""
    for name, family in context.wiring.tasks.items():
        if family.target is None or not context.is_whole("tasks", name):
            continue
        signature = _signature(context, family.target.actor, family.target.method)
        said = signature.num_returns if signature is not None else None
        given: Sequence[str] | None = family.returns
        count = 1 if given is None else len(given)
        if said is not None and said > 1 and count != said:
            shown = "returns says nothing" if given is None else f"returns names {count}"
            message = f"{family.target.method} returns {said} values (ray.method), and {shown}"
            path: Path = ("tasks", name, "call") if given is None else ("tasks", name, "returns")
            names = ", ".join(["first", "second", "third"][:said]) if said <= 3 else "one, two, .."
            fix = f"write returns: [{names}] (your names for the {said} values)"
            made = _stated(context, signature.file, signature.line, "it is defined here") if signature else ()
            yield Finding("returns-mismatch", message, path, on="key", fix=fix, related=made)


RULES = (
    Rule("untrusted-class", untrusted),
    Rule("unknown-class-file", unknown_class_file),
    Rule("unreadable-class-file", unreadable_class_file),
    Rule("unknown-module", unknown_module),
    Rule("unknown-class", unknown_class),
    Rule("unreadable-class", unreadable_class),
    Rule("unknown-method", unknown_method),
    Rule("missing-argument", missing_argument),
    Rule("unknown-argument", unknown_argument),
    Rule("too-many-arguments", too_many_arguments),
    Rule("argument-twice", argument_twice),
    Rule("returns-mismatch", returns_mismatch),
)
