"""Rules about sweeps."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec import sweeping
from cgspec.diagnostics import Finding, suggest
from cgspec.rules.context import Context, Rule

MOST_POINTS = 10_000


def bad_sweep(context: Context) -> Iterator[Finding]:
    """A matrix without values or with too many points, or an exclusion that excludes nothing."""
    sweep = context.spec.sweep
    if sweep is None:
        return
    if not sweep.matrix:
        yield Finding("bad-sweep", "the matrix of the sweep is empty", ("sweep", "matrix"), fix="remove sweep")
    for path, values in sweep.matrix.items():
        if not values:
            yield Finding("bad-sweep", f"{path} has no values to sweep over", ("sweep", "matrix", path))
        elif path.split(".")[0] in ("cgspec", "include", "variants", "sweep", "root"):
            yield Finding("bad-sweep", f"{path} cannot be swept over", ("sweep", "matrix", path), on="key")
    if sweeping.size(sweep) > MOST_POINTS:
        message = f"the matrix has {sweeping.size(sweep)} points; at most {MOST_POINTS} are run"
        yield Finding("bad-sweep", message, ("sweep", "matrix"), on="key")
        return
    yield from _exclusions(context)


def _exclusions(context: Context) -> Iterator[Finding]:
    sweep = context.spec.sweep
    assert sweep is not None
    for number, entry in enumerate(sweep.exclude):
        for path, value in entry.items():
            where = ("sweep", "exclude", number, path)
            if path not in sweep.matrix:
                offer = suggest(path, sweep.matrix, noun="it sweeps over")
                yield Finding("bad-sweep", f"{path} is not in the matrix; {offer}", where, on="key")
            elif value not in sweep.matrix[path]:
                values = ", ".join(map(str, sweep.matrix[path]))
                yield Finding("bad-sweep", f"{path} is never {value!r}: its values are {values}", where)
    if sweep.matrix and all(sweep.matrix.values()) and not sweeping.points(sweep):
        yield Finding("bad-sweep", "every point of the sweep is excluded", ("sweep", "exclude"), on="key")


RULES = (Rule("bad-sweep", bad_sweep),)
