"""Nsight Systems: the driver's side. Ray starts the watched workers under ``nsys profile``; reports come when they end.

Ray kills a worker's process group when the worker ends, ``nsys`` with it, before it has exported
(https://github.com/ray-project/ray/issues/60904): a local Ray is started with that cleanup off. Whoever ends the actors
waits here for the reports, as long as there is an ``nsys`` that may still write one.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgspec import raynames
from cgspec.errors import Failure, NotAble
from cgspec.quantities import show_duration

if TYPE_CHECKING:
    from cgspec.engines import Options
    from cgspec.spec import ProfileSpec

SUFFIX = ".nsys-rep"
PART = 4 * 2**20
"""Bytes that are copied at a time."""
DEFAULT = {"t": "cuda,cudnn,cublas,nvtx", "stop-on-exit": "true"}
"""The options of Ray's own ``{"nsight": "default"}``."""
CAPTURE = {"capture-range": "cudaProfilerApi", "capture-range-end": "stop"}
"""nsys records between cudaProfilerStart and cudaProfilerStop only, and its program goes on (``capture``)."""
CHOICE = ("c", "capture-range")
"""What says when nsys records; where the user says it, it is his affair."""


def nsight_profile(options: Options) -> ProfileSpec | None:
    """The nsight phase of the run, if it has one: there is one for the whole process."""
    return next((profile for profile in options.profiles if profile.kind == "nsight"), None)


def is_watched(options: Options, actor: int) -> bool:
    watched = nsight_profile(options) is not None
    return watched and (options.nsight_actors is None or actor in options.nsight_actors)


def nsight_env(options: Options, actor: int, run: str, *, gpu: bool) -> dict[str, object] | None:
    """The ``runtime_env`` entries that put an actor under ``nsys``; None: it is not watched.

    Only a process that uses a ``gpu`` can tell nsys when to record; one without is recorded as a whole.

    Args:
        run: as in ``report_name``.
    """
    profile = nsight_profile(options)
    if profile is None or not is_watched(options, actor):
        return None
    given = profile.options or DEFAULT
    limits = CAPTURE if gpu and not any(name in given for name in CHOICE) else {}
    return {"nsight": {**limits, **given, "o": report_name(actor, run)}}


def report_name(actor: int, run: str) -> str:
    """What an actor's report is called in Ray's folder, without its suffix: there are those of other runs, too.

    Args:
        run: a word of this run alone.
    """
    return f"cgspec-{run}-actor-{actor}"


def require_nsys(options: Options) -> None:
    """Refuses a run that could not be profiled.

    Raises:
        NotAble: ``nsys`` is not on PATH.
    """
    if nsight_profile(options) is None or options.cluster.address != "local" or shutil.which("nsys"):
        return
    message = "nsys is not on PATH: profile nsight needs Nsight Systems; --profile none runs without it"
    raise NotAble(Failure("not-able", message, phase="startup", path=("profile",)))


def python_on_path() -> str:
    """PATH with this environment's ``bin`` first: Ray starts the worker as ``nsys profile … python``."""
    own = os.path.dirname(sys.executable)
    return own + os.pathsep + os.environ.get("PATH", "")


@dataclass(frozen=True)
class Look:
    """What there is of a report: its bytes so far (None: no file yet), and whether an ``nsys`` that writes it lives."""

    size: int | None
    coming: bool


@dataclass(frozen=True)
class Source:
    """The reports of one node.

    Attributes:
        names: the reports' names to their actors' names.
        node: the node's address.
        look: what there is of them, by name; what it leaves out is gone.
        fetch: one of them, in parts.
    """

    names: Mapping[str, str]
    node: str
    look: Callable[[], Mapping[str, Look]]
    fetch: Callable[[str], Iterable[bytes]]


def folder() -> pathlib.Path:
    """Where Ray puts the reports of this process's node."""
    return raynames.session_folder() / "logs" / "nsight"


def look(folder: pathlib.Path, names: Sequence[str]) -> dict[str, Look]:
    """What there is of some reports; an ``nsys`` that writes one has its name among its arguments until it is done."""
    running = _arguments()
    return {name: Look(_size(folder / name), any(_stem(name) in each for each in running)) for name in names}


def _size(path: pathlib.Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _stem(name: str) -> bytes:
    return name.removesuffix(SUFFIX).encode()


def _arguments() -> list[bytes]:
    """The command lines of the machine's processes; one that has ended has none."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return found


def local(names: Mapping[str, str]) -> Source:
    """The reports of the driver's node."""
    place = folder()
    return Source(names, "", lambda: look(place, list(names)), lambda name: _parts(place / name))


def _parts(path: pathlib.Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(PART):
            yield part


def collect(sources: Sequence[Source], target: pathlib.Path, within: float) -> tuple[list[pathlib.Path], list[str]]:
    """Waits for the reports of the watched actors, which have ended, and copies them as ``<actor>.nsys-rep``.

    Nothing is waited for that cannot come: without its ``nsys`` a report is there, or never will be.

    Args:
        target: folder of the copies.
        within: seconds to wait for the ``nsys`` that still live.

    Returns:
        The copies, and a sentence for each report that is not among them.
    """
    deadline = time.monotonic() + within
    copies: list[pathlib.Path] = []
    notes: list[str] = []
    for source in sources:
        seen = _settled(source.look, deadline)
        for name, actor in source.names.items():
            path = target / f"{actor}{SUFFIX}"
            if (why := _missing(seen.get(name), within) or _copied(source.fetch(name), path)) is None:
                copies.append(path)
            else:
                where = f" on node {source.node}" if source.node else ""
                notes.append(f"there is no Nsight report of actor {actor}{where}: {why}")
    return copies, notes


def _settled(look: Callable[[], Mapping[str, Look]], deadline: float) -> Mapping[str, Look]:
    """What there is once nothing comes any more, or it is too late."""
    while True:
        seen = look()
        if time.monotonic() > deadline or not any(each.coming for each in seen.values()):
            return seen
        time.sleep(0.5)


def _missing(there: Look | None, within: float) -> str | None:
    """Why a report cannot be copied; None: it can."""
    if there is None:
        return "its node does not answer"
    if there.coming:
        return f"its nsys did not end within {show_duration(within)}"
    if there.size is None:
        return f"its nsys ended without one; Ray ends it with the actor unless the node has {raynames.CLEANUP}=0"
    return None


def _copied(parts: Iterable[bytes], path: pathlib.Path) -> str | None:
    """Copies a report; why it could not be, or None."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.writelines(parts)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        return f"it could not be copied: {error}"
    return None
