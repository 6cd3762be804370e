"""Rules about the user's code: classes, methods, arguments, and what may be imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from cgspec import classes
from cgspec.classes import BadReference, ClassRef
from cgspec.diagnostics import Finding, Path
from cgspec.families import ActorFamily, TaskFamily
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
        assert isinstance(ref, ClassRef)
        yield ref, path, "function"


def untrusted(context: Context) -> Iterator[Finding]:
    """A class or function outside what a spec may import."""
    for ref, path, _ in _refs(context):
        reason = context.trust.refuses(ref)
        if reason is not None:
            message, _, fix = reason.partition("; ")
            why = "a spec is code: a YAML edit alone must not be able to reach any module there is"
            yield Finding("untrusted-class", message, path, why=why, fix=fix)


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
            yield Finding(code, message, path, "note" if note else "error", span=(start, end), fix=fix)


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
            yield Finding("unreadable-class", message, ("actors", actor.name, "class"), "note")


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
        if isinstance(found, NotFound):
            call = _call_text(context, path)
            yield Finding("unknown-method", found.message, path, span=(len(call) - len(method), len(call)))


def _call_text(context: Context, path: Path) -> str:
    if path[0] == "setup":
        return context.spec.setup[int(path[1])].call
    return context.spec.tasks[str(path[1])].call or ""


def _signature(context: Context, actor: ActorFamily, method: str) -> Signature | None:
    info = _info(context, actor)
    found = info.method(method) if info is not None else None
    return found if isinstance(found, Signature) and found.readable else None


def _task_problems(context: Context) -> Iterator[tuple[Problem, Signature, Path, str]]:
    """What is wrong with each call: the problem, the signature, where, and how the arguments were given."""
    for name, family in context.wiring.tasks.items():
        if family.target is None:
            continue
        signature = _signature(context, family.target.actor, family.target.method)
        if signature is None:
            continue
        positional, by_name = _arguments(context, family)
        for problem in signature.problems(positional, by_name):
            if problem.kind == "missing" and not context.is_whole("tasks", name):
                continue
            yield problem, signature, ("tasks", name), "in"
    for number, call in enumerate(context.spec.setup):
        target = context.catalogue.target(call.call, ("setup", number, "call"))
        signature = _signature(context, target.actor, target.method) if target is not None else None
        if signature is not None:
            for problem in signature.problems(0, list(call.with_ or {})):
                yield problem, signature, ("setup", number), "with"
    for actor in context.catalogue.actors.values():
        info = _info(context, actor)
        if info is not None and info.init.readable and context.is_whole("actors", actor.name):
            args = actor.spec.args
            positional = len(args) if isinstance(args, list) else 0
            for problem in info.init.problems(positional, [] if isinstance(args, list) else list(args or {})):
                yield problem, info.init, ("actors", actor.name), "args"


def _arguments(context: Context, family: TaskFamily) -> tuple[int, list[str]]:
    """How many arguments a task gives by position, and the names of the others."""
    wires = context.wiring.wires.get(family.name, ())
    positional = sum(wire.positions for wire in wires if wire.name is None)
    names = [wire.name for wire in wires if wire.name is not None]
    return positional, [*names, *(family.spec.with_ or {})]


def _problems(context: Context, code: str) -> Iterator[Finding]:
    for problem, signature, path, key in _task_problems(context):
        if _PROBLEM_CODES[problem.kind] == code:
            where, on = _place(context, problem, path, key)
            related = f" ({signature.file}:{signature.line})" if signature.line else ""
            yield Finding(code, problem.message, where, on=on, fix=problem.fix, why=_why(code, signature, related))


def _why(code: str, signature: Signature, place: str) -> str:
    return f"it is defined{place.replace('(', 'in ').replace(')', '')}" if place and code != "unknown-method" else ""


def _place(context: Context, problem: Problem, path: Path, key: str) -> tuple[Path, Literal["key", "value"]]:
    """The path of the argument that is meant, or of the call."""
    entry = _entry(context, path)
    for name in problem.names:
        for section in ("with", key):
            given = entry.get(section)
            if isinstance(given, dict) and name in given and problem.kind != "missing":
                return (*path, section, name), "key"
    if path[0] == "tasks":
        return (*path, "in" if problem.kind == "too-many" else "call"), "value"
    if path[0] == "setup":
        return (*path, "call"), "value"
    return ((*path, "args") if entry.get("args") else (*path, "class")), "value"


def _entry(context: Context, path: Path) -> dict[str, object]:
    if path[0] == "tasks":
        task = context.spec.tasks[str(path[1])]
        return {"in": task.in_, "with": task.with_}
    if path[0] == "setup":
        return {"with": context.spec.setup[int(path[1])].with_}
    return {"args": context.spec.actors[str(path[1])].args}


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
            path: Path = ("tasks", name) if given is None else ("tasks", name, "returns")
            yield Finding("returns-mismatch", message, path, on="key", fix=f"give returns {said} names")


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
