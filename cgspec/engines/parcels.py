"""What is handed to Ray Direct Transport: copies of a value's tensors, and the rest of the value as bytes around them.

Ray sends the very tensors that a method returned, at some later time, and looks at neither strides nor views; so what
is handed over belongs to nobody else, lies in one piece and is where the library can read it.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import ray

from cgspec.invocation import Failed
from cgspec.payloads import ATOMS, tensor_type
from cgspec.routes import Library

DEVICES: dict[Library, str] = {"gloo": "cpu", "nccl": "cuda"}


@dataclass(frozen=True, slots=True)
class Parcel:
    """A value that is more than one tensor: pickled, its tensors apart."""

    body: bytes
    tensors: tuple[Any, ...]


class Unfit(ValueError):
    """A value that cannot be sent."""


def pack(value: object, library: Library) -> object:
    """What is handed to Ray in place of a value; a ``Failed`` goes as it is.

    Raises:
        Unfit: a tensor is of a kind, or in a place, that the library cannot send, or something cannot be pickled.
    """
    if type(value) is Failed or type(value) in ATOMS:
        return value
    found = _own(value, library) if type(value) is tensor_type() else _parcel(value, library)
    if library == "nccl":
        _synchronise()
    return found


def unpack(value: object) -> object:
    """The value behind what was handed to Ray.

    Raises:
        Exception: something in it cannot be read in this process.
    """
    return _Unpacker(value).load() if type(value) is Parcel else value


def _parcel(value: object, library: Library) -> Parcel:
    packer = _Packer(library)
    try:
        packer.dump(value)  # type: ignore[no-untyped-call]
    except Unfit:
        raise
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {error}".splitlines()[0]) from None
    return Parcel(packer.body.getvalue(), tuple(packer.tensors))


class _Packer(ray.cloudpickle.CloudPickler):
    """Pickles a value and puts its tensors aside, each once."""

    def __init__(self, library: Library) -> None:
        self.body = io.BytesIO()
        super().__init__(self.body, protocol=5)  # type: ignore[no-untyped-call]
        self.library, self.tensor = library, tensor_type()
        self.places: dict[int, int] = {}
        self.tensors: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if type(value) is not self.tensor:
            return None
        place = self.places.setdefault(id(value), len(self.tensors))
        if place == len(self.tensors):
            self.tensors.append(_own(value, self.library))
        return place


class _Unpacker(pickle.Unpickler):
    def __init__(self, parcel: Parcel) -> None:
        super().__init__(io.BytesIO(parcel.body))
        self.tensors = parcel.tensors

    def persistent_load(self, place: Any) -> object:
        return self.tensors[place]


def _own(tensor: Any, library: Library) -> Any:
    """A copy in one piece, without the history of its gradient."""
    import torch

    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Unfit(f"{library} sends plain tensors, and one is {tensor.layout} of {tensor.dtype}")
    if tensor.device.type != DEVICES[library]:
        raise Unfit(f"{library} sends tensors on {DEVICES[library]}, and one is on {tensor.device}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.clone(memory_format=torch.contiguous_format)


def _synchronise() -> None:
    """Ray sends on another thread, so on another stream."""
    import torch

    torch.cuda.current_stream().synchronize()
