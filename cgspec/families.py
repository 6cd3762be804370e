"""Families: what each actor, input and task of a spec is a family of, before any member is made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cgspec.diagnostics import Finding, Path, Related, nearest, suggest
from cgspec.parsing import LOST
from cgspec.spec import ActorSpec, Spec, TaskSpec
from cgspec.validation import Validated

COLLECTIVES = ("allreduce", "allgather", "reducescatter")
MAX_FINDINGS = 300
"""Findings of families and references that are told."""
MEMBER = "member"
"""The axis that ``members`` of a collective make."""


@dataclass(frozen=True)
class ActorFamily:
    """An actor of the spec; ``axes`` is empty where it is a single one."""

    name: str
    axes: Mapping[str, int]
    spec: ActorSpec


@dataclass(frozen=True)
class InputFamily:
    """An input of the spec; ``raw`` is its value without ``$each``, which stands at ``path``."""

    name: str
    axes: Mapping[str, int]
    raw: Any
    path: Path


@dataclass(frozen=True)
class Target:
    """What a ``call`` names: an actor family, picks on its axes, the axes that are left, and a method."""

    actor: ActorFamily
    picks: Mapping[str, int]
    axes: Mapping[str, int]
    method: str


@dataclass(frozen=True)
class TaskFamily:
    """A task of the spec.

    Attributes:
        axes: those of the actor that are not picked, then the task's own; for a collective those of its operands.
        target: what is called; None for a collective.
        kind: the collective, or ``call``.
        known: every axis that ``index`` and ``size`` know, with its size (picked ones included).
    """

    name: str
    axes: Mapping[str, int]
    spec: TaskSpec
    target: Target | None
    kind: Literal["call", "allreduce", "allgather", "reducescatter"]

    @property
    def returns(self) -> tuple[str, ...] | None:
        return None if self.spec.returns is None else tuple(self.spec.returns)

    @property
    def known(self) -> dict[str, int]:
        return {**(self.target.actor.axes if self.target else {}), **self.axes}

    @property
    def fixed(self) -> Mapping[str, int]:
        """Axes of the actor on which ``call`` picked a member."""
        return self.target.picks if self.target else {}


def size_of(axes: Mapping[str, int]) -> int:
    """How many members a family with these axes has."""
    return math.prod(axes.values())


@dataclass
class Catalogue:
    """The families of a spec that can be spoken of, the names of those that are faulty, and what these may read."""

    spec: Spec
    actors: dict[str, ActorFamily] = field(default_factory=dict)
    inputs: dict[str, InputFamily] = field(default_factory=dict)
    faulty: set[tuple[str, Any]] = field(default_factory=set)
    incomplete: set[tuple[str, Any]] = field(default_factory=set)
    lost: list[Any] = field(default_factory=list)
    unknown_reads: bool = False
    findings: list[Finding] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether enough is wrong already: who has more problems than these has one cause for most of them."""
        return len(self.findings) >= MAX_FINDINGS

    def report(self, code: str, message: str, path: Path, **more: Any) -> None:
        if not self.full:
            self.findings.append(Finding(code, message, path, **more))

    def is_faulty(self, section: str, name: str) -> bool:
        return (section, name) in self.faulty or self.is_lost(section)

    def is_lost(self, section: str) -> bool:
        """Whether a section is there and could not be read, so that it may hold any name."""
        return (section, "*") in self.faulty

    def target(self, call: str, path: Path, entry: tuple[str, Any] | None = None) -> Target | None:
        """What ``call`` names, or None and a finding (none where the actor itself is faulty)."""
        name, *selectors = call.split(".")
        method = selectors.pop() if selectors else ""
        actor = self.actors.get(name)
        if actor is None:
            if not self.is_faulty("actors", name):
                self._report_unknown_actor(call, name, path)
            return None
        if not method.isidentifier():
            fix = f"write {name}.METHOD"
            self.report("bad-call", f"{call} names no method: a call is actor[.selectors].method", path, fix=fix)
            return None
        picked = self._pick(call, actor, selectors, path)
        if picked is None:
            return None
        axes = {axis: size for axis, size in actor.axes.items() if axis not in picked}
        return Target(actor, picked, axes, method)

    def _report_unknown_actor(self, call: str, name: str, path: Path) -> None:
        offer = suggest(name, self.actors, noun="actors")
        self.report("unknown-actor", f"there is no actor {name or repr(call)}; {offer}", path, span=(0, len(name)))

    def _pick(self, call: str, actor: ActorFamily, selectors: list[str], path: Path) -> dict[str, int] | None:
        spans = selector_spans(selectors, len(actor.name) + 1)
        where: dict[str, Any] = {"related": axes_made(actor)}
        if len(selectors) > len(actor.axes):
            span = (spans[len(actor.axes)][0], spans[-1][1])
            self.report("wrong-selectors", too_many(call, actor.name, selectors, actor.axes), path, span=span, **where)
            return None
        picked: dict[str, int] = {}
        for text, span, (axis, size) in zip(selectors, spans, actor.axes.items(), strict=False):
            if text == "*":
                continue
            index = whole(text)
            if index is None:
                message = f"{text!r} in {call} is no selector: a whole number or *"
                self.report("wrong-selectors", message, path, span=span, **where)
                return None
            if not -size <= index < size:
                self.report("index-out-of-range", range_message(call, axis, size, index), path, span=span, **where)
                return None
            picked[axis] = index % size
        return picked


def selector_spans(parts: list[str], start: int) -> list[tuple[int, int]]:
    """Where dotted words stand in a text, the first at ``start``."""
    spans = []
    for part in parts:
        spans.append((start, start + len(part)))
        start += len(part) + 1
    return spans


def too_many(text: str, owner: str, selectors: list[str], axes: Mapping[str, int]) -> str:
    """That a text has more selectors than there are axes."""
    count = f"{len(selectors)} selector{'' if len(selectors) == 1 else 's'}"
    has = f"{'the axis' if len(axes) == 1 else 'the axes'} {', '.join(axes)}" if axes else "no axes"
    return f"{text} has {count}, and {owner} has {has}"


def axes_made(family: ActorFamily | InputFamily | TaskFamily, axis: str | None = None) -> tuple[Related, ...]:
    """The place where the axes of a family (or one of them) are written."""
    if isinstance(family, TaskFamily):
        if axis in family.spec.axes or (family.spec.axes and family.target is None):
            return (Related(f"the axes of {family.name}", ("tasks", family.name, "axes")),)
        return axes_made(family.target.actor, axis) if family.target is not None else ()
    if not family.axes:
        return ()
    section, name = ("inputs" if isinstance(family, InputFamily) else "actors"), family.name
    return (Related(f"the axes of {name}", (section, name, "axes")),)


def whole(text: str) -> int | None:
    """The whole number that a selector is, or None."""
    digits = text[1:] if text[:1] == "-" else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def range_message(text: str, axis: str, size: int, index: int) -> str:
    members = f"{size} members" if size > 1 else "1 member"
    return f"{text} asks for {index} on {axis}, which has {members} (0 to {size - 1})"


def catalogue(validated: Validated) -> Catalogue:
    """The actors and inputs of a validated spec."""
    assert validated.spec is not None
    spec = validated.spec
    result = Catalogue(
        spec,
        faulty=set(validated.faulty),
        incomplete=set(validated.incomplete),
        lost=[*validated.lost],
        unknown_reads=validated.unknown_reads,
    )
    for name, actor in spec.actors.items():
        result.actors[name] = ActorFamily(name, actor.axes, actor)
    for family in _inputs(result, validated):
        result.inputs[family.name] = family
    return result


def _inputs(result: Catalogue, validated: Validated) -> Iterator[InputFamily]:
    for name, raw in result.spec.inputs.items():
        path: Path = ("inputs", name)
        if not isinstance(raw, dict) or "$each" not in raw:
            yield InputFamily(name, {}, raw, path)
            continue
        for key in raw:
            if key not in ("$each", "axes"):
                offer = suggest(str(key), ("$each", "axes"), noun="it takes")
                result.report("unknown-key", f"$each takes no {key}; {offer}", (*path, key), on="key")
        axes = validated.reader.constant(raw.get("axes"), (*path, "axes"))
        if not _are_axes(axes):
            result.faulty.add(("inputs", name))
            fix = "write e.g. axes: {mb: 4}: names of axes and their sizes"
            if "axes" not in raw and nearest("axes", map(str, raw)) is None:
                result.report("missing-key", f"$each of {name} needs axes", path, fix=fix)
            elif "axes" in raw and axes is not LOST:
                message, where = f"axes of {name} is a map of names to whole numbers, at least 1", (*path, "axes")
                wrong = [axis for axis in axes if not _are_axes({axis: axes[axis]})] if isinstance(axes, dict) else []
                where = (*where, wrong[0]) if wrong else where
                result.report("wrong-type", message, where, fix=fix)
            continue
        yield InputFamily(name, axes, raw["$each"], (*path, "$each"))


def _are_axes(axes: Any) -> bool:
    return (
        isinstance(axes, dict)
        and bool(axes)
        and all(isinstance(axis, str) and axis.isidentifier() for axis in axes)
        and all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in axes.values())
    )
