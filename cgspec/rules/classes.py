"""Rules about the user's code: classes, methods, arguments, and what may be imported."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence

from cgspec import classes
from cgspec.classes import BadReference, ClassRef
from cgspec.diagnostics import Finding, Path, Place, Related, Severity
from cgspec.families import ActorFamily
from cgspec.rules.context import Context, Rule
from cgspec.signatures import ClassInfo, NotFound, Signature

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
            made = stated(context, read.file, read.line, "Python stops reading here" if read.kind == "syntax" else "")
            severity: Severity = "note" if note else "error"
            why = _WHY_NOTE if note else ""
            yield Finding(code, message, path, severity, span=(start, end), why=why, fix=fix, related=made)


_WHY_NOTE = "classes are read without importing them, so calls of this one are judged only when it runs"


def stated(context: Context, file: str, line: int, what: str) -> tuple[Related, ...]:
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
        info = info_of(context, actor)
        if info is not None and not info.complete:
            message = f"{actor.spec.class_} cannot be read whole without importing it: {info.why_incomplete}"
            yield Finding("unreadable-class", message, ("actors", actor.name, "class"), "note", why=_WHY_NOTE)


def info_of(context: Context, actor: ActorFamily) -> ClassInfo | None:
    """The actor's class, where it can be read and may be imported."""
    return context.once(("class", actor.name), lambda: _read_info(context, actor))


def _read_info(context: Context, actor: ActorFamily) -> ClassInfo | None:
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
        info = info_of(context, actor)
        found = info.method(method) if info is not None else None
        if info is not None and isinstance(found, NotFound):
            call = _call_text(context, path)
            made = stated(context, info.file, info.line, f"{info.name} is defined here")
            yield Finding("unknown-method", found.message, path, span=method_span(call), related=made)


def method_span(call: str) -> tuple[int, int]:
    return call.rfind(".") + 1, len(call)


def _call_text(context: Context, path: Path) -> str:
    if path[0] == "setup":
        return context.spec.setup[int(path[1])].call
    return context.spec.tasks[str(path[1])].call or ""


def signature_of(context: Context, actor: ActorFamily, method: str) -> Signature | None:
    info = info_of(context, actor)
    found = info.method(method) if info is not None else None
    return found if isinstance(found, Signature) and found.readable else None


def returns_mismatch(context: Context) -> Iterator[Finding]:
    """``ray.method(num_returns=…)`` says another number than ``returns``."""
    for name, family in context.wiring.tasks.items():
        if family.target is None or not context.is_whole("tasks", name):
            continue
        signature = signature_of(context, family.target.actor, family.target.method)
        said = signature.num_returns if signature is not None else None
        given: Sequence[str] | None = family.returns
        count = 1 if given is None else len(given)
        if said is not None and said > 1 and count != said:
            shown = "returns says nothing" if given is None else f"returns names {count}"
            message = f"{family.target.method} returns {said} values (ray.method), and {shown}"
            path: Path = ("tasks", name, "call") if given is None else ("tasks", name, "returns")
            names = ", ".join(["first", "second", "third"][:said]) if said <= 3 else "one, two, .."
            fix = f"write returns: [{names}] (your names for the {said} values)"
            made = stated(context, signature.file, signature.line, "it is defined here") if signature else ()
            yield Finding("returns-mismatch", message, path, on="key", fix=fix, related=made)


def async_method(context: Context) -> Iterator[Finding]:
    """A method that is a coroutine or a generator: a call of it gives no result."""
    for actor, method, path in _called(context):
        signature = signature_of(context, actor, method)
        if signature is not None and signature.kind != "function":
            call = _call_text(context, path)
            what = "a generator" if "generator" in signature.kind else "an async method"
            message = f"{method} of {actor.spec.class_} is {what}, and a task needs a method that returns its result"
            why = "a graph calls methods in the actor's own loop, and a coroutine or a generator cannot be sent"
            fix = "return a list, or the values themselves" if "generator" in signature.kind else "make it a plain def"
            made = stated(context, signature.file, signature.line, f"{method} is defined here")
            yield Finding("async-method", message, path, span=method_span(call), why=why, fix=fix, related=made)


RULES = (
    Rule("untrusted-class", untrusted),
    Rule("unknown-class-file", unknown_class_file),
    Rule("unreadable-class-file", unreadable_class_file),
    Rule("unknown-module", unknown_module),
    Rule("unknown-class", unknown_class),
    Rule("unreadable-class", unreadable_class),
    Rule("unknown-method", unknown_method),
    Rule("async-method", async_method),
    Rule("returns-mismatch", returns_mismatch),
)
