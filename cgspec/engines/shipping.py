"""Ships the user's code, and cgspec itself, to the nodes of a cluster: as packages of Ray's, which a node unpacks once.

They are the actors' own ``py_modules``, not the job's: so they go to a Ray that is joined already, or to one that runs
cgspec as a job of its own, too, and a local Ray, which needs none, starts as fast as ever. ``working_dir`` would do the
same, but puts the folder first on ``sys.path``, where the user's ``types.py`` hides Python's.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import cgspec
from cgspec import raynames
from cgspec.engines import Options
from cgspec.errors import Failure, NotAble
from cgspec.quantities import show_size

EXCLUDES = (".git", ".venv", "venv", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache")
"""Folders that are never shipped, wherever they are; ``/runs`` is not either."""
CONTAINERS = ("image_uri", "container")
"""Keys of ``runtime_env`` beside which Ray takes no packages: the image has to bring the code."""
ONLY_SHIPPED = (
    "only the spec's folder is shipped: install what else it imports on the nodes, or name it under cluster.runtime_env"
)


@dataclass(frozen=True)
class Shipment:
    """What actors find on their nodes.

    Attributes:
        root: Ray's address of the package that holds the spec's folder; None: actors read the folder itself.
        packages: all of them.
    """

    root: str | None = None
    packages: tuple[str, ...] = ()

    def added_to(self, runtime_env: Mapping[str, object], job: Mapping[str, object]) -> dict[str, object]:
        """An actor's ``runtime_env`` with the packages; the job's own modules stay where the actor names none."""
        if not self.packages or any(key in runtime_env or key in job for key in CONTAINERS):
            return dict(runtime_env)
        modules = runtime_env.get("py_modules", job.get("py_modules")) or []
        return {**runtime_env, "py_modules": [*self.packages, *modules]}  # type: ignore[misc]


def ship(options: Options) -> Shipment:
    """Packs the spec's folder and cgspec, and hands them to the cluster, which keeps what it has already.

    Raises:
        NotAble: the folder cannot be packed, or is larger than Ray takes.
    """
    root = options.root.resolve()
    own = options.cluster.runtime_env.get("excludes") or []
    try:
        code = raynames.upload_folder(root, [*EXCLUDES, *_runs(options, root), *own])
        package = raynames.upload_folder(pathlib.Path(cgspec.__file__).parent, EXCLUDES)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise NotAble(Failure("not-able", _refusal(root, error), phase="startup", path=("cluster",))) from None
    return Shipment(code, (package, code))


def _runs(options: Options, root: pathlib.Path) -> Iterator[str]:
    """The patterns of what runs leave behind: it would be another package every time."""
    yield "/runs"
    if options.log_dir is not None:
        run = options.log_dir.resolve().parent
        for folder in (run.parents[1], run.parents[0], run):  # of all runs, of this spec's, this one's
            if root in folder.parents:
                yield f"/{folder.relative_to(root).as_posix()}"
                return


def _refusal(root: pathlib.Path, error: Exception) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    message = f"the spec's folder {root} cannot be shipped to the cluster: {said.partition('. ')[0]}"
    if "maximum size" not in said:
        return message
    largest = ", ".join(f"{path} ({show_size(size)})" for size, path in _largest(root))
    return (
        f"{message}; its largest files are {largest}: name what actors do not read under cluster.runtime_env.excludes"
    )


def _largest(root: pathlib.Path) -> list[tuple[int, str]]:
    """The three largest files, sizes in bytes, paths relative to the root."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in EXCLUDES]
        paths = [pathlib.Path(folder, name) for name in names]
        found += [(path.stat().st_size, path.relative_to(root).as_posix()) for path in paths if path.is_file()]
    return sorted(found, reverse=True)[:3]


def unpacked(package: str) -> pathlib.Path | None:
    """Where a package lies on this actor's node; None: it was not given to this actor."""
    stem = package.rpartition("/")[2].removesuffix(".zip")
    place = next((pathlib.Path(entry) for entry in sys.path if entry.rpartition(os.sep)[2] == stem), None)
    return next(place.iterdir()) if place is not None else None
