"""What a run will do, from its spec: the phases, what the engine is asked for, and the calls outside the graph."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cgspec.diagnostics import suggest
from cgspec.engines import Options, Phase
from cgspec.errors import UsageError
from cgspec.expectations import Read
from cgspec.graph import Actor, Graph
from cgspec.looks import looks_of
from cgspec.phases import Plan
from cgspec.selection import select
from cgspec.spec import ProfileSpec, SetupSpec, Spec
from cgspec.values import Value

TRACE_DIRS = {"torch": "trace", "nsight": "nsight"}
"""Profiler to the run folder's sub-folder of its files."""


@dataclass(frozen=True)
class Setup:
    """One plain call of one actor member; the values of ``kwargs`` are still to be made."""

    actor: int
    method: str
    kwargs: Mapping[str, Value]
    every_phase: bool
    path: tuple[str | int, ...]


def profiles_of(spec: Spec, *, rehearse: bool = False) -> tuple[ProfileSpec, ...]:
    """The profilers of a spec, each of which has a phase of its own; a rehearsal does without what is not installed."""
    wanted = tuple(profile for profile in spec.profile if profile.kind != "none")
    left_out = skipped(spec, rehearse=rehearse)
    return tuple(profile for profile in wanted if profile.kind not in left_out)


def skipped(spec: Spec, *, rehearse: bool) -> dict[str, str]:
    """The profilers that a rehearsal leaves out, each with a sentence that says why."""
    asked = any(profile.kind == "nsight" for profile in spec.profile)
    if rehearse and asked and shutil.which("nsys") is None:
        return {"nsight": "nsys is not on PATH: the rehearsal leaves the profile nsight out"}
    return {}


def watched(graph: Graph, profile: ProfileSpec) -> tuple[int, ...] | None:
    """The actors that a profiler watches, as indices into ``graph.actors``; None: all.

    Raises:
        UsageError: the spec names an actor that is not there.
    """
    if profile.actors is None:
        return None
    found: set[int] = set()
    for said in profile.actors:
        if not (members := select(graph.actors, said)):
            raise UsageError(f"profile.actors: {_no_actor(graph, str(said))}")
        found.update(members)
    return tuple(sorted(found))


def _no_actor(graph: Graph, said: str) -> str:
    names = [actor.name for actor in graph.actors]
    return f"there is no actor {said}; {suggest(said, names, noun='actors')}"


def options_of(spec: Spec, graph: Graph, root: Path, *, rehearse: bool, log_dir: Path | None) -> Options:
    """What the engine is asked for."""
    profiles = profiles_of(spec, rehearse=rehearse)
    nsight = [watched(graph, profile) for profile in profiles if profile.kind == "nsight"]
    everyone = not nsight or any(actors is None for actors in nsight)
    return Options(
        engine=spec.engine,
        cluster=spec.cluster,
        inflight=spec.run.inflight,
        root=root,
        rehearse=rehearse,
        log_dir=log_dir,
        profiles=profiles,
        nsight_actors=None if everyone else tuple(sorted({n for actors in nsight for n in actors or ()})),
    )


def plans_of(spec: Spec, graph: Graph, folder: Path, *, only: int | None = None, rehearse: bool = False) -> list[Plan]:
    """The passes in order: warmup, measure, one per profiler; or the measured iteration ``only`` alone."""
    run, going = spec.run, spec.run.on_error == "continue"
    measure = Phase("measure", run.iterations if only is None else 1, looks=looks_of(spec, graph))
    if only is not None:
        return [Plan(measure, first=only)]
    plans = [Plan(Phase("warmup", run.warmup), run.inflight, keep_going=going)] if run.warmup else []
    plans.append(Plan(measure, run.inflight, duration=run.duration, keep_going=going))
    used: dict[str, int] = {}
    for profile in profiles_of(spec, rehearse=rehearse):
        name = TRACE_DIRS.get(profile.kind, profile.kind)
        used[name] = used.get(name, 0) + 1
        place = folder / (name if used[name] == 1 else f"{name}-{used[name]}")
        phase = Phase("profile", profile.warmup + profile.iterations, profile, watched(graph, profile), place)
        plans.append(Plan(phase, run.inflight, keep_going=going))
    return plans


def setups_of(spec: Spec, graph: Graph, read: Read) -> list[Setup]:
    """The calls outside the graph, one per member.

    Raises:
        UsageError: the spec names an actor that is not there.
    """
    return [setup for number, said in enumerate(spec.setup) for setup in _setups(graph, number, said, read)]


def _setups(graph: Graph, number: int, said: SetupSpec, read: Read) -> list[Setup]:
    target, _, method = said.call.rpartition(".")
    members = select(graph.actors, target)
    if not members:
        raise UsageError(f"setup: {_no_actor(graph, target)}")
    path = ("setup", number)
    kwargs = {name: read(value, (*path, "with", name)) for name, value in (said.with_ or {}).items()}
    return [
        Setup(
            actor=member,
            method=method,
            kwargs={name: value.bind(_places(graph.actors, member)) for name, value in kwargs.items()},
            every_phase=said.at == "phase",
            path=path,
        )
        for member in members
    ]


def _places(actors: Sequence[Actor], member: int) -> dict[str, object]:
    """``index.<axis>`` and ``size.<axis>`` of a member."""
    found: dict[str, object] = {}
    for axis, index in actors[member].index:
        family = [actor for actor in actors if actor.family == actors[member].family]
        found[f"index.{axis}"] = index
        found[f"size.{axis}"] = 1 + max(dict(actor.index)[axis] for actor in family)
    return found
