"""What travels between processes: values are freed from Ray's shared memory, and looked at before they are sent.

numpy arrays that arrive through a channel are views of its buffer: as long as anyone holds one, the channel's next
reader waits for it (https://github.com/vllm-project/vllm/issues/35319). Whoever receives a value detaches it first.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

from cgspec import usercode

ATOMS: frozenset[type] = frozenset({int, float, bool, str, bytes, complex, type(None)})
DEPTH = 6
"""How deep containers and objects are looked into."""
LOOK = 64
"""How many elements of a container are looked at for types that may not be picklable."""


def detach(value: Any) -> Any:
    """The value without views of shared memory: read-only arrays are copied, containers are changed in place."""
    return value if type(value) in ATOMS else _detach(value, DEPTH)


def _detach(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in ATOMS or depth == 0:
        return value
    if kind.__module__.partition(".")[0] == "numpy":
        return _own_array(value)
    if kind in (list, tuple, dict) and set(map(type, value.values() if kind is dict else value)) <= ATOMS:
        return value
    if kind is list:
        value[:] = [_detach(item, depth - 1) for item in value]
    elif kind is dict:
        for key, item in value.items():
            value[key] = _detach(item, depth - 1)
    elif isinstance(value, tuple):
        return _detach_tuple(value, depth)
    elif kind.__module__.partition(".")[0] in ("torch", "builtins"):
        return value
    elif isinstance(fields := getattr(value, "__dict__", None), dict):
        for key, item in fields.items():
            fields[key] = _detach(item, depth - 1)
    else:
        return _foreign(value)
    return value


def _own_array(value: Any) -> Any:
    is_view = isinstance(value, sys.modules["numpy"].ndarray) and not value.flags.writeable
    return value.copy() if is_view else value


def _detach_tuple(value: Any, depth: int) -> Any:
    items = [_detach(item, depth - 1) for item in value]
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return tuple(items) if type(value) is tuple else type(value)(*items)


def _foreign(value: Any) -> Any:
    """An object that keeps its data elsewhere (slots, C code): copied whole, or, if that fails, as it is."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


class Sendable:
    """Looks whether a value can be pickled, by trying once for every combination of types that it has not met.

    Args:
        pickle: as the channel will do it.
        raised: a class whose instances are raised where they arrive, and so cannot be sent as a value.
    """

    def __init__(self, pickle: Callable[[object], object], *, raised: type | tuple[()] = ()) -> None:
        self.pickle = pickle
        self.raised = raised
        self.known: set[frozenset[type]] = set()

    def __call__(self, value: object) -> str | None:
        """Why it cannot be sent, or None."""
        if type(value) in ATOMS:
            return None
        if isinstance(value, self.raised):
            return f"a {type(value).__name__} is no value, Ray raises it where it arrives"
        strange: set[type] = set()
        try:
            _collect(value, strange, DEPTH)
            kinds = frozenset(strange)
            if not kinds or kinds in self.known:
                return None
            self.pickle(value)
        except (Exception, SystemExit) as error:
            return usercode.describe(error)[0].splitlines()[0]
        self.known.add(kinds)
        return None


def _collect(value: Any, strange: set[type], depth: int) -> None:
    """Collects the types about which it is not known that they can be pickled."""
    kind = type(value)
    if kind in ATOMS or depth == 0:
        return
    if kind in (list, tuple):
        for item in value[:LOOK]:
            _collect(item, strange, depth - 1)
    elif kind is dict:
        for item in list(value.values())[:LOOK]:
            _collect(item, strange, depth - 1)
    elif not _is_plain_data(kind, value):
        strange.add(kind)


def _is_plain_data(kind: type, value: Any) -> bool:
    module = kind.__module__.partition(".")[0]
    if module == "numpy":
        return not getattr(getattr(value, "dtype", None), "hasobject", False)
    torch = sys.modules.get("torch")
    return kind in [getattr(torch, name, None) for name in ("Tensor", "dtype", "Size")]


def tensor_type() -> type | None:
    """torch's tensor, where torch is loaded; another thread may be half-way through importing it."""
    found: type | None = getattr(sys.modules.get("torch"), "Tensor", None)
    return found


def to_host(value: object) -> object:
    """The value with its tensors on the host."""
    tensor = tensor_type()
    if tensor is None:
        return value
    if isinstance(value, tensor):
        return value.cpu()  # type: ignore[attr-defined]
    if type(value) in (list, tuple):
        return type(value)(map(to_host, value))  # type: ignore[call-overload, call-arg]
    if type(value) is dict:
        return {key: to_host(item) for key, item in value.items()}
    return value
