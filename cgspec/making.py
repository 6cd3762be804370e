"""What values are made from, and how each plain ``$`` value is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cgspec.classes import ClassRef
from cgspec.diagnostics import suggest

DTYPES: dict[str, int] = {
    "float16": 2, "half": 2, "bfloat16": 2, "float32": 4, "float": 4, "float64": 8, "double": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1, "int16": 2, "short": 2, "int32": 4, "int64": 8,
    "long": 8, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""torch's dtype names and the bytes of one element."""

_NOTHING: frozenset[str] = frozenset()

FunctionRef = ClassRef
"""A user's function, named as classes are."""


class CannotMake(ValueError):
    """A value that cannot be made; the message is a sentence for the user."""


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


def torch_dtype(name: str) -> Any:
    """torch's dtype of that name; imports torch."""
    import torch

    return getattr(torch, name)


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
