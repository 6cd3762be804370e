"""The driver's side of a phase: which workers are watched, and what they recorded put together, files included."""

from __future__ import annotations

import gzip
import json
import pathlib
import zlib
from array import array
from collections.abc import Mapping, Sequence

from cgspec.engines import Phase, PhaseData, TaskTimes
from cgspec.graph import Graph
from cgspec.profilers import PROFILERS, WatchJob
from cgspec.worker import WorkerPhase

PARSED_UP_TO = 32 * 2**20
"""Bytes of a gzipped trace up to which it is parsed to see that it is whole."""


def watch_job(graph: Graph, phase: Phase, actor: int, *, gpu: bool = False) -> WatchJob | None:
    """What the worker of ``actor``, which has a ``gpu`` or none, has to watch in this phase; None: nothing."""
    profile = phase.profile
    if profile is None or (phase.actors is not None and actor not in phase.actors):
        return None
    if not PROFILERS[profile.kind].watches(profile):
        return None
    return WatchJob(
        kind=profile.kind,
        actor=graph.actors[actor].name,
        warmup=profile.warmup,
        iterations=profile.iterations,
        shapes=profile.shapes,
        memory=profile.memory,
        stacks=profile.stacks,
        flops=profile.flops,
        nvtx=profile.nvtx,
        gpu=gpu,
        rank=actor,
        world_size=len(graph.actors),
    )


def finish(graph: Graph, phase: Phase, parts: Sequence[WorkerPhase]) -> PhaseData:
    """A phase's data from what each worker recorded; traces are written into the phase's folder."""
    found = {task: _times(part, task) for part in parts for task in part.times}
    data = PhaseData(tuple(found[task] for task in range(len(graph.tasks))))
    for actor, part in zip(graph.actors, parts, strict=True):
        data.peaks[actor.name] = part.peak
        data.looked.update(part.looked)
        if part.device_error is not None:
            data.device_errors[actor.name] = part.device_error
        data.notes.extend(f"actor {actor.name}: {note}" for note in part.notes)
        for name, content in part.files.items():
            _keep(phase, data, name, content)
    return data


def rescued(graph: Graph, parts: Mapping[int, WorkerPhase]) -> PhaseData:
    """The data of a phase that broke, from what the actors that answered hold, by actor."""
    found = {task: TaskTimes(*held) for part in parts.values() for task, held in part.times.items()}
    nothing = TaskTimes(0, array("q"), array("q"))
    peaks = {graph.actors[number].name: part.peak for number, part in parts.items()}
    return PhaseData(tuple(found.get(task, nothing) for task in range(len(graph.tasks))), peaks=peaks)


def _times(part: WorkerPhase, task: int) -> TaskTimes:
    device = part.device.get(task)
    return TaskTimes(*part.times[task], None if device is None else TaskTimes(*device))


def _keep(phase: Phase, data: PhaseData, name: str, content: bytes) -> None:
    if phase.trace_dir is None:
        return
    phase.trace_dir.mkdir(parents=True, exist_ok=True)
    path = phase.trace_dir / name
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
    data.files.append(path)
    if (wrong := _unreadable(path)) is not None:
        data.notes.append(f"{path.name} is not a whole trace: {wrong}")


def _unreadable(path: pathlib.Path) -> str | None:
    """Why a trace cannot be opened; None if it can, or is too large to try."""
    if not path.name.endswith(".json.gz") or path.stat().st_size > PARSED_UP_TO:
        return None
    try:
        with gzip.open(path, "rt") as text:
            events = json.load(text)["traceEvents"]
        return None if events else "it has no events"
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
