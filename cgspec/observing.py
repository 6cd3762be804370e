"""What a condition of ``expect`` would have to say so that it holds of what was seen: flow YAML, or why there is none.

All that is kept of any number of looks is one text, so memory is flat however many iterations and however large results
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cgspec import comparison, expressions
from cgspec.diagnostics import Path
from cgspec.showing import dtype_name, is_array, is_tensor, type_name
from cgspec.values import DTYPES
from cgspec.writing import as_flow

MOST = 4000
"""Characters of a value that is still written into a spec."""
MOST_NUMBERS = 64
"""Elements of a tensor that is still written out under ``close``."""
DEEPEST = 20
MOST_BITS = 900
"""Of a whole number: a little less than the 300 digits that a spec may have."""


class CannotWrite(ValueError):
    """A value that no literal in a spec equals; the message says why, for people."""


@dataclass(frozen=True)
class Observed:
    """What a condition that failed saw.

    Attributes:
        what: the condition in words, as in its verdict.
        path: of the value that it expects.
        text: the value under which it would have held, as flow YAML; empty where there is none, and ``why`` says why.
    """

    what: str
    path: Path
    text: str = ""
    why: str = ""


@dataclass
class Sight:
    """Sums up what one condition saw, look by look."""

    condition: str
    text: str = ""
    why: str = ""

    def see(self, value: object) -> None:
        """Sees one more value."""
        if self.why:
            return
        try:
            text = OBSERVABLE[self.condition](value)
        except CannotWrite as error:
            self.text, self.why = "", str(error)
            return
        if self.text and text != self.text:
            self.why = f"it is not the same in every iteration (e.g. {_brief(self.text)} and {_brief(text)})"
        self.text = "" if self.why else text

    def blind(self, why: str) -> None:
        """There was nothing to see."""
        self.text, self.why = "", self.why or why


def _brief(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _equals(value: Any) -> str:
    if (is_tensor(value) or is_array(value)) and value.ndim:
        raise CannotWrite(f"{type_name(value)} cannot be written under equals; expect close, or shape and dtype")
    data = _plain(value, DEEPEST, exact=True)
    if comparison.equal(data, value) is not None:
        nan = "NaN equals nothing" if "nan" in _brief(repr(data)) else ""
        raise CannotWrite(nan or f"nothing that can be written equals {type_name(value)}")
    return _flow(data)


def _close(value: Any) -> str:
    data = _plain(value, DEEPEST, exact=False)
    if comparison.close(data, value, rtol=1e-6, atol=0.0) is not None:
        raise CannotWrite(f"nothing that can be written is close to {type_name(value)}")
    return _flow(data)


def _plain(value: Any, depth: int, *, exact: bool) -> Any:
    """The value as literals of a spec; where it need not be ``exact``, tuples and small tensors as lists."""
    if depth == DEEPEST and expressions.weight(value, MOST) > MOST:
        raise CannotWrite("it is too long to be written")
    if depth == 0:
        raise CannotWrite("it is nested too deep to be written")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise CannotWrite("a number in it is too long to be written")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if hasattr(value, "dtype") and hasattr(value, "item"):
        return _numbers(value, exact=exact)
    if type(value) is tuple and exact:
        raise CannotWrite("a tuple is no literal: write {$expr: ..}, or expect close")
    if isinstance(value, list) or (isinstance(value, tuple) and not exact):
        return [_plain(item, depth - 1, exact=exact) for item in value]
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        return {key: _plain(item, depth - 1, exact=exact) for key, item in value.items()}
    raise CannotWrite(f"{type_name(value)} is no literal")


def _numbers(value: Any, *, exact: bool) -> Any:
    """A tensor, array or numpy scalar as numbers."""
    shape = [int(size) for size in value.shape]
    if shape and exact:
        raise CannotWrite(f"{type_name(value)} in it cannot be written under equals; expect close")
    if math.prod(shape) > MOST_NUMBERS:
        raise CannotWrite(f"{type_name(value)} is too large to be written out; expect shape and dtype")
    value = value.detach().cpu() if is_tensor(value) else value
    data = value.float().tolist() if "float8" in str(value.dtype) else value.tolist()
    return _plain(data, DEEPEST, exact=True)


def _shape(value: Any) -> str:
    if not hasattr(value, "shape"):
        raise CannotWrite(f"{type_name(value)} has no shape")
    return _flow([int(size) for size in value.shape])


def _dtype(value: Any) -> str:
    name = dtype_name(value)
    if name not in DTYPES:
        raise CannotWrite(f"{type_name(value)} has no dtype" if name is None else f"a spec knows no dtype {name}")
    return str(name)


def _length(value: Any) -> str:
    if not hasattr(value, "__len__") or (hasattr(value, "ndim") and value.ndim == 0):
        raise CannotWrite(f"{type_name(value)} has no length")
    return _flow(len(value))


def _flow(data: Any) -> str:
    text = as_flow(_escaped(data))
    if len(text) > MOST:
        raise CannotWrite("it is too long to be written")
    return text


def _escaped(data: Any) -> Any:
    """The data as a spec says it: a dollar sign is written twice."""
    if isinstance(data, str):
        return data.replace("$", "$$")
    if isinstance(data, list):
        return [_escaped(item) for item in data]
    if isinstance(data, dict):
        return {_escaped(key): _escaped(value) for key, value in data.items()}
    return data


OBSERVABLE: dict[str, Callable[[Any], str]] = {
    "equals": _equals,
    "close": _close,
    "shape": _shape,
    "dtype": _dtype,
    "length": _length,
}
"""The conditions whose expected value can be written, by their key in ``expect``."""


def value_path(number: int, condition: str) -> Path:
    """Where the value stands that a condition of an entry expects."""
    return ("expect", number, condition, "to") if condition == "close" else ("expect", number, condition)
