"""How a value is shown: as short text for people, as plain data for JSON; never raises, whatever the value is."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

MOST = 8
"""Elements of a container or tensor that short text shows."""
WHOLE = 1000
"""Elements up to which a tensor's numbers are written out in JSON."""
DEPTH = 6


def short(value: object, most: int = 160) -> str:
    """One line of at most ``most`` characters."""
    text = _text(value, DEPTH)
    return text if len(text) <= most else text[: most - 1] + "…"


def is_tensor(value: object) -> bool:
    """Whether it is a torch tensor; never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: object) -> bool:
    """Whether it is a numpy array; never imports numpy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def dtype_name(value: Any) -> str | None:
    """The name of the dtype that a value is, or has: ``float16``; None where it has none."""
    dtype = getattr(value, "dtype", value)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    return str(dtype) if numpy is not None and isinstance(dtype, numpy.dtype) else None


def type_name(value: object) -> str:
    """What a value is, for people: ``a tensor of float16 [2, 3]``, ``a tuple``."""
    if is_tensor(value) or is_array(value):
        noun = "tensor" if is_tensor(value) else "numpy array"
        return f"a {noun} of {dtype_name(value)} {list(value.shape)}"  # type: ignore[attr-defined]
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _text(value: object, depth: int) -> str:
    try:
        return _known_text(value, depth)
    except Exception:
        return f"<{type(value).__name__}>"


def _known_text(value: object, depth: int) -> str:
    if is_tensor(value) or is_array(value):
        return _numbers(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 200 else value[:200] + "…")
    if isinstance(value, bytes):
        return repr(value[:40]) + ("…" if len(value) > 40 else "")
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(value)
    if isinstance(value, (list, tuple)):
        return _sequence(value, depth)
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    name = dtype_name(value)
    return name if name is not None and not hasattr(value, "dtype") else " ".join(repr(value).split())


def _whole(value: int) -> str:
    """Long integers cannot be turned into text at all (``sys.set_int_max_str_digits``)."""
    return str(value) if value.bit_length() < 400 else f"<int of {value.bit_length()} bits>"


def _sequence(value: list[Any] | tuple[Any, ...], depth: int) -> str:
    left, right = ("[", "]") if isinstance(value, list) else ("(", ")")
    if not depth:
        return f"{left}…{right}"
    parts = [_text(item, depth - 1) for item in value[:MOST]]
    if len(value) > MOST:
        parts.append(f"… {len(value)} in all")
    comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return f"{left}{', '.join(parts)}{comma}{right}"


def _mapping(value: Mapping[Any, Any], depth: int) -> str:
    if not depth:
        return "{…}"
    parts = [
        f"{_text(key, depth - 1)}: {_text(value[key], depth - 1)}" for _, key in zip(range(MOST), value, strict=False)
    ]
    if len(value) > MOST:
        parts.append(f"… {len(value)} in all")
    return "{" + ", ".join(parts) + "}"


def _numbers(value: Any) -> str:
    noun = "tensor" if is_tensor(value) else "array"
    shape = [*value.shape]
    flat = _flat(value)[:MOST]
    shown = ", ".join(f"{number:.6g}" if isinstance(number, float) else str(number) for number in flat)
    count = math.prod(shape)
    more = ", …" if count > MOST else ""
    return (
        f"{noun}({shown}{more}; {dtype_name(value)})"
        if not shape
        else f"{noun}([{shown}{more}]; {dtype_name(value)} {shape})"
    )


def _flat(value: Any) -> list[Any]:
    """The first elements of a tensor or array, in row-major order."""
    if is_tensor(value):
        few = value.detach().reshape(-1)[:WHOLE].cpu()
        return list(few.float().tolist() if "float8" in str(few.dtype) else few.tolist())
    return list(value.reshape(-1)[:WHOLE].tolist())


def plain(value: object) -> Any:
    """The value as JSON data.

    Tensors and arrays become ``{"shape", "dtype", "values"}``, nested lists where they have at most ``WHOLE`` elements,
    else without values; tuples become lists, dtypes their names, NaN and infinities text, anything else its short text.
    """
    try:
        return _plain(value, 2 * DEPTH, [10 * WHOLE])
    except Exception:
        return _text(value, DEPTH)


def _plain(value: object, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if depth == 0 or budget[0] < 0:
        return short(value)
    if value is None or isinstance(value, (bool, str)):
        return _unicode(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 400 else _whole(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if is_tensor(value) or is_array(value):
        return _plain_numbers(value, budget)
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1, budget) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth - 1, budget) for key, item in value.items()}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return _plain(value.item(), depth - 1, budget)
    return dtype_name(value) if dtype_name(value) and not hasattr(value, "dtype") else short(value)


def _unicode(text: str) -> str:
    """Text that can be written: lone surrogates (names of files that are not UTF-8) are escaped, long text is cut."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return whole if len(whole) <= 10 * WHOLE else short(whole)


def _plain_numbers(value: Any, budget: list[int]) -> dict[str, Any]:
    shape = [int(size) for size in value.shape]
    shown: dict[str, Any] = {"shape": shape, "dtype": dtype_name(value)}
    if math.prod(shape) <= min(WHOLE, budget[0]):
        budget[0] -= math.prod(shape)
        flat = [_plain(number, 2, [1]) for number in _flat(value)]
        shown["values"] = _nested(flat, shape)
    return shown


def _nested(flat: list[Any], shape: list[int]) -> Any:
    """A flat list in row-major order as nested lists of that shape."""
    if not shape:
        return flat[0]
    step = math.prod(shape[1:])
    return [_nested(flat[number * step : (number + 1) * step], shape[1:]) for number in range(shape[0])]
