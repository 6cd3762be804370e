"""One step, ready to run: the method looked up, constants made, arguments laid out; and ``Failed``, what stands in
place of a result that there is not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cgspec.evaluating import Unmade, evaluate
from cgspec.graph import Path
from cgspec.payloads import detach
from cgspec.steps import Call, Enter, Forward, Leave, Step, Take, pick
from cgspec.values import Scope, Value

Name = TypeVar("Name", str, int)


@dataclass(frozen=True, slots=True)
class Failed:
    """What stands in place of a result; made of strings, so that every process can read it.

    Attributes:
        kind: as in ``errors.Failure``: ``raised``, ``arity``, ``unreadable``, ``unserialisable``, ``constructor``,
            ``import`` or ``input``.
        message: what happened, e.g. ``ValueError: negative``.
        task: index into ``graph.tasks``; None for a constructor or a plain call.
        iteration: of the phase, from 0.
        trace: the user's own frames.
        below: where in the task's entry, or the actor's, a value stands that cannot be made, e.g. ``("args", "rank")``.
    """

    kind: str
    message: str
    task: int | None = None
    iteration: int | None = None
    trace: str = ""
    below: Path = ()


FLUSH = Failed("flush", "the phase ends")
"""Sent as every input, it passes each step once and no method of the user's: the phase ends early, on every thread."""


class FailedTask(Exception):
    """A ``Failed`` that has to be raised: its channel carries nothing but tensors, or there is no graph yet."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed

    def __reduce__(self) -> tuple[type[FailedTask], tuple[Failed]]:
        return type(self), (self.failed,)


class Invocation:
    """A step of one worker.

    Attributes:
        slot: the place of its task in the recorder.
        arrived: places among the values that come from other processes.
        first, last: whether its task is the first or last of the actor's order; ``following`` is the next one, round.
        special: the step itself, where it calls no method of the user's.
    """

    __slots__ = (
        "arrived",
        "constants",
        "first",
        "following",
        "last",
        "method",
        "name",
        "named",
        "names",
        "ports",
        "positional",
        "returns",
        "simple",
        "slot",
        "special",
        "strict",
        "task",
        "travels",
    )  # fmt: skip

    def __init__(self, step: Step, slot: int, user: Any, scope: Scope) -> None:
        self.slot, self.task, self.name = slot, step.task, step.name
        self.travels, self.strict = not isinstance(step, Enter) and step.travels, step.strict
        self.first = self.last = False
        self.following = self
        self.special: Forward | Enter | Leave | None = None
        self.ports: tuple[int | None, ...] = (None,)
        self.returns: int | None = None
        self.names: tuple[str, ...] = ()
        self.arrived: frozenset[int] = frozenset()
        self.simple = False
        if isinstance(step, Call):
            self._look_up(step, user, scope)
        else:
            self.special = step
        if isinstance(step, Leave):
            self.ports = step.ports
        elif isinstance(step, Enter):
            self.ports = tuple(range(step.operands))

    def _look_up(self, step: Call, user: Any, scope: Scope) -> None:
        self.method = getattr(user, step.method)
        self.ports, self.returns, self.names = step.ports, step.returns, step.names
        self.arrived = frozenset(step.arrived)
        self.constants = made_all(step.consts, "with", f"the constant {{}} of task {step.name}", scope, task=step.task)
        self.positional, self.named = _arrange(self.method, step.arguments)
        self.simple = all(isinstance(take, int) for take in (*self.positional, *(take for _, take in self.named)))

    def take_in(self, values: tuple[object, ...]) -> tuple[object, ...]:
        """The values, those from other processes freed from shared memory."""
        return tuple([detach(value) if place in self.arrived else value for place, value in enumerate(values)])

    def call(self, values: tuple[object, ...]) -> object:
        """Calls the user's method on what arrived."""
        if self.simple:
            arguments = {name: values[take] for name, take in self.named}  # type: ignore[index]
            return self.method(*[values[take] for take in self.positional], **arguments, **self.constants)  # type: ignore[index]
        positional = [pick(take, values) for take in self.positional]
        named = {name: pick(take, values) for name, take in self.named}
        return self.method(*positional, **named, **self.constants)

    def check_returns(self, result: object, iteration: int) -> object:
        """The tuple of a multi-return, None for an effect, or a ``Failed`` where the number is wrong."""
        if self.returns == 0:
            return None
        if isinstance(result, (tuple, list)) and len(result) == self.returns:
            return tuple(result)
        found = f"{len(result)} values" if isinstance(result, (tuple, list)) else f"one {type(result).__name__}"
        wanted = f"{self.returns} ({', '.join(self.names)})"
        message = f"it returned {found}, and its `returns` has {wanted}; a tuple or a list is needed"
        return Failed("arity", message, self.task, iteration)

    def hand_out(self, result: Any) -> object:
        """The step's ports: the value of the only one, or a tuple."""
        ports = self.ports
        if type(result) is Failed:
            return result if len(ports) < 2 else (result,) * len(ports)
        if len(ports) == 1:
            return result if ports[0] is None else result[ports[0]]
        return tuple([result[port] for port in ports]) if ports else None


def made_all(
    values: Mapping[Name, Value], key: str, what: str, scope: Scope, *, task: int | None = None
) -> dict[Name, Any]:
    """What stands under ``key`` of an actor or a task, made.

    Args:
        what: what each of them is, for the sentence; ``{}`` is its name.

    Raises:
        FailedTask: one of them cannot be made.
    """
    made: dict[Name, Any] = {}
    for name, value in values.items():
        try:
            made[name] = evaluate(value, what.format(name), scope)
        except Unmade as error:
            failed = Failed(error.kind, str(error), task, trace=error.trace, below=(key, name))
            raise FailedTask(failed) from None
    return made


def _arrange(
    method: Callable[..., object], arguments: tuple[tuple[str | int, Take], ...]
) -> tuple[list[Take], list[tuple[str, Take]]]:
    """Positional and named takes; parameters that are positional-only are given by position, whatever the spec says."""
    by_place = {name: take for name, take in arguments if isinstance(name, int)}
    named = {name: take for name, take in arguments if isinstance(name, str)}
    positional = [by_place[place] for place in sorted(by_place)]
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return positional, list(named.items())
    only = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    for name in only[len(positional) :]:
        if name not in named:
            break
        positional.append(named.pop(name))
    return positional, list(named.items())
