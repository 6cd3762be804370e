"""cgspec runs Ray Compiled Graphs from one checked-in YAML file.

::

    import cgspec

    cgspec.check("spec.yaml")                      # findings; nothing of yours is imported
    spec = cgspec.load("spec.yaml")                # draws itself in a notebook
    with cgspec.start(spec) as graph:
        graph(value=1)                             # or: await graph.call(value=1)
    cgspec.run("spec.yaml")                        # as on the command line
    cgspec.open_run("runs/spec/latest")            # a run of last week; both draw themselves, with their times
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgspec.api import LiveGraph, Loaded, OpenRun, check, load, open_run, run, start

__version__ = "0.1.0"
__all__ = ["LiveGraph", "Loaded", "OpenRun", "check", "load", "open_run", "run", "start"]


def __getattr__(name: str) -> Any:
    """The interface is loaded when it is asked for: every actor imports this package."""
    if name in __all__:
        from cgspec import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
