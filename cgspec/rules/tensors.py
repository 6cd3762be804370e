"""Rules about declared payloads and dtypes."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding
from cgspec.parsing import offer_dtype
from cgspec.rules.context import Context, Rule
from cgspec.values import DTYPES


def bad_payload(context: Context) -> Iterator[Finding]:
    """A payload that is neither a size nor a shape with a dtype."""
    for name, task in context.spec.tasks.items():
        payload = task.payload
        if payload is None or ("tasks", name) in context.catalogue.incomplete:
            continue
        tensor = payload.shape is not None and payload.dtype is not None
        half = (payload.shape is None) != (payload.dtype is None)
        if half or tensor == (payload.bytes is not None):
            given = [key for key in ("shape", "dtype", "bytes") if getattr(payload, key) is not None]
            said = " and ".join(f"a {key}" if key != "bytes" else "bytes" for key in given) or "nothing"
            message = f"the payload of {name} has {said}{' alone' if len(given) == 1 else ''}"
            fix = "write a size (64MiB), or a shape and a dtype: {shape: [4, 4], dtype: float16}"
            yield Finding("bad-payload", message, ("tasks", name, "payload"), fix=fix)


def unknown_dtype(context: Context) -> Iterator[Finding]:
    """A dtype that torch does not have."""
    for name, task in context.spec.tasks.items():
        dtype = task.payload.dtype if task.payload is not None else None
        if dtype is not None and dtype not in DTYPES:
            offer = offer_dtype(dtype)
            path = ("tasks", name, "payload", "dtype")
            yield Finding("unknown-dtype", f"there is no dtype {dtype}; {offer}", path)
    for number, expected in enumerate(context.spec.expect):
        if expected.dtype is not None and expected.dtype not in DTYPES:
            offer = offer_dtype(expected.dtype)
            yield Finding("unknown-dtype", f"there is no dtype {expected.dtype}; {offer}", ("expect", number, "dtype"))


RULES = (
    Rule("bad-payload", bad_payload),
    Rule("unknown-dtype", unknown_dtype),
)
