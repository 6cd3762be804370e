"""Rules about sweeps."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec import sweeping
from cgspec.diagnostics import Finding, Related, suggest
from cgspec.rules.context import Context, Rule

MOST_POINTS = 10_000


def bad_sweep(context: Context) -> Iterator[Finding]:
    """A matrix without values or with too many points, or an exclusion that excludes nothing."""
    sweep = context.spec.sweep
    if sweep is None or any(section == "sweep" for section, _ in context.catalogue.incomplete):
        return
    if not sweep.matrix:
        yield Finding("bad-sweep", "the matrix of the sweep is empty", ("sweep", "matrix"), fix="remove sweep")
    for path, values in sweep.matrix.items():
        if not values:
            message, fix = f"{path} has no values to sweep over", "list its values, or remove it"
            yield Finding("bad-sweep", message, ("sweep", "matrix", path), fix=fix)
        elif path.split(".")[0] in ("cgspec", "include", "variants", "sweep", "root"):
            why = "it shapes the spec itself, before there are points"
            message, fix = f"{path} cannot be swept over", "sweep over a var, and use it where the value is needed"
            yield Finding("bad-sweep", message, ("sweep", "matrix", path), on="key", why=why, fix=fix)
    if sweeping.size(sweep) > MOST_POINTS:
        message = f"the matrix has {sweeping.size(sweep)} points; at most {MOST_POINTS} are run"
        fix = "sweep over fewer values, or fewer repeats"
        yield Finding("bad-sweep", message, ("sweep", "matrix"), on="key", fix=fix)
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
                made = (Related("its values are here", ("sweep", "matrix", path)),)
                message, fix = f"{path} is never {value!r}: its values are {values}", "remove it, or name one of them"
                yield Finding("bad-sweep", message, where, fix=fix, related=made)
    if sweep.matrix and all(sweep.matrix.values()) and not sweeping.points(sweep):
        message, fix = "every point of the sweep is excluded", "remove an exclusion"
        yield Finding("bad-sweep", message, ("sweep", "exclude"), on="key", fix=fix)


RULES = (Rule("bad-sweep", bad_sweep),)
