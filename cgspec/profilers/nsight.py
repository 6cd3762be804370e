"""Nsight Systems: the driver's side. Ray starts the watched workers under ``nsys profile``; reports come when they end.

Ray kills a worker's process group when the worker ends, ``nsys`` with it, before it has exported
(https://github.com/ray-project/ray/issues/60904): a local Ray is started with that cleanup off, and whoever ends the
actors waits for the reports here.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import time
from typing import TYPE_CHECKING

from cgspec.errors import Failure, NotAble

if TYPE_CHECKING:
    from cgspec.engines import Options
    from cgspec.spec import ProfileSpec

SUFFIX = ".nsys-rep"
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


def nsight_env(options: Options, actor: int, *, gpu: bool) -> dict[str, object] | None:
    """The ``runtime_env`` entries that put an actor under ``nsys``; None: it is not watched.

    Only a process that uses a ``gpu`` can tell nsys when to record; one without is recorded as a whole.
    """
    profile = nsight_profile(options)
    if profile is None or not is_watched(options, actor):
        return None
    given = profile.options or DEFAULT
    limits = CAPTURE if gpu and not any(name in given for name in CHOICE) else {}
    return {"nsight": {**limits, **given, "o": report_name(actor)}}


def report_name(actor: int) -> str:
    """What an actor's report is called in Ray's folder: its own name for each, so that none overwrites another."""
    return f"cgspec-actor-{actor}"


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


def collect(session: pathlib.Path, names: dict[int, str], target: pathlib.Path, deadline: float) -> list[pathlib.Path]:
    """Waits for the reports of the watched actors, which have ended, and copies them as ``<actor>.nsys-rep``.

    Args:
        session: Ray's session folder.
        names: actor index to the actor's name.
        target: folder of the copies.
        deadline: when to stop waiting, by ``time.monotonic``.
    """
    expected = {session / "logs" / "nsight" / f"{report_name(actor)}{SUFFIX}": name for actor, name in names.items()}
    _wait(set(expected), deadline)
    copies = []
    for path, name in expected.items():
        if path.exists():
            target.mkdir(parents=True, exist_ok=True)
            copies.append(target / f"{name}{SUFFIX}")
            shutil.copyfile(path, copies[-1])
    return copies


def _wait(expected: set[pathlib.Path], deadline: float) -> None:
    """Until all are there and none grows any more."""
    sizes: dict[pathlib.Path, int] = {}
    while time.monotonic() < deadline:
        found = {path: path.stat().st_size for path in expected if path.exists()}
        if len(found) == len(expected) and found == sizes:
            return
        sizes = found
        time.sleep(0.5)
