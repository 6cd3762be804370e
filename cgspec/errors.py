"""The exceptions of cgspec; a failure is an exception, a finding (``diagnostics``) is data.

::

    CgspecError                 exit code
    ├── UsageError                  2   the command line or the API was called wrongly
    ├── SpecError                   1   the spec has findings of severity error (carries them)
    ├── RunError                    1   the spec asks for a value that cannot be made
    ├── NotAble                     3   this machine or cluster cannot do what the spec asks
    ├── TaskRaised                  4   the user's code raised, or returned what cannot be used
    ├── Stalled                     5   a deadline passed
    ├── ActorDied                   5   an actor's process ended
    └── Interrupted               130   Ctrl-C or SIGTERM

Only the command line catches them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgspec.diagnostics import Finding


class CgspecError(Exception):
    """The root of the tree; ``status`` is the word of ``run --json``, ``exit_code`` the process's."""

    status = "invalid"
    exit_code = 2


class UsageError(CgspecError):
    """The command line or the Python API was called wrongly."""


class SpecError(CgspecError):
    """The spec has findings of severity error.

    Attributes:
        findings: everything that was found, warnings and notes included, in order of place.
        text: the findings as text, with excerpts.
    """

    exit_code = 1

    def __init__(self, findings: tuple[Finding, ...], text: str) -> None:
        super().__init__(text)
        self.findings = findings
        self.text = text


@dataclass(frozen=True)
class Failure:
    """What is known of a run that did not finish, in the words of ``run --json``.

    Attributes:
        kind: ``input``, ``raised``, ``unreadable``, ``unserialisable``, ``arity``, ``constructor``, ``import``,
            ``stall``, ``actor-died``, ``not-able`` or ``interrupted``.
        message: one sentence for the user.
        task: the task instance's name (``fwd.0.2``), where one is to blame.
        phase: ``startup``, ``warmup``, ``measure`` or ``profile``.
        iteration: the iteration within the phase, from 0.
        actor: the actor member's name.
        node: the address of the actor's node.
        path: the YAML path of the task or actor.
        traceback: the user's own frames, or the empty string.
        waiting: lines of the wait-for chain of a stall.
    """

    kind: str
    message: str
    task: str | None = None
    phase: str | None = None
    iteration: int | None = None
    actor: str | None = None
    node: str | None = None
    path: tuple[str | int, ...] = ()
    traceback: str = ""
    waiting: tuple[str, ...] = field(default=())


class RunError(CgspecError):
    """A run ended early; ``failure`` says where and why. As it is: a value of the spec cannot be made."""

    exit_code = 1

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NotAble(RunError):
    """This machine or cluster cannot do what the spec asks."""

    status, exit_code = "not-able", 3


class TaskRaised(RunError):
    """The user's code raised, or returned what cannot be used."""

    status, exit_code = "task-raised", 4


class Stalled(RunError):
    """A deadline of ``engine.timeouts`` passed."""

    status, exit_code = "timeout", 5


class ActorDied(RunError):
    """An actor's process ended while the graph needed it."""

    status, exit_code = "actor-died", 5


class Interrupted(RunError):
    """Ctrl-C or SIGTERM arrived."""

    status, exit_code = "interrupted", 130


def unmade_error(failure: Failure) -> RunError:
    """The error of a value that cannot be made: the spec's, or (not of kind ``input``) that of the user's function."""
    return RunError(failure) if failure.kind == "input" else TaskRaised(failure)
