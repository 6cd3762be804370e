"""What a rule sees, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from cgspec.classes import ClassRef
from cgspec.diagnostics import Finding, Path
from cgspec.families import Catalogue
from cgspec.graph import Graph
from cgspec.readings import Readings
from cgspec.signatures.reader import SourceReader
from cgspec.spec import Spec
from cgspec.trust import Trust
from cgspec.wiring import Wiring

T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """A spec that could be read.

    Attributes:
        graph: None for rules of families.
        classes: reads signatures without importing anything.
        rehearse: whether the spec is to be run on CPUs.
        calls: the functions that ``$call`` names, with the paths where it does.
        data: the spec's raw data.
        folder: the folder that class files are relative to, as the user would name it.
    """

    spec: Spec
    catalogue: Catalogue
    wiring: Wiring
    classes: SourceReader
    trust: Trust
    readings: Readings
    calls: tuple[tuple[ClassRef, Path], ...]
    data: Mapping[str, Any]
    folder: str = "."
    graph: Graph | None = None
    rehearse: bool = False
    _once: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def raw(self, path: Path) -> Any:
        """The raw data at a path, or None."""
        data: Any = self.data
        for part in path:
            if isinstance(data, dict):
                data = data.get(part)
            else:
                known = isinstance(data, list) and isinstance(part, int) and part in range(len(data))
                data = data[part] if known else None
        return data

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What ``make`` gives, made once for each key: rules share what takes time."""
        if key not in self._once:
            self._once[key] = make()
        found: T = self._once[key]
        return found

    @property
    def sound(self) -> Graph:
        """The graph, for rules that need it."""
        assert self.graph is not None
        return self.graph

    def is_whole(self, section: str, name: str) -> bool:
        """Whether an entry was read completely, so that what it lacks may be said."""
        return (section, name) not in self.catalogue.incomplete and name not in self.wiring.broken


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        code: of every finding that it yields.
        needs: ``families``, or ``graph`` where it looks at members.
    """

    code: str
    find: Callable[[Context], Iterable[Finding]]
    needs: Literal["families", "graph"] = "families"
