"""Makes what the driver sends: constants once, what uses the iteration anew each time, earlier outputs where asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cgspec import usercode
from cgspec.errors import Failure, unmade_error
from cgspec.evaluating import Unmade, evaluate
from cgspec.expectations import output_place
from cgspec.graph import Graph, Input, Path
from cgspec.sources import parts
from cgspec.values import CannotMake, Feedback, FunctionRef, Scope, Value


class Feed:
    """The inputs of iterations, one value per ``graph.inputs``.

    Attributes:
        ahead: whether any input is made anew per iteration, and can be made ahead of time.
        remembers: whether any input is an earlier output.
    """

    def __init__(self, graph: Graph, *, load: Callable[[FunctionRef], Callable[..., object]] = usercode.load) -> None:
        self._graph, self._load = graph, load
        changing = [place for place, given in enumerate(graph.inputs) if given.value.per_iteration]
        self._late = [place for place in changing if "feedback" in graph.inputs[place].value.uses]
        self._each = [place for place in changing if place not in self._late]
        self._lag = max((lag for given in graph.inputs for lag in _lags(given.value)), default=0)
        self._past: dict[int, Sequence[object] | None] = {}
        self._constants: list[object] | None = None
        self._names = _names(graph)
        self.ahead, self.remembers = bool(self._each), bool(self._late)

    def scope(self, i: int | None) -> Scope:
        """What values of iteration ``i`` are made from."""
        return Scope(i=i, load=self._load, feedback=lambda output, lag: self._earlier(output, i or 0, lag))

    def forget(self) -> None:
        """Forgets earlier outputs: a phase begins."""
        self._past.clear()

    def make(self, i: int) -> list[object]:
        """An iteration's inputs, but for those that need an earlier output; call it outside timed intervals.

        Raises:
            TaskRaised: the user's function raised, or cannot be imported.
            RunError: a value cannot be made.
        """
        if self._constants is None:
            scope = self.scope(None)
            fixed = [None if given.value.per_iteration else _made(given, scope) for given in self._graph.inputs]
            self._constants = fixed
        values = list(self._constants)
        if self._each:
            scope = self.scope(i)
            for place in self._each:
                values[place] = _made(self._graph.inputs[place], scope)
        return values

    def complete(self, i: int, values: list[object]) -> None:
        """Fills in what needs an earlier output; raises as ``make`` does."""
        for place in self._late:
            values[place] = _made(self._graph.inputs[place], self.scope(i))

    def remember(self, i: int, outputs: Sequence[object] | None) -> None:
        """Keeps an iteration's outputs, None where it raised, for as long as they can be asked for."""
        self._past[i] = outputs
        self._past.pop(i - self._lag, None)

    def _earlier(self, output: str, i: int, lag: int) -> object:
        if (outputs := self._past.get(i - lag)) is None:
            reason = "it raised" if i - lag in self._past else "it was not run"
            raise CannotMake(f"iteration {i - lag} has no output {output} to feed back: {reason}")
        return outputs[output_place(self._graph, output)]

    def by_name(self, values: Sequence[object]) -> dict[str, object]:
        """Inputs by the name of the instance, and of the family, which is a list where it has axes."""
        return {
            name: values[at] if isinstance(at, int) else [values[n] for n in at] for name, at in self._names.items()
        }


def _names(graph: Graph) -> dict[str, int | list[int]]:
    found: dict[str, int | list[int]] = {}
    for place, given in enumerate(graph.inputs):
        found[given.name] = place
        if given.index:
            members = found.setdefault(given.family, [])
            assert isinstance(members, list)
            members.append(place)
    return found


def _lags(value: Value) -> Iterator[int]:
    """The lags of every feedback in a value."""
    if isinstance(value, Feedback):
        yield value.lag
    for part in parts(value):
        yield from _lags(part)


def _made(given: Input, scope: Scope) -> Any:
    return made(given.value, f"the input {given.name}", given.path, scope)


def made(value: Value, what: str, path: Path, scope: Scope, *, phase: str | None = None) -> Any:
    """A value of the spec, made in the driver.

    Args:
        what: what it is, for the sentence of a failure.

    Raises:
        TaskRaised: the user's function raised, or cannot be imported.
        RunError: it cannot be made.
    """
    try:
        return evaluate(value, what, scope)
    except Unmade as error:
        failure = Failure(error.kind, str(error), phase=phase, iteration=scope.i, path=path, traceback=error.trace)
        raise unmade_error(failure) from None
