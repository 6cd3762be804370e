"""Rules about arguments: of tasks, setup calls, constructors and functions, against their signatures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cgspec.diagnostics import Finding, Path, Related, nearest
from cgspec.families import TaskFamily
from cgspec.merging import is_marked
from cgspec.rules.classes import info_of, method_span, signature_of, stated
from cgspec.rules.context import Context, Rule
from cgspec.signatures import Problem, Signature

_PROBLEM_CODES = {
    "missing": "missing-argument",
    "unexpected": "unknown-argument",
    "too-many": "too-many-arguments",
    "twice": "argument-twice",
    "no-self": "unknown-method",
}


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
        signature = signature_of(context, family.target.actor, family.target.method)
        if signature is not None:
            whole, path = context.is_whole("tasks", name), ("tasks", name)
            yield _Given(signature, *_arguments(context, family), path, ("with", "in"), (*path, "call"), whole)
    for number, call in enumerate(context.spec.setup):
        target = context.catalogue.target(call.call, ("setup", number, "call"))
        signature = signature_of(context, target.actor, target.method) if target is not None else None
        if signature is not None:
            where: Path = ("setup", number)
            yield _Given(signature, 0, list(call.with_ or {}), where, ("with",), (*where, "call"))
    yield from _constructors(context)
    yield from _functions(context)


def _constructors(context: Context) -> Iterator[_Given]:
    for actor in context.catalogue.actors.values():
        info = info_of(context, actor)
        if info is not None and info.init.readable and context.is_whole("actors", actor.name):
            path = ("actors", actor.name)
            yield _Given(info.init, *_counted(actor.spec.args), path, ("args",), (*path, "class"))


def _functions(context: Context) -> Iterator[_Given]:
    for ref, path in context.calls:
        read = context.classes.read_function(ref) if context.trust.refuses(ref) is None else None
        args = context.raw((*path[:-1], "args"))
        if isinstance(read, Signature) and read.readable and not is_marked(args):
            call = context.raw(path[:-1])
            whole = isinstance(call, dict) and all(key in ("$call", "args") for key in call)
            yield _Given(read, *_counted(args), path[:-1], ("args",), path, whole)


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
    for problem, given in _known_problems(context):
        if _PROBLEM_CODES[problem.kind] != code:
            continue
        where, on = _place(context, problem, given)
        signature = given.signature
        made = stated(context, signature.file, signature.line, f"{signature.name} is defined here")
        fix = problem.fix or _fix(context, problem, given)
        related = (*_twins(context, problem, given, where), *made)
        call = _text_at(context, where) if on == "value" and where == given.target else ""
        span = method_span(call) if "." in call and given.path[0] in ("tasks", "setup") else None
        yield Finding(code, problem.message, where, on=on, span=span, fix=fix, related=related)


def _all_problems(context: Context) -> Iterator[tuple[Problem, _Given]]:
    for given in _calls(context):
        for problem in _independent(given):
            if given.whole or problem.kind != "missing":
                yield problem, given


def _independent(given: _Given) -> list[Problem]:
    """What is wrong with a call, without what lacks only because it was given under a wrong name."""
    problems = given.signature.problems(given.positional, given.names)
    if len(problems) < 2:
        return list(problems)
    wrong = [name for problem in problems if problem.kind == "unexpected" for name in problem.names]
    kept = []
    for problem in problems:
        if problem.kind == "missing" and wrong:
            meant = {nearest(name, problem.names) for name in wrong}
            lacking = [name for name in problem.names if name not in meant]
            if len(lacking) <= sum(nearest(name, problem.names) is None for name in wrong):
                continue
            message = f"{given.signature} needs {' and '.join(lacking)}"
            problem = replace(problem, names=tuple(lacking), message=message)
        kept.append(problem)
    return kept


def _known_problems(context: Context) -> list[tuple[Problem, _Given]]:
    return context.once("problems", lambda: list(_all_problems(context)))


def missed_names(context: Context) -> set[str]:
    """The parameters of tasks that are given nothing."""
    found = _known_problems(context)
    return {
        name
        for problem, given in found
        if problem.kind == "missing" and "in" in given.sections
        for name in problem.names
    }


def _fix(context: Context, problem: Problem, given: _Given) -> str:
    """What helps where the problem does not say it."""
    named = " and ".join(problem.names)
    inputs = [name for name in problem.names if name in context.catalogue.inputs]
    if problem.kind == "missing" and "in" in given.sections and inputs:
        return f"give {named} under in, e.g. {inputs[0]}: inputs.{inputs[0]}, or under with (a constant)"
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


def lacks_self(context: Context) -> Iterator[Finding]:
    """A method without ``self``."""
    yield from _problems(context, "unknown-method")


RULES = (
    Rule("unknown-method", lacks_self),
    Rule("missing-argument", missing_argument),
    Rule("unknown-argument", unknown_argument),
    Rule("too-many-arguments", too_many_arguments),
    Rule("argument-twice", argument_twice),
)
