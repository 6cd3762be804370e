"""The conditions of ``expect`` on one value: each is a function from what the spec says to a look at a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cgspec import comparison
from cgspec.showing import dtype_name, is_array, is_tensor, short, type_name
from cgspec.values import Scope, Value


@dataclass(frozen=True)
class Seen:
    """What a condition is judged in the light of: the iteration's scope, and its inputs by name.

    A family of inputs stands there under its own name as the list of its members, too.
    """

    scope: Scope
    inputs: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One look at one value; ``expected`` and ``found`` are shown with ``str``, and only of the look that is told."""

    passed: bool
    expected: object
    found: object


@dataclass(frozen=True, slots=True)
class Shown:
    """A value whose text is made when it is asked for."""

    value: object

    def __str__(self) -> str:
        return short(self.value)


Condition = Callable[[Any, Seen], Outcome]
Read = Callable[[Any], Value]
"""Parses raw spec data into a value."""


def _maker(value: Value) -> Callable[[Seen], Any]:
    """Makes a value per iteration where it uses the iteration, else once."""
    if value.per_iteration:
        return lambda seen: value.make(seen.scope)
    made: list[Any] = []

    def make(seen: Seen) -> Any:
        if not made:
            made.append(value.make(seen.scope))
        return made[0]

    return make


def _equals(said: Any, read: Read) -> Condition:
    expected = _maker(read(said))

    def look(found: Any, seen: Seen) -> Outcome:
        wanted = expected(seen)
        return _compared(wanted, found, comparison.equal(wanted, found))

    return look


def _compared(wanted: object, found: object, difference: comparison.Difference | None) -> Outcome:
    if difference is None:
        return Outcome(True, Shown(wanted), Shown(found))
    return Outcome(
        False, f"at {difference.where}: {difference.expected}" if difference.where else short(wanted), str(difference)
    )


def _equals_input(said: Any, read: Read) -> Condition:
    name = str(said).removeprefix("inputs.")

    def look(found: Any, seen: Seen) -> Outcome:
        wanted = seen.inputs[name]
        return _compared(wanted, found, comparison.equal(wanted, found))

    return look


def _close(said: Any, read: Read) -> Condition:
    expected = _maker(read(said.to))

    def look(found: Any, seen: Seen) -> Outcome:
        wanted = expected(seen)
        return _compared(wanted, found, comparison.close(wanted, found, rtol=said.rtol, atol=said.atol))

    return look


def _finite(said: Any, read: Read) -> Condition:
    def look(found: Any, seen: Seen) -> Outcome:
        if fault := fault_of(found):
            return Outcome(False, "finite numbers", fault)
        return Outcome(True, "finite numbers", Shown(found))

    return look


def fault_of(value: object) -> str:
    """Why a value is not finite numbers; empty if it is."""
    numbers, fault = _finite_numbers(value)
    return fault if fault or numbers else f"{short(value)}, which holds no numbers"


def _finite_numbers(value: Any) -> tuple[bool, str]:
    """Whether there is anything to look at (an empty list or tensor counts), and what is not finite in it."""
    if is_tensor(value) or is_array(value):
        return True, _not_finite(value)
    if isinstance(value, (list, tuple, Mapping)):
        steps = value.items() if isinstance(value, Mapping) else enumerate(value)
        seen = not value
        for step, item in steps:
            numbers, fault = _finite_numbers(item)
            if fault:
                return True, fault + f" in [{step!r}]"
            seen = seen or numbers
        return seen, ""
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        good = isinstance(value, int) or (math.isfinite(value.real) and math.isfinite(value.imag))
        return True, "" if good else short(value)
    if hasattr(value, "dtype") and hasattr(value, "item") and not isinstance(value.item(), type(value)):
        return _finite_numbers(value.item())
    return False, ""


def _not_finite(value: Any) -> str:
    import torch

    tensor = value.detach() if is_tensor(value) else torch.as_tensor(value)
    tensor = tensor.float() if "float8" in str(tensor.dtype) else tensor
    count = int((~torch.isfinite(tensor)).sum())
    if not count:
        return ""
    nan = int(torch.isnan(tensor).sum())
    return f"{count} of {tensor.numel()} elements not finite ({nan} NaN, {count - nan} infinite): {short(value)}"


def _shape(said: Any, read: Read) -> Condition:
    expected = _maker(read(said))

    def look(found: Any, seen: Seen) -> Outcome:
        wanted = [*expected(seen)]
        if not hasattr(found, "shape"):
            return Outcome(False, f"shape {wanted}", f"{type_name(found)}, which has no shape")
        shape = [*found.shape]
        return Outcome(shape == wanted, f"shape {wanted}", f"shape {shape}")

    return look


def _dtype(said: Any, read: Read) -> Condition:
    expected = _maker(read(said))

    def look(found: Any, seen: Seen) -> Outcome:
        wanted = expected(seen)
        wanted = dtype_name(wanted) or str(wanted)
        name = dtype_name(found)
        if name is None:
            return Outcome(False, wanted, f"{type_name(found)}, which has no dtype")
        return Outcome(name == ALIASES.get(wanted, wanted), wanted, name)

    return look


ALIASES = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "long": "int64"}
"""torch's second names of dtypes."""


def _length(said: Any, read: Read) -> Condition:
    expected = _maker(read(said))

    def look(found: Any, seen: Seen) -> Outcome:
        wanted = expected(seen)
        if not hasattr(found, "__len__") or (hasattr(found, "ndim") and found.ndim == 0):
            return Outcome(False, f"length {wanted}", f"{type_name(found)}, which has no length")
        return Outcome(len(found) == wanted, f"length {wanted}", f"length {len(found)}: {short(found, 100)}")

    return look


def _all_equal(said: Any, read: Read) -> Condition:
    wanted = "all elements equal to the first"

    def look(found: Any, seen: Seen) -> Outcome:
        if is_tensor(found) or is_array(found):
            found = found.reshape(-1)
            good = not len(found) or bool((found == found[0]).all())
            return Outcome(good, wanted, Shown(found))
        if not isinstance(found, (list, tuple)):
            return Outcome(False, wanted, f"{type_name(found)}, which has no elements")
        for number, item in enumerate(found):
            if (difference := comparison.equal(found[0], item)) is not None:
                return Outcome(False, wanted, f"element {number}: {difference}, the first: {difference.expected}")
        return Outcome(True, wanted, Shown(found))

    return look


CONDITIONS: dict[str, Callable[[Any, Read], Condition]] = {
    "equals": _equals,
    "equals_input": _equals_input,
    "close": _close,
    "finite": _finite,
    "shape": _shape,
    "dtype": _dtype,
    "length": _length,
    "all_equal": _all_equal,
}
"""The conditions on an output, by their key in ``expect``."""
