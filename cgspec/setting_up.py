"""The plain calls outside the graph that a spec asks for under ``setup``."""

from __future__ import annotations

from collections.abc import Sequence

from cgspec.engines import Engine
from cgspec.feed import Feed, made
from cgspec.plans import Setup


def set_up(engine: Engine, setups: Sequence[Setup], feed: Feed, *, first: bool) -> None:
    """Makes the calls that are due before a phase.

    Args:
        first: whether the user's objects are new, so that calls ``at: run`` are due too.

    Raises:
        TaskRaised: a method raised, or a function that makes an argument.
        RunError: an argument cannot be made.
    """
    for setup in setups:
        if first or setup.every_phase:
            scope = feed.scope(None)
            scope.device = engine.device(setup.actor)
            what = f"an argument of the setup call of {setup.method}"
            given = {
                name: made(value, what, setup.path, scope, phase="startup") for name, value in setup.kwargs.items()
            }
            engine.call(setup.actor, setup.method, given)
