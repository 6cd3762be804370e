"""Text → ``Checked``: the spec, its graph and everything that was found; never raises for a bad spec."""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cgspec import classes, loading, sweeping
from cgspec.classes import BadReference, ClassRef
from cgspec.diagnostics import Finding, Path, Place, nearest
from cgspec.expand import expand
from cgspec.families import catalogue
from cgspec.graph import Graph
from cgspec.layers import Merged, Sources
from cgspec.parsing import ValueReader
from cgspec.readings import Readings, read_values
from cgspec.rules import RULES, WHY_UNTRUSTED, Context
from cgspec.signatures.reader import SourceReader
from cgspec.source import Unreadable
from cgspec.spec import Spec
from cgspec.sweeping import Choice
from cgspec.trust import Trust
from cgspec.validation import Validated, validate
from cgspec.wiring import Wiring, wire

MAX_POINTS = 30
"""Points of a sweep that are checked by themselves: in a small spec all of them, within a second."""


@dataclass(frozen=True)
class Checked:
    """A spec as ``check`` leaves it.

    Attributes:
        file: as the user named it.
        name: the spec's name, by default the file's stem.
        spec, graph: None where the findings do not allow one.
        findings: with their places, in order of place.
        root: the folder that class files are relative to.
        text: the main file as written.
        data: the merged raw data: a valid spec, with vars and ``$`` values as they were written.
        values: reads raw values of the spec with its vars.
    """

    file: str
    name: str
    spec: Spec | None
    graph: Graph | None
    findings: tuple[Finding, ...]
    root: pathlib.Path
    text: str
    data: dict[str, Any]
    sources: Sources
    values: ValueReader
    files: tuple[pathlib.Path, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def line_of(self, path: Path) -> tuple[str, int, int] | None:
        """The file, line and column where the value at a path was said."""
        place = self.sources.locate(path)
        return (place.file, place.line, place.column) if place is not None else None


def check(
    path: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    variant: str | None = None,
    allow_import: Iterable[str] = (),
    rehearse: bool = False,
    point: Choice | None = None,
    variants: bool = False,
    raw: bytes | str | None = None,
) -> Checked:
    """Checks a spec without importing or running anything of the user's.

    Args:
        overrides: ``key=value`` texts, as on the command line.
        variant: the name of the variant to apply.
        allow_import: patterns of modules that may be imported beyond the project's own.
        rehearse: whether it is to be run on CPUs, which lifts what only GPUs need.
        point: a point of the spec's sweep, which is then checked as the spec that it makes.
        variants: whether each variant of the spec is checked too.
        raw: the text, where it is not to be read from ``path``.
    """
    settings: dict[str, Any] = {"overrides": overrides, "variant": variant, "allow_import": tuple(allow_import)}
    with _no_collection():
        settings["rehearse"] = rehearse
        checked = _check(os.fspath(path), raw, point, settings)
        if not variants or variant is not None:
            return checked
        named = checked.data.get("variants")
        names = list(named)[:MAX_POINTS] if isinstance(named, dict) and not checked.errors else []
        made = ((f"in the variant {n}", _check(os.fspath(path), raw, None, {**settings, "variant": n})) for n in names)
        return _with_points(checked, made)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Without Python's collector, which would look again and again at values that all stay."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _check(shown: str, raw: bytes | str | None, point: Choice | None, settings: dict[str, Any]) -> Checked:
    file = pathlib.Path(shown)
    overrides, variant = settings["overrides"], settings["variant"]
    try:
        content = _read(file, shown) if raw is None else raw
        merged = loading.load(file, shown=shown, raw=content, overrides=overrides, variant=variant, point=point)
    except Unreadable as error:
        return _nothing(file, shown, error.finding)
    checked = _Checker(file, shown, merged, settings["allow_import"], settings["rehearse"]).run()
    if checked.spec is None or checked.spec.sweep is None:
        return checked
    chosen = sweeping.covering(checked.spec.sweep)[:MAX_POINTS]
    points = [(f"in the sweep, at {each.label}", _check(shown, content, each.choice, settings)) for each in chosen]
    return _with_points(checked, points)


def _with_points(checked: Checked, points: Iterable[tuple[str, Checked]]) -> Checked:
    """A spec with the findings of its sweep's points, or of its variants, each once and said to be theirs."""
    found = {(finding.code, finding.path, finding.message): finding for finding in checked.findings}
    for label, point in points:
        for finding in point.findings:
            key = (finding.code, finding.path, finding.message)
            found.setdefault(key, replace(finding, message=f"{finding.message} ({label})"))
    findings = _ordered(checked.sources, found.values(), checked.file)
    if _has_error(findings):
        return replace(checked, findings=findings, spec=None, graph=None)
    return replace(checked, findings=findings)


def _read(file: pathlib.Path, shown: str) -> bytes:
    try:
        return loading.read_file(file)
    except (OSError, ValueError) as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else _reason(error)
        near = nearest(file.name, loading.yaml_files(file.parent))
        fix = f"did you mean {os.path.join(os.path.dirname(shown), near)}?" if near else ""
        finding = Finding("no-file", f"{shown} cannot be read: {reason}", place=Place(shown, 0, 0, 0, ""), fix=fix)
        raise Unreadable(finding) from None


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _nothing(file: pathlib.Path, shown: str, finding: Finding) -> Checked:
    reader = ValueReader({}, lambda text, path: ClassRef("", text, None))
    return Checked(shown, file.stem, None, None, (finding,), file.parent, "", {}, Sources(), reader)


class _Code:
    """The classes and functions that a spec names, each text read once."""

    def __init__(self) -> None:
        self.calls: dict[tuple[ClassRef, Path], None] = {}
        self.findings: list[Finding] = []
        self.refs: dict[tuple[str, Path], ClassRef] = {}

    def function(self, text: str, path: Path) -> ClassRef:
        """The function that ``$call`` names."""
        ref = self._reference(text, path, "function")
        if ref.module:
            self.calls[ref, path] = None
        return ref

    def class_ref(self, text: str, path: Path) -> ClassRef:
        """The class that an actor names."""
        return self._reference(text, path, "Class")

    def _reference(self, text: str, path: Path, noun: str) -> ClassRef:
        if (text, path) not in self.refs:
            try:
                self.refs[text, path] = classes.parse(text, noun)
            except BadReference as error:
                why = WHY_UNTRUSTED if error.code == "untrusted-class" else ""
                self.findings.append(Finding(error.code, str(error), path, why=why, fix=error.fix))
                self.refs[text, path] = ClassRef("", text, None)
        return self.refs[text, path]


class _Checker:
    def __init__(
        self, file: pathlib.Path, shown: str, merged: Merged, allow_import: tuple[str, ...], rehearse: bool
    ) -> None:
        self.file = file
        self.shown = shown
        self.merged = merged
        self.allow_import = allow_import
        self.rehearse = rehearse
        self.code = _Code()

    def run(self) -> Checked:
        validated = validate(self.merged.data, self.code.function, partial=self.merged.partial)
        findings = [*self.merged.findings, *validated.findings]
        graph = None
        if validated.spec is not None:
            graph, more = self._judge(validated, sound=not any(map(_shapes_graph, findings)))
            findings += more
        return self._checked(validated, graph, findings)

    def _judge(self, validated: Validated, *, sound: bool) -> tuple[Graph | None, list[Finding]]:
        """The graph of a readable spec, and what the families and the rules have to say."""
        values = validated.reader
        before = len(values.findings)
        families = catalogue(validated)
        families.lost.extend(self.merged.dropped)
        wiring = wire(families, values)
        for name, actor in families.actors.items():
            self.code.class_ref(actor.spec.class_, ("actors", name, "class"))
        readings = read_values(wiring, values)
        broken = wiring.broken or families.faulty or _has_error([*families.findings, *values.findings])
        sound = sound and readings.sound and not broken
        graph = self._graph(wiring, readings, families.spec) if sound else None
        context = self._context(validated, wiring, readings)
        found = [finding for rule in RULES if rule.needs == "families" for finding in rule.find(context)]
        early = [*families.findings, *values.findings[before:], *self.code.findings]
        if graph is not None:
            whole = replace(context, graph=graph)
            found += [finding for rule in RULES if rule.needs == "graph" for finding in rule.find(whole)]
        return graph, [*early, *found]

    def _graph(self, wiring: Wiring, readings: Readings, spec: Spec) -> Graph | None:
        name, placement = self._name(spec), spec.cluster.placement
        return expand(wiring, readings, self.code.class_ref, name=name, placement=placement)

    def _context(self, validated: Validated, wiring: Wiring, readings: Readings) -> Context:
        root = self.merged.root
        trust = Trust.for_root(root, self.allow_import, declared="root" in self.merged.data)
        assert validated.spec is not None
        calls = tuple(self.code.calls)
        return Context(
            spec=validated.spec,
            catalogue=wiring.catalogue,
            wiring=wiring,
            classes=SourceReader(root),
            trust=trust,
            readings=readings,
            calls=calls,
            data=self.merged.data,
            folder=self._folder(),
            rehearse=self.rehearse,
        )

    def _folder(self) -> str:
        """The root, as the user would name it."""
        relative = os.path.relpath(self.merged.root, os.path.abspath(self.file.parent))
        return os.path.normpath(os.path.join(os.path.dirname(self.shown), relative))

    def _name(self, spec: Spec | None) -> str:
        return (spec.name if spec is not None else None) or self.file.stem

    def _checked(self, validated: Validated, graph: Graph | None, findings: list[Finding]) -> Checked:
        placed = _ordered(self.merged.sources, findings, self.shown)
        return Checked(
            file=self.shown,
            name=self._name(validated.spec),
            spec=validated.spec if not _has_error(placed) else None,
            graph=graph if not _has_error(placed) else None,
            findings=placed,
            root=self.merged.root,
            text=self.merged.text,
            data=self.merged.data,
            sources=self.merged.sources,
            values=validated.reader,
            files=tuple(self.merged.files),
        )


def _shapes_graph(finding: Finding) -> bool:
    """Whether a fault may change which members, edges and orders there are, so that none can be made."""
    return finding.severity == "error" and finding.path[:1] not in [(section,) for section in _ASIDE]


_ASIDE = ("name", "engine", "cluster", "setup", "run", "profile", "metrics", "expect", "variants", "sweep")
"""Sections that do not shape the graph."""


def _has_error(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _ordered(sources: Sources, findings: Iterable[Finding], main: str) -> tuple[Finding, ...]:
    """Findings with their places, each once, in order of place: the main file first."""
    unique = {(f.code, f.path, f.message, f.place): f for f in findings}
    placed = [sources.place(finding) for finding in unique.values()]

    def key(finding: Finding) -> tuple[bool, str, int, int]:
        place = finding.place or Place(main, 0, 0, 0, "")
        return place.file != main, place.file, place.line, place.column

    return tuple(sorted(placed, key=key))
