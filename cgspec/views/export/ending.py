"""The part of the script from set-up calls to what is printed: ``main`` after Ray has started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgspec.expectations import Read
from cgspec.graph import Graph
from cgspec.plans import Setup, setups_of
from cgspec.quantities import duration
from cgspec.spec import ExpectSpec, Spec
from cgspec.values import Call, CannotMake, Entries, Expr, Feedback, Items, Marked, Scope, Text, Value
from cgspec.views.export.code import Coder, call, plain
from cgspec.views.export.names import in_words

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_TOTALS = {"mean": "sum(latencies) / len(latencies)", "min": "min(latencies)", "max": "max(latencies)"}
_PROFILERS = {
    "torch": "RAY_CGRAPH_ENABLE_TORCH_PROFILING=1 makes Ray write its own",
    "nvtx": "RAY_CGRAPH_ENABLE_NVTX_PROFILING=1 makes Ray set its own",
    "nsight": 'runtime_env={"nsight": "default"} in an actor\'s options is Ray\'s own',
}
_FINALLY = ("    finally:", "        if graph is not None:", "            graph.teardown()", "        ray.shutdown()")


class Ending:
    """What ``main`` does.

    Attributes:
        handles: the actors that ``build`` hands out, for calls outside the graph.
        untold: what the script does not do, in words.
    """

    def __init__(self, graph: Graph, spec: Spec, read: Read, coder: Coder, actors: Sequence[str]) -> None:
        self.graph, self.spec, self.read, self.coder, self.actors = graph, spec, read, coder, actors
        self.setups = setups_of(spec, graph, read)
        self.handles = list(dict.fromkeys(actors[setup.actor] for setup in self.setups))
        self.untold = [*self._untold()]

    def _untold(self) -> Iterator[str]:
        for profile in self.spec.profile:
            if profile.kind in _PROFILERS:
                yield f"profile: {profile.kind} ({_PROFILERS[profile.kind]})"
        for name in ("metrics", "sweep"):
            if getattr(self.spec, name):
                yield name
        if self.spec.run.reset:
            yield "run.reset"
        for entry in self.spec.expect:
            if entry.task is None and entry.metric is not None and _metric(entry.metric) is None:
                yield f"expect: {in_words(entry.metric)}"

    def main(self, warmup: int, check: str, checks_last: bool) -> list[str]:
        """The lines of ``main`` after ``ray.init``."""
        targets = ", ".join(["graph", *self.handles])
        lines = ["    graph = None", "    try:", f"        {targets} = build()"]
        if warmup:
            lines += [*self._calls(first=True), "        run(graph, WARMUP)"]
        lines += self._calls(first=not warmup)
        lines.append(f"        latencies, seconds, last = run(graph, ITERATIONS{check})")
        return [*lines, *_FINALLY, *self._report(checks_last)]

    def _calls(self, *, first: bool) -> list[str]:
        return [f"        ray.get({self._call(setup)})" for setup in self.setups if first or setup.every_phase]

    def _call(self, setup: Setup) -> str:
        actor, name = self.actors[setup.actor], setup.method
        method = f"{actor}.{name}" if name.isidentifier() else f"getattr({actor}, {plain(name)})"
        device = "cuda" if self.graph.actors[setup.actor].num_gpus else "cpu"
        named = {name: self.coder.of(value, device=device) for name, value in setup.kwargs.items()}
        return call(f"{method}.remote", [], named)

    def _report(self, checks_last: bool) -> Iterator[str]:
        yield "    p50, p95 = (1e3 * quantile(latencies, share) for share in (0.5, 0.95))"
        yield '    print(f"latency p50 {p50:.4f} ms, p95 {p95:.4f} ms; {len(latencies) / seconds:.1f} iterations/s")'
        yield "    i, sent, outputs = last"
        yield '    print(f"last outputs: {outputs!r}")'
        if checks_last:
            yield "    check_last(i, sent, outputs)"
        for number, entry in enumerate(self.spec.expect):
            yield from (f"    {line}" for line in self._bounds(entry, number))

    def _bounds(self, entry: ExpectSpec, number: int) -> Iterator[str]:
        measured = _metric(entry.metric or "") if entry.task is None else None
        for side, sign in (("below", "<"), ("above", ">")):
            said = getattr(entry, side)
            if measured is not None and said is not None:
                bound = self._bound(said, entry.metric or "", ("expect", number, side))
                yield f"assert {measured} {sign} {bound!r}, {plain(entry.metric)}"

    def _bound(self, said: object, metric: str, path: tuple[str | int, ...]) -> float:
        """The bound in seconds, or iterations per second; what cannot be read now was a finding."""
        try:
            made = self.read(said, path).make(Scope())
            return float(made) if metric == "throughput" else duration(made)
        except (CannotMake, ValueError):
            return float("nan")


def _metric(metric: str) -> str | None:
    """The expression of a metric that the script measures."""
    if metric == "throughput":
        return "len(latencies) / seconds"
    kind, _, which = metric.partition(".")
    if kind != "latency":
        return None
    return f"quantile(latencies, {_SHARES[which]})" if which in _SHARES else _TOTALS.get(which)


def lags(value: Value) -> Iterator[int]:
    """The lags of every feedback in a value."""
    if isinstance(value, Feedback):
        yield value.lag
    for part in _parts(value):
        yield from lags(part)


def _parts(value: Value) -> Sequence[Value]:
    if isinstance(value, Items | Entries | Text):
        return [part for _, part in value.entries] if isinstance(value, Entries) else _items(value)
    if isinstance(value, Marked):
        return [*value.arguments.values()]
    if isinstance(value, Expr):
        return [*value.known.values()]
    return [value.first] if isinstance(value, Feedback) else [value.arguments] if isinstance(value, Call) else []


def _items(value: Items | Text) -> Sequence[Value]:
    return value.items if isinstance(value, Items) else value.parts
