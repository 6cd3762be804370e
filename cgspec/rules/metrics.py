"""Rules about the user's metrics: every name in their expressions is known, and they are what they should be."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec import expressions
from cgspec.diagnostics import Finding, Path, nearest, suggest
from cgspec.expressions import ExpressionError
from cgspec.formulas import OUT, Formula, all_bytes, built_in, formulas_of, text_of, undeclared, word
from cgspec.graph import Graph
from cgspec.parsing import NAME, RESERVED
from cgspec.rules.context import Context, Rule
from cgspec.spec import RUN_METRICS, Spec

_TAKEN = frozenset({*RUN_METRICS, *RESERVED, "bytes", OUT, "busy", "edge", "latency"})
_FAMILIES = "latency.<p>, busy.<task>.<p>, edge.<task>.<p>, bytes and out.<output>, where <p> is e.g. p50"


def metric_without_expression(context: Context) -> Iterator[Finding]:
    """A metric that is no ``$expr``."""
    for name, raw in context.spec.metrics.items():
        if text_of(raw) is None:
            fix = f'write {name}: {{$expr: "1 / latency.p50"}}'
            yield Finding("wrong-type", f"the metric {name} is no {{$expr: ..}}", ("metrics", name), fix=fix)


def metric_that_cannot_be_read(context: Context) -> Iterator[Finding]:
    """A metric whose text is no expression."""
    for name, raw in context.spec.metrics.items():
        if (text := text_of(raw)) is None:
            continue
        try:
            expressions.parse(text)
        except ExpressionError as error:
            fix = "a metric is arithmetic on numbers, vars and what is measured; a task stands for all its members"
            message = f"`{text[:60]}` is no expression: {error}"
            yield Finding("bad-expression", message, ("metrics", name, "$expr"), span=error.span, fix=fix)


def bad_metric_name(context: Context) -> Iterator[Finding]:
    """A metric whose name is taken, or none that an expression could use."""
    for name in context.spec.metrics:
        path: Path = ("metrics", name)
        if name in _TAKEN or name in context.spec.vars:
            owner = "a var" if name in context.spec.vars else "a word of the language"
            message = f"{name} is {owner}, so a metric needs another name"
            yield Finding("bad-name", message, path, on="key", fix=f"call it e.g. my_{name}")
        elif not NAME.match(name):
            message = f"{name!r} is no name for a metric: names are letters, digits and _"
            yield Finding("bad-name", message, path, on="key")


def unknown_metric_name(context: Context) -> Iterator[Finding]:
    """A name in a metric's expression that stands for nothing."""
    if not context.spec.metrics:
        return
    names = built_in(context.sound)
    known = {*names, *context.spec.vars}
    for formula in formulas_of(context.spec):
        for name, span in formula.expression.names.items():
            if name not in known and not (_lacks_vars(context) and "." not in name):
                message, fix = _unknown(context, formula, name, [*names, *context.spec.vars, *known])
                path: Path = ("metrics", formula.name, "$expr")
                yield Finding("unknown-metric-name", message, path, span=span, fix=fix)
        known.add(formula.name)


def _lacks_vars(context: Context) -> bool:
    """Whether the vars seem to be there under a name that is misspelt."""
    return any(nearest(str(key), ["vars"]) is not None for key in context.data if key not in Spec.model_fields)


def _unknown(context: Context, formula: Formula, name: str, known: list[str]) -> tuple[str, str]:
    graph, (head, _, rest) = context.sound, name.partition(".")
    task = rest.partition(".")[0]
    if name in context.spec.metrics:
        if name == formula.name:
            return f"the metric {name} uses itself", ""
        return f"{name} is a metric that comes after this one", f"write {name} above {formula.name}"
    if head == "edge" and task in {word(each.family) for each in graph.tasks} and f"{name[:5]}{task}.p50" not in known:
        return f"the result of {task} goes to no other actor, so there is no time on the way", f"use busy.{task}.p50"
    if name == "bytes":
        return _unknown_bytes(graph)
    return f"{name} is not known in a metric; {suggest(name, known, noun='e.g.', most=4)}", f"there are {_FAMILIES}"


def _unknown_bytes(graph: Graph) -> tuple[str, str]:
    assert all_bytes(graph) is None
    if not (lacking := undeclared(graph)):
        return "bytes is what travels between actors, and nothing does here", ""
    listed = ", ".join(lacking[:8])
    return f"bytes needs the size of all that travels between actors, and {listed} has no payload", (
        f"say payload: {{shape: [..], dtype: ..}} under {lacking[0]}"
    )


def bad_metric_bound(context: Context) -> Iterator[Finding]:
    """A bound of a user's metric that is no plain number."""
    for number, entry in enumerate(context.spec.expect):
        if entry.metric is None or entry.metric not in context.spec.metrics or entry.task is not None:
            continue
        for key in ("below", "above"):
            bound = getattr(entry, key)
            literal = not isinstance(bound, dict) and not (isinstance(bound, str) and bound.startswith("$"))
            if bound is not None and literal and (isinstance(bound, bool) or not isinstance(bound, (int, float))):
                message = f"{key}: {entry.metric} is a plain number, without a unit, and its bound is {bound!r}"
                yield Finding("bad-unit", message, ("expect", number, key), fix=f"write e.g. {key}: 5")


RULES = (
    Rule("wrong-type", metric_without_expression),
    Rule("bad-expression", metric_that_cannot_be_read),
    Rule("bad-name", bad_metric_name),
    Rule("unknown-metric-name", unknown_metric_name, "graph"),
    Rule("bad-unit", bad_metric_bound),
)
