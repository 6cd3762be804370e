"""Every value of a spec, read once for each family, whether a graph can be made or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cgspec.diagnostics import Path
from cgspec.families import Catalogue
from cgspec.parsing import ValueReader
from cgspec.references import check_axes_known
from cgspec.values import Value
from cgspec.wiring import Wiring

_EXPECTED = ("equals", "shape", "length", "below", "above")


@dataclass
class Readings:
    """Values by family; those of actors and tasks by (key, inner key or position).

    Attributes:
        inputs: per input, its value.
        actors: per actor, ``args``, ``env`` and ``options``; tasks: per task, ``with`` and ``slot``.
        sound: whether every ``index`` and ``size`` is known and nothing per iteration stands where it cannot.
    """

    inputs: dict[str, Value] = field(default_factory=dict)
    actors: dict[str, dict[tuple[str, Any], Value]] = field(default_factory=dict)
    tasks: dict[str, dict[tuple[str, Any], Value]] = field(default_factory=dict)
    sound: bool = True


def read_values(wiring: Wiring, values: ValueReader) -> Readings:
    """Reads the values of a spec; what is wrong with them becomes findings of the reader and the catalogue."""
    reading = _Reading(wiring.catalogue, values)
    reading.inputs()
    reading.actors()
    reading.tasks(wiring)
    reading.others()
    return reading.result


class _Reading:
    def __init__(self, catalogue: Catalogue, values: ValueReader) -> None:
        self.catalogue = catalogue
        self.values = values
        self.result = Readings()

    def read(self, raw: Any, path: Path, known: Mapping[str, int], forbidden: tuple[str, ...] = ("i",)) -> Value:
        """A value whose axes are known there; ``forbidden`` are uses that its place does not allow."""
        value = self.values.read(raw, path)
        if not value.uses:
            return value
        self.result.sound &= check_axes_known(self.catalogue, value, known, path)
        used = sorted(value.uses.intersection(forbidden))
        if used:
            message = f"this is made once, and it uses {' and '.join(used)}, which is not known there"
            fix = "what changes with the iteration is an input: put it under inputs and read it under in"
            self.catalogue.report("not-constant", message, path, fix=fix if "i" in used else "")
            self.result.sound = False
        return value

    def inputs(self) -> None:
        for name, family in self.catalogue.inputs.items():
            self.result.inputs[name] = self.read(family.raw, family.path, family.axes, ("device",))

    def actors(self) -> None:
        for name, family in self.catalogue.actors.items():
            spec, path = family.spec, ("actors", name)
            args = enumerate(spec.args) if isinstance(spec.args, list) else (spec.args or {}).items()
            found = {("args", key): self.read(raw, (*path, "args", key), family.axes) for key, raw in args}
            for section, entries in (("env", spec.env), ("options", spec.options)):
                for key, raw in entries.items():
                    found[section, key] = self.read(raw, (*path, section, key), family.axes, ("i", "device"))
            self.result.actors[name] = found

    def tasks(self, wiring: Wiring) -> None:
        for name, family in wiring.tasks.items():
            spec, path = family.spec, ("tasks", name)
            found: dict[tuple[str, Any], Value] = {}
            for key, raw in (spec.with_ or {}).items():
                found["with", key] = self.read(raw, (*path, "with", key), family.known)
            if spec.slot is not None:
                found["slot", None] = self.read(spec.slot, (*path, "slot"), family.known, ("i", "device"))
            self.result.tasks[name] = found

    def others(self) -> None:
        """Values that the run reads again: of setup and of expectations."""
        for number, call in enumerate(self.catalogue.spec.setup):
            target = self.catalogue.target(call.call, ("setup", number, "call"))
            known = target.actor.axes if target is not None else {}
            for key, raw in (call.with_ or {}).items():
                self.read(raw, ("setup", number, "with", key), known)
        for number, entry in enumerate(self.catalogue.spec.expect):
            for key in _EXPECTED:
                if key in entry.model_fields_set:
                    self.read(getattr(entry, key), ("expect", number, key), {}, ("device", "feedback"))
            if entry.close is not None:
                self.read(entry.close.to, ("expect", number, "close", "to"), {}, ("device", "feedback"))
