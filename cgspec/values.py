"""Values of a spec: literals, and what a ``$`` marks, parsed once, bound to an index, made when they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cgspec import expressions
from cgspec.classes import ClassRef
from cgspec.diagnostics import suggest

DTYPES: dict[str, int] = {
    "float16": 2, "half": 2, "bfloat16": 2, "float32": 4, "float": 4, "float64": 8, "double": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1, "int16": 2, "short": 2, "int32": 4, "int64": 8,
    "long": 8, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""torch's dtype names and the bytes of one element."""

_NOTHING: frozenset[str] = frozenset()
MAX_TEXT = 1_000_000


class CannotMake(ValueError):
    """A value that cannot be made; the message is a sentence for the user."""


FunctionRef = ClassRef
"""A user's function, named as classes are."""


def _no_function(ref: FunctionRef) -> Callable[..., object]:
    raise CannotMake(f"{ref} cannot be called here")


def _no_feedback(output: str, lag: int) -> object:
    raise CannotMake(f"there is no output {output} to feed back here")


@dataclass(slots=True)
class Scope:
    """What a value is made from.

    Attributes:
        i: the iteration, from 0 in each phase; None where there is none.
        device: what ``$device`` is: ``cuda`` or ``cpu``.
        load: imports a user's function.
        feedback: gives an output of ``lag`` iterations ago, or raises KeyError when there is none yet.
    """

    i: int | None = None
    device: str = "cpu"
    load: Callable[[FunctionRef], Callable[..., object]] = _no_function
    feedback: Callable[[str, int], object] = _no_feedback


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


def torch_dtype(name: str) -> Any:
    """torch's dtype of that name; imports torch."""
    import torch

    return getattr(torch, name)


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


@dataclass(frozen=True)
class Maker:
    """One ``$key``.

    Attributes:
        required, optional: the keys beside the ``$key`` (or inside its map, where ``nested``).
        nested: whether the arguments stand in the map under the key, as in ``{$tensor: {shape: ...}}``.
        make: from the made arguments and the scope; the main argument has the key's name.
        uses: what it needs by itself.
    """

    make: Callable[[Mapping[str, Any], Scope], Any]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    nested: bool = False
    uses: frozenset[str] = field(default=_NOTHING)


def _dtype(name: object) -> Any:
    import torch

    if isinstance(name, torch.dtype):
        return name
    if name not in DTYPES:
        raise CannotMake(f"there is no dtype {name!r}; {suggest(str(name), DTYPES, noun='dtypes')}")
    return torch_dtype(str(name))


def _make_tensor(arguments: Mapping[str, Any], scope: Scope) -> Any:
    import torch

    return torch.full(tuple(arguments["shape"]), arguments.get("fill", 0), dtype=_dtype(arguments["dtype"]))


def _make_random(arguments: Mapping[str, Any], scope: Scope) -> Any:
    """Standard normal for floating and complex dtypes, 0 or 1 for bool, else uniform in [0, 100)."""
    import torch

    shape, dtype = tuple(arguments["shape"]), _dtype(arguments["dtype"])
    generator = torch.Generator().manual_seed(int(arguments.get("seed", 0)))
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 100, shape, generator=generator).to(dtype)


def _make_env(arguments: Mapping[str, Any], scope: Scope) -> Any:
    name = arguments["$env"]
    if name in os.environ:
        return os.environ[name]
    if "default" in arguments:
        return arguments["default"]
    raise CannotMake(f"the environment has no {name}, and $env gives no default")


def _make_count(arguments: Mapping[str, Any], scope: Scope) -> Any:
    if scope.i is None:
        raise CannotMake("there is no iteration to count here")
    return arguments.get("from", 0) + arguments.get("step", 1) * scope.i


def _make_values(arguments: Mapping[str, Any], scope: Scope) -> Any:
    values, i = arguments["$values"], scope.i
    if i is None:
        raise CannotMake("there is no iteration to pick a value for here")
    if i >= len(values) and not arguments.get("cycle", False):
        raise CannotMake(f"$values has {len(values)} values and iteration {i} needs another; say `cycle: true`")
    return values[i % len(values)]


MAKERS: dict[str, Maker] = {
    "$dtype": Maker(lambda arguments, scope: _dtype(arguments["$dtype"]), uses=frozenset({"torch"})),
    "$tensor": Maker(_make_tensor, ("shape", "dtype"), ("fill",), nested=True, uses=frozenset({"torch"})),
    "$random": Maker(_make_random, ("shape", "dtype"), ("seed",), nested=True, uses=frozenset({"torch"})),
    "$env": Maker(_make_env, (), ("default",), uses=frozenset({"env"})),
    "$count": Maker(_make_count, (), ("from", "step"), nested=True, uses=frozenset({"i"})),
    "$values": Maker(_make_values, (), ("cycle",), uses=frozenset({"i"})),
}
"""The plain ``$`` values; ``$expr``, ``$call`` and ``$feedback`` have shapes of their own."""

SPECIAL = ("$expr", "$call", "$feedback")
