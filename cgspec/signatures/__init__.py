"""What can be called, as data: classes, signatures, and what is wrong with a call; ``reader`` fills them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cgspec.diagnostics import nearest, suggest

ParameterKind = Literal["positional-only", "positional", "var-positional", "keyword-only", "var-keyword"]
SignatureKind = Literal["function", "async", "generator", "async generator"]
ProblemKind = Literal["missing", "unexpected", "too-many", "twice", "no-self"]
NotFoundKind = Literal[
    "file", "unreadable", "syntax", "module", "no-source", "name", "not-a-class", "not-a-function", "method"
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; ``default`` is its source text, None where an argument is required."""

    name: str
    kind: ParameterKind = "positional"
    default: str | None = None

    @property
    def required(self) -> bool:
        return self.default is None and not self.kind.startswith("var-")

    def __str__(self) -> str:
        stars = {"var-positional": "*", "var-keyword": "**"}.get(self.kind, "")
        return stars + self.name + ("" if self.default is None else f"={self.default}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a call: ``names`` are the parameters or arguments that are meant."""

    kind: ProblemKind
    names: tuple[str, ...]
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why something that a spec names cannot be called.

    Attributes:
        kind: which of the ways it is.
        message: one sentence for the user, the nearest alternative included.
        choices: what there is instead, e.g. the classes of the file.
        line: the line in ``file`` that explains it, or 0.
    """

    kind: NotFoundKind
    message: str
    choices: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function, a bound method or a constructor takes.

    Attributes:
        name: how the call is shown: the function, the method, or the class for a constructor.
        parameters: without the receiver.
        receiver: ``self`` or ``cls``, filled in by Python; None where there is none.
        num_returns: what ``ray.method`` says, if it says a number.
        readable: False where the parameters are not certain without importing; ``why`` is then a sentence.
        lacks_receiver: an ordinary method without ``self``: any call of it fails.
        file, line: where it is defined; line 0 where that is nowhere.
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    receiver: Parameter | None = None
    num_returns: int | None = None
    kind: SignatureKind = "function"
    readable: bool = True
    why: str = ""
    lacks_receiver: bool = False
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self._shown()) if self.readable else '…'})"

    def _shown(self) -> Iterator[str]:
        listed = (() if self.receiver is None else (self.receiver,)) + self.parameters
        for number, parameter in enumerate(listed):
            before = listed[number - 1].kind if number else "positional"
            if before == "positional-only" != parameter.kind:
                yield "/"
            if parameter.kind == "keyword-only" and before not in ("keyword-only", "var-positional"):
                yield "*"
            yield str(parameter)
        if listed and listed[-1].kind == "positional-only":
            yield "/"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that an argument can be given for, in order, those of ``*`` and ``**`` left out."""
        return tuple(p.name for p in self.parameters if not p.kind.startswith("var-"))

    def problems(self, positional: int, names: Sequence[str]) -> tuple[Problem, ...]:
        """What is wrong with a call of ``positional`` arguments by position and ``names`` by name.

        A positional-only parameter may be named, since the worker puts it in its place.
        """
        if not self.readable:
            return ()
        if self.lacks_receiver:
            return (
                Problem(
                    "no-self",
                    (),
                    f"{self} has no self, so it cannot be called on an object",
                    "give it self as its first parameter, or make it a @staticmethod",
                ),
            )
        return (
            *self._too_many(positional),
            *self._twice(positional, names),
            *self._unexpected(names),
            *self._missing(positional, names),
        )

    def _placed(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.kind in ("positional-only", "positional"))

    def _takes(self, kind: ParameterKind) -> bool:
        return any(p.kind == kind for p in self.parameters)

    def _too_many(self, positional: int) -> Iterator[Problem]:
        most = len(self._placed())
        if positional > most and not self._takes("var-positional"):
            takes = f"{most} argument{'' if most == 1 else 's'} by position"
            by_name = [p.name for p in self.parameters if p.kind == "keyword-only"]
            fix = f"give {', '.join(by_name)} by name" if by_name else ""
            yield Problem("too-many", (), f"{self} takes {takes}, {positional} are given", fix)

    def _twice(self, positional: int, names: Sequence[str]) -> Iterator[Problem]:
        placed = self._placed()[:positional]
        for name in dict.fromkeys(names):
            if name in placed:
                yield Problem(
                    "twice",
                    (name,),
                    f"{name} of {self} is given twice: by position (number {placed.index(name) + 1}) and by name",
                )
            elif names.count(name) > 1:
                yield Problem("twice", (name,), f"{name} of {self} is given twice by name")

    def _unexpected(self, names: Sequence[str]) -> Iterator[Problem]:
        known, open_ended = set(self.names), self._takes("var-keyword")
        free = [name for name in self.names if name not in names]
        for name in dict.fromkeys(names):
            if self.receiver is not None and name == self.receiver.name and self.receiver.kind == "positional":
                yield Problem("unexpected", (name,), f"{name} of {self} is the object itself and cannot be given")
            elif name not in known and not open_ended:
                offered = free if nearest(name, free) else list(self.names)
                fix = suggest(name, offered, noun="its parameters") if offered else "it takes none by name"
                yield Problem("unexpected", (name,), f"{self} has no parameter {name}", fix)

    def _missing(self, positional: int, names: Sequence[str]) -> Iterator[Problem]:
        given = {*self._placed()[:positional], *names}
        missing = tuple(p.name for p in self.parameters if p.required and p.name not in given)
        if missing:
            yield Problem("missing", missing, f"{self} needs {_listed(missing)}")


@dataclass(frozen=True, slots=True)
class ClassInfo:
    """A class as its source describes it, inherited methods included.

    Attributes:
        name: its qualified name.
        methods: what can be called on an object by name, own methods first; some may not be ``readable``.
        init: what the constructor takes; not ``readable`` where that is in doubt.
        attributes: names that are certainly no methods, and what they are: ``a property (model.py:7)``.
        complete: whether a name that is in neither certainly does not exist; else ``why_incomplete`` is a sentence.
        optional: names in ``methods`` that are not offered as choices (private, or data that may be callable).
    """

    name: str
    methods: Mapping[str, Signature]
    init: Signature
    attributes: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    why_incomplete: str = ""
    file: str = ""
    line: int = 0
    optional: frozenset[str] = frozenset()

    def method(self, name: str) -> Signature | NotFound:
        """The method of that name; an unreadable signature where it may exist; else why there is none."""
        if name in self.methods:
            return self.methods[name]
        if name in self.attributes:
            message = f"{name} of {self.name} is {self.attributes[name]}, not a method"
            return NotFound("method", message, self.choices, self.file, self.line)
        if not self.complete:
            return Signature(name, readable=False, why=self.why_incomplete, file=self.file)
        hint = suggest(name, self.choices, noun="its methods")
        return NotFound("method", f"{self.name} has no method {name}; {hint}", self.choices, self.file, self.line)

    @property
    def choices(self) -> tuple[str, ...]:
        """The methods to offer: the public ones, own ones first."""
        return tuple(name for name in self.methods if name not in self.optional)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
