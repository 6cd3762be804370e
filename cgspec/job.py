"""All that a run needs to know of a spec without errors, and of how the user asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgspec.account import Locate
from cgspec.checking import Checked
from cgspec.diagnostics import Finding
from cgspec.expectations import Read
from cgspec.graph import Graph
from cgspec.spec import Spec


def _nowhere(path: tuple[str | int, ...]) -> tuple[str, int, int] | None:
    return None


@dataclass(frozen=True)
class Job:
    """What is run, and how.

    Attributes:
        spec, graph: of a spec without errors.
        read: parses values that stay raw in the spec, in the light of its vars (``ValueReader.read``).
        root: the folder that class files are relative to.
        text: the spec file as written.
        resolved: the raw data after include, variant and overrides, vars and ``$env`` as they stand.
        file: the spec file, as the user named it.
        overrides: dotted paths and values of the command line, ``variant`` included.
        findings: warnings and notes of ``check``.
        locate: the file, line and column of a YAML path.
        out: the folder of all runs; ``name`` is this one's below it (default: the graph's).
        rehearse: on CPUs.
        only: run this measured iteration alone.
        observe: whether to find out under which values failed expectations would have held (``Result.observed``).
        began: ``time.monotonic()`` when the process began, for the time to the first result.
    """

    spec: Spec
    graph: Graph
    read: Read
    root: Path
    text: str
    resolved: Mapping[str, Any]
    file: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    locate: Locate = _nowhere
    out: Path = Path("runs")
    name: str | None = None
    rehearse: bool = False
    only: int | None = None
    observe: bool = False
    began: float | None = None

    @classmethod
    def of(cls, checked: Checked, **how: Any) -> Job:
        """The job of a spec without errors; ``how`` are the fields that say how it is run."""
        assert checked.spec is not None and checked.graph is not None
        return cls(
            spec=checked.spec,
            graph=checked.graph,
            read=checked.values.read,
            root=checked.root,
            text=checked.text,
            resolved=checked.data,
            file=checked.file,
            findings=checked.findings,
            locate=checked.line_of,
            **how,
        )
