"""Compares a result with what was expected of it, exactly or within a tolerance, and says where they first differ.

What equals what:

- numbers by value (3 equals 3.0, and a tensor or array without dimensions that holds 3), but truth values only
  themselves;
- tensors as ``torch.equal`` has it, and in their dtype too; their device does not matter; numpy arrays likewise;
- lists and tuples item by item, a list never a tuple, a subclass (``torch.Size``) like its base; maps by key;
- NaN equals nothing, itself included, in numbers and in tensors alike, as in torch and Python;
- anything else as ``==`` has it.

Within a tolerance, as ``torch.testing.assert_close`` has it: ``|found - expected| <= atol + rtol |expected|``, where
lists, tuples, arrays, tensors and numbers of one shape are compared by their numbers, whatever their dtype; an infinity
is close to itself.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cgspec.showing import dtype_name, is_array, is_tensor, short, type_name


@dataclass(frozen=True)
class Difference:
    """Where a result first differs: ``where`` is a path like ``[1].mask``, ``note`` says more than the two values."""

    expected: str
    found: str
    where: str = ""
    note: str = ""

    def inside(self, step: str) -> Difference:
        return replace(self, where=step + self.where)

    def __str__(self) -> str:
        place = f"at {self.where}: " if self.where else ""
        note = f" ({self.note})" if self.note else ""
        return f"{place}{self.found}{note}"


def equal(expected: object, found: object) -> Difference | None:
    """None where they are equal."""
    try:
        return _equal(expected, found)
    except RecursionError:
        return Difference(short(expected), short(found), note="nested too deeply to compare")
    except Exception as error:
        return Difference(short(expected), short(found), note=f"comparing them raised {type(error).__name__}: {error}")


def close(expected: object, found: object, *, rtol: float, atol: float) -> Difference | None:
    """None where they are equal within the tolerance."""
    try:
        return _close(expected, found, rtol, atol)
    except RecursionError:
        return Difference(short(expected), short(found), note="nested too deeply to compare")
    except Exception as error:
        return Difference(short(expected), short(found), note=f"comparing them raised {type(error).__name__}: {error}")


def _number(value: Any) -> Any:
    """A number without its wrapper (numpy scalar, tensor or array without dimensions); None where it is none."""
    numpy = sys.modules.get("numpy")
    scalar = numpy is not None and isinstance(value, numpy.generic)
    if scalar or ((is_tensor(value) or is_array(value)) and value.ndim == 0):
        value = value.item()
    return value if isinstance(value, (bool, int, float, complex)) else None


def _equal(expected: Any, found: Any) -> Difference | None:
    if is_tensor(expected) and is_tensor(found):
        return _equal_tensors(expected, found)
    if is_array(expected) and is_array(found):
        return _equal_arrays(expected, found)
    one, other = _number(expected), _number(found)
    if one is not None and other is not None:
        good = isinstance(one, bool) == isinstance(other, bool) and one == other
        return None if good else _plain_difference(expected, found, _nan_note(one, other))
    for kind in (list, tuple):
        if isinstance(expected, kind) and isinstance(found, kind):
            return _equal_items(expected, found)
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return _equal_entries(expected, found)
    if _kind(expected) != _kind(found):
        return _plain_difference(expected, found, f"{type_name(found)} is not {type_name(expected)}")
    return None if bool(expected == found) else _plain_difference(expected, found)


def _kind(value: object) -> str:
    """What cannot equal anything of another kind."""
    for name, kind in (("list", list), ("tuple", tuple), ("map", Mapping), ("text", str), ("bytes", bytes)):
        if isinstance(value, kind):
            return name
    if is_tensor(value) or is_array(value):
        return "tensor" if is_tensor(value) else "array"
    return "other"


def _nan_note(*numbers: Any) -> str:
    return "NaN equals nothing, itself included" if any(number != number for number in numbers) else ""


def _plain_difference(expected: object, found: object, note: str = "") -> Difference:
    return Difference(short(expected), short(found), note=note)


def _equal_items(expected: Any, found: Any) -> Difference | None:
    if len(expected) != len(found):
        return _plain_difference(expected, found, f"{len(found)} elements, not {len(expected)}")
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if (difference := _equal(one, other)) is not None:
            return difference.inside(f"[{number}]")
    return None


def _equal_entries(expected: Mapping[Any, Any], found: Mapping[Any, Any]) -> Difference | None:
    if (difference := _keys(expected, found)) is not None:
        return difference
    for key in expected:
        if (inner := _equal(expected[key], found[key])) is not None:
            return inner.inside(f".{key}")
    return None


def _keys(expected: Mapping[Any, Any], found: Mapping[Any, Any]) -> Difference | None:
    missing = [key for key in expected if key not in found]
    extra = [key for key in found if key not in expected]
    notes = [f"without {short(missing)}"] * bool(missing) + [f"{short(extra)} beside it"] * bool(extra)
    return _plain_difference(expected, found, " and ".join(notes)) if notes else None


def _shapes(expected: Any, found: Any, *, dtypes: bool) -> Difference | None:
    if list(expected.shape) != list(found.shape):
        return _plain_difference(expected, found, f"shape {[*found.shape]}, not {[*expected.shape]}")
    if dtypes and expected.dtype != found.dtype:
        return _plain_difference(expected, found, f"dtype {dtype_name(found)}, not {dtype_name(expected)}")
    return None


def _equal_tensors(expected: Any, found: Any) -> Difference | None:
    import torch

    if (difference := _shapes(expected, found, dtypes=True)) is not None:
        return difference
    one, other = _dense(expected), _dense(found)
    if torch.equal(one, other):
        return None
    return _first_difference(expected, found, one != other)


def _dense(tensor: Any) -> Any:
    """On the CPU, and in a dtype that can be compared: float8 cannot."""
    import torch

    tensor = tensor.detach().cpu()
    tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
    tensor = tensor.dequantize() if tensor.is_quantized else tensor
    return tensor.float() if "float8" in str(tensor.dtype) else tensor


def _equal_arrays(expected: Any, found: Any) -> Difference | None:
    if (difference := _shapes(expected, found, dtypes=True)) is not None:
        return difference
    unequal = expected != found
    return _first_difference(expected, found, unequal) if unequal.any() else None


def _first_difference(expected: Any, found: Any, unequal: Any) -> Difference:
    """How many elements differ, and the first that does; ``unequal`` is a truth value per element."""
    flat = unequal.reshape(-1)
    count, first = int(flat.sum()), int(flat.argmax() if is_array(flat) else flat.int().argmax())
    one, other = expected.reshape(-1)[first], found.reshape(-1)[first]
    note = f"{count} of {len(flat)} elements differ" if len(flat) > 1 else ""
    note = note or _nan_note(_number(one), _number(other))
    where = "".join(f"[{index}]" for index in _unravel(first, list(unequal.shape)))
    return Difference(short(_number(one)), short(_number(other)), where, note)


def _unravel(place: int, shape: list[int]) -> list[int]:
    indices = []
    for size in reversed(shape):
        place, index = divmod(place, size)
        indices.append(index)
    return indices[::-1]


def _close(expected: Any, found: Any, rtol: float, atol: float) -> Difference | None:
    if any(is_tensor(value) or is_array(value) for value in (expected, found)):
        return _close_tensors(expected, found, rtol, atol)
    one, other = _number(expected), _number(found)
    if one is not None and other is not None:
        return _close_numbers(expected, found, rtol, atol)
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
        return _close_items(expected, found, rtol, atol)
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if (difference := _keys(expected, found)) is not None:
            return difference
        for key in expected:
            if (inner := _close(expected[key], found[key], rtol, atol)) is not None:
                return inner.inside(f".{key}")
        return None
    return _equal(expected, found)


def _close_items(expected: Any, found: Any, rtol: float, atol: float) -> Difference | None:
    if len(expected) != len(found):
        return _plain_difference(expected, found, f"{len(found)} elements, not {len(expected)}")
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        if (difference := _close(one, other, rtol, atol)) is not None:
            return difference.inside(f"[{number}]")
    return None


def _close_numbers(expected: Any, found: Any, rtol: float, atol: float) -> Difference | None:
    one, other = _number(expected), _number(found)
    if one == other:
        return None
    gap = abs(other - one)
    if math.isfinite(gap) and gap <= atol + rtol * abs(one):
        return None
    note = _nan_note(one, other) or f"off by {gap:.3g}, {atol + rtol * abs(one):.3g} allowed"
    return _plain_difference(expected, found, note)


def _close_tensors(expected: Any, found: Any, rtol: float, atol: float) -> Difference | None:
    """Two values of which one is a tensor or array; the other may be nested lists or a number."""
    import torch

    one, other = _as_tensor(expected), _as_tensor(found)
    if one is None or other is None:
        return _plain_difference(expected, found, f"{type_name(found)} against {type_name(expected)}")
    if (difference := _shapes(one, other, dtypes=False)) is not None:
        return difference
    wide = torch.complex128 if one.is_complex() or other.is_complex() else torch.float64
    good = torch.isclose(other.to(wide), one.to(wide), rtol=rtol, atol=atol)
    return None if bool(good.all()) else _first_difference(one, other, ~good)


def _as_tensor(value: Any) -> Any:
    import torch

    if is_tensor(value):
        return _dense(value)
    try:
        return torch.as_tensor(_without_tensors(value)).cpu()
    except (TypeError, ValueError, RuntimeError):
        return None


def _without_tensors(value: Any) -> Any:
    """Nested lists that may hold tensors, with lists in their place."""
    if isinstance(value, (list, tuple)):
        return [_without_tensors(item) for item in value]
    return value.tolist() if is_tensor(value) else value
