"""Values of a spec: literals, and what a ``$`` marks, parsed once, bound to an index, made when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cgspec import expressions
from cgspec.making import DTYPES as DTYPES
from cgspec.making import MAKERS as MAKERS
from cgspec.making import CannotMake as CannotMake
from cgspec.making import FunctionRef as FunctionRef
from cgspec.making import Scope as Scope
from cgspec.making import torch_dtype as torch_dtype

MAX_TEXT = 1_000_000
_NOTHING: frozenset[str] = frozenset()


class Value:
    """Anything that a spec can say as a value.

    ``uses`` holds what must be known before it can be made: ``i``, ``device``, ``index.<axis>``, ``size.<axis>``,
    ``env``, ``torch``, ``call`` and ``feedback``.
    """

    __slots__ = ()
    uses: frozenset[str]

    @property
    def per_iteration(self) -> bool:
        """Whether it is made anew in every iteration."""
        return "i" in self.uses

    def bind(self, names: Mapping[str, object]) -> Value:
        """Fills in names (``index.pp``, ``size.pp``); what needs nothing more becomes a literal.

        Raises:
            CannotMake: an expression cannot be computed.
        """
        return self

    def make(self, scope: Scope) -> Any:
        """The Python object.

        Raises:
            CannotMake: it cannot be made, with a sentence for the user.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Literal(Value):
    """Plain data."""

    data: Any
    uses: frozenset[str] = _NOTHING

    def make(self, scope: Scope) -> Any:
        return self.data

    def __str__(self) -> str:
        return repr(self.data)


@dataclass(frozen=True, slots=True)
class Items(Value):
    """A list in which something is not literal."""

    items: tuple[Value, ...]
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        return join_items([item.bind(names) for item in self.items])

    def make(self, scope: Scope) -> Any:
        return [item.make(scope) for item in self.items]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True, slots=True)
class Entries(Value):
    """A map in which something is not literal."""

    entries: tuple[tuple[Any, Value], ...]
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        return join_entries([(key, value.bind(names)) for key, value in self.entries])

    def make(self, scope: Scope) -> Any:
        return {key: value.make(scope) for key, value in self.entries}

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}: {value}" for key, value in self.entries) + "}"


@dataclass(frozen=True, slots=True)
class Device(Value):
    """``$device``."""

    uses: frozenset[str] = frozenset({"device"})

    def make(self, scope: Scope) -> Any:
        return scope.device

    def __str__(self) -> str:
        return "$device"


@dataclass(frozen=True, slots=True)
class Expr(Value):
    """``{$expr: text}``, or ``$name`` where the name is not a constant."""

    expression: expressions.Expression
    known: Mapping[str, Value]
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        data: dict[str, object] = {}
        for name in self.expression.names:
            known_value = self.known.get(name)
            if name in names:
                data[name] = names[name]
            elif isinstance(known_value, Literal):
                data[name] = known_value.data
            else:
                return self._bind_partly(names)
        return Literal(_evaluate(self.expression, data.__getitem__))

    def _bind_partly(self, names: Mapping[str, object]) -> Value:
        known = dict(self.known)
        known.update((name, Literal(names[name])) for name in self.expression.names if name in names)
        known = {name: value.bind(names) for name, value in known.items()}
        return join_expr(self.expression, known)

    def make(self, scope: Scope) -> Any:
        def resolve(name: str) -> object:
            if name in self.known:
                return self.known[name].make(scope)
            if name == "i":
                if scope.i is None:
                    raise CannotMake("there is no iteration here")
                return scope.i
            if name == "device":
                return scope.device
            if name in DTYPES:
                return torch_dtype(name)
            raise CannotMake(f"{name} is not known here")

        return _evaluate(self.expression, resolve)

    def __str__(self) -> str:
        return self.expression.text


@dataclass(frozen=True, slots=True)
class Text(Value):
    """Text with ``${...}`` inside; ``parts`` are literals and values in turn."""

    parts: tuple[Value, ...]
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        return join_text([part.bind(names) for part in self.parts])

    def make(self, scope: Scope) -> Any:
        return "".join(str(part.make(scope)) for part in self.parts)

    def __str__(self) -> str:
        return "".join(str(p.data) if isinstance(p, Literal) else "${" + str(p) + "}" for p in self.parts)


@dataclass(frozen=True, slots=True)
class Marked(Value):
    """A map with a ``$key``: ``maker`` makes it from its arguments, made first."""

    key: str
    arguments: Mapping[str, Value]
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        return Marked(self.key, *_bound(self.arguments, names, self.uses))

    def make(self, scope: Scope) -> Any:
        return MAKERS[self.key].make({name: value.make(scope) for name, value in self.arguments.items()}, scope)

    def __str__(self) -> str:
        main, *rest = self.arguments.items()
        shown = [str(main[1]), *(f"{name}={value}" for name, value in rest)]
        return f"{self.key}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Call(Value):
    """``{$call: "data.py:batch", args: {...}}``."""

    function: FunctionRef
    arguments: Value
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        arguments = self.arguments.bind(names)
        return Call(self.function, arguments, arguments.uses | {"call"})

    def make(self, scope: Scope) -> Any:
        function, arguments = scope.load(self.function), self.arguments.make(scope)
        return function(**arguments) if isinstance(arguments, dict) else function(*arguments)

    def __str__(self) -> str:
        return f"{self.function}({self.arguments})"


@dataclass(frozen=True, slots=True)
class Feedback(Value):
    """``{$feedback: output, lag: 1, first: ...}``: an output of ``lag`` iterations ago."""

    output: str
    lag: int
    first: Value
    uses: frozenset[str]

    def bind(self, names: Mapping[str, object]) -> Value:
        first = self.first.bind(names)
        return Feedback(self.output, self.lag, first, first.uses | {"i", "feedback"})

    def make(self, scope: Scope) -> Any:
        if scope.i is None or scope.i < self.lag:
            return self.first.make(scope)
        return scope.feedback(self.output, self.lag)

    def __str__(self) -> str:
        return f"feedback({self.output}, lag={self.lag})"


def _evaluate(expression: expressions.Expression, resolve: Callable[[str], object]) -> object:
    try:
        return expression.evaluate(resolve)
    except expressions.ExpressionError as error:
        raise CannotMake(f"`{expression.text}` cannot be computed: {error}") from None


def _union(values: list[Value]) -> frozenset[str]:
    return frozenset().union(*(value.uses for value in values))


def join_items(items: list[Value]) -> Value:
    if all(isinstance(item, Literal) for item in items):
        return Literal([item.data for item in items if isinstance(item, Literal)])
    return Items(tuple(items), _union(items))


def join_entries(entries: list[tuple[Any, Value]]) -> Value:
    if all(isinstance(value, Literal) for _, value in entries):
        return Literal({key: value.data for key, value in entries if isinstance(value, Literal)})
    return Entries(tuple(entries), _union([value for _, value in entries]))


def join_text(parts: list[Value]) -> Value:
    if all(isinstance(part, Literal) for part in parts):
        texts = [str(part.data) for part in parts if isinstance(part, Literal)]
        if sum(map(len, texts)) > MAX_TEXT:
            raise CannotMake(f"the text becomes longer than {MAX_TEXT} characters")
        return Literal("".join(texts))
    return Text(tuple(parts), _union(parts))


def join_expr(expression: expressions.Expression, known: Mapping[str, Value]) -> Value:
    open_names = {name for name in expression.names if name not in known}
    uses = _union(list(known.values())) | {("torch" if name in DTYPES else name) for name in open_names}
    if not open_names and all(isinstance(value, Literal) for value in known.values()):
        return Literal(_evaluate(expression, lambda name: known[name].make(Scope())))
    return Expr(expression, known, frozenset(uses))


def _bound(
    arguments: Mapping[str, Value], names: Mapping[str, object], uses: frozenset[str]
) -> tuple[Mapping[str, Value], frozenset[str]]:
    bound = {name: value.bind(names) for name, value in arguments.items()}
    own = {use for use in uses if use in {"i", "torch", "env"}}
    return bound, _union(list(bound.values())) | own


SPECIAL = ("$expr", "$call", "$feedback")
