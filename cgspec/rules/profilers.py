"""Rules about profilers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cgspec.diagnostics import Finding, Path, Related, suggest
from cgspec.families import ActorFamily, whole
from cgspec.rules.context import Context, Rule
from cgspec.spec import ProfileSpec

_ONLY_FOR = {
    "actors": ("torch", "nvtx", "nsight"),
    "shapes": ("torch",),
    "memory": ("torch",),
    "stacks": ("torch",),
    "flops": ("torch",),
    "options": ("nsight",),
    "nvtx": ("nsight",),
}


def _selected(profile: ProfileSpec, actors: Mapping[str, ActorFamily]) -> set[str]:
    """The actor families that a profile watches."""
    if profile.actors is None:
        return set(actors)
    return {str(entry).split(".")[0] for entry in profile.actors}


def profiler_conflict(context: Context) -> Iterator[Finding]:
    """torch and Nsight on one actor, or ``none`` beside a profiler."""
    profiles = list(enumerate(context.spec.profile))
    for number, profile in profiles:
        if profile.kind == "none" and len(profiles) > 1:
            message, fix = "none stands alone, and here are other profilers", "remove none, or the others"
            yield Finding("profiler-conflict", message, ("profile", number), fix=fix)
    for first, torch in (entry for entry in profiles if entry[1].kind == "torch"):
        for number, nsight in (entry for entry in profiles if entry[1].kind == "nsight"):
            actors = context.catalogue.actors
            shared = sorted(_selected(torch, actors) & _selected(nsight, actors))
            if shared:
                message = f"torch and nsight both watch {', '.join(shared)}"
                why = "both read the GPU through CUPTI, which serves one of them at a time"
                fix = "run one after the other (--profile torch, then --profile nsight), or give each its own actors"
                made = (Related("torch is here", ("profile", first)),)
                yield Finding("profiler-conflict", message, ("profile", number), why=why, fix=fix, related=made)
                return


def nvtx_unrecorded(context: Context) -> Iterator[Finding]:
    """NVTX ranges that nothing records: a note."""
    kinds = {profile.kind for profile in context.spec.profile}
    for number, profile in enumerate(context.spec.profile):
        if profile.kind == "nvtx" and "nsight" not in kinds:
            message = "nvtx marks ranges, and nothing here records them"
            fix = "start the run under nsys, or use profile: {kind: nsight, nvtx: true}"
            yield Finding("nvtx-unrecorded", message, ("profile", number), "note", fix=fix)


def profile_setting(context: Context) -> Iterator[Finding]:
    """A setting that the profiler does not have."""
    for number, profile in enumerate(context.spec.profile):
        for key, kinds in _ONLY_FOR.items():
            if key in profile.model_fields_set and profile.kind not in kinds:
                message = f"{key} is a setting of {' and '.join(kinds)}, and {profile.kind} would ignore it"
                path: Path = ("profile", number, key)
                yield Finding("profile-setting", message, path, "warning", on="key", fix=f"remove {key}")


def profile_actor(context: Context) -> Iterator[Finding]:
    """A profile of an actor that there is not."""
    for number, profile in enumerate(context.spec.profile):
        for place, entry in enumerate(profile.actors or ()):
            problem = _problem(str(entry), context.catalogue.actors)
            name = str(entry).split(".")[0]
            if problem and not context.catalogue.is_faulty("actors", name):
                path: Path = ("profile", number, "actors", place)
                yield Finding("profile-actor", problem, path)


def _problem(entry: str, actors: Mapping[str, ActorFamily]) -> str | None:
    name, *selectors = entry.split(".")
    actor = actors.get(name)
    if actor is None:
        return f"there is no actor {name} to profile; {suggest(name, actors, noun='actors')}"
    if len(selectors) > len(actor.axes):
        return f"{entry} has {len(selectors)} selectors, and {name} has {len(actor.axes)} axes"
    for selector, (axis, size) in zip(selectors, actor.axes.items(), strict=False):
        index = whole(selector)
        if selector != "*" and (index is None or not -size <= index < size):
            return f"{entry} names no member of {name}: {axis} goes from 0 to {size - 1}"
    return None


RULES = (
    Rule("profiler-conflict", profiler_conflict),
    Rule("nvtx-unrecorded", nvtx_unrecorded),
    Rule("profile-setting", profile_setting),
    Rule("profile-actor", profile_actor),
)
