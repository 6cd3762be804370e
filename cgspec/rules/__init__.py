"""The rules: what may be wrong with a spec whose parts can all be read, one small function for each code.

A rule sees a ``Context`` and yields findings. Rules that need the graph run only where the spec is sound.
"""

from __future__ import annotations

from cgspec.rules import (
    actors,
    arguments,
    classes,
    collectives,
    expectations,
    flow,
    metrics,
    profilers,
    running,
    settings,
    sweeps,
    tensors,
    transports,
)
from cgspec.rules.classes import WHY_UNTRUSTED
from cgspec.rules.context import Context, Rule

RULES: tuple[Rule, ...] = (
    *classes.RULES,
    *arguments.RULES,
    *actors.RULES,
    *flow.RULES,
    *transports.RULES,
    *collectives.RULES,
    *tensors.RULES,
    *running.RULES,
    *sweeps.RULES,
    *settings.RULES,
    *profilers.RULES,
    *expectations.RULES,
    *metrics.RULES,
)

__all__ = ["RULES", "WHY_UNTRUSTED", "Context", "Rule"]
