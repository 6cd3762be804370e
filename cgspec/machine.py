"""What a run happened on: host, load, GPUs, versions and the git commit; asks beside the run, never fails."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from cgspec.record import Machine

PATIENCE = 10.0
"""Seconds that an outside program may take to answer."""
LARGEST_DIFF = 2**22
"""Characters of a diff up to which it is kept."""


def ask(root: Path) -> tuple[Future[Machine], Future[str]]:
    """Starts to look at the machine, and at what git says has changed below ``root``."""
    aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="machine")
    futures = aside.submit(describe, root), aside.submit(changes, root)
    aside.shutdown(wait=False)
    return futures


def changes(root: Path) -> str:
    """What differs from the last commit below ``root``; the empty string where there is no git, or far too much."""
    said = _said("git", "-C", str(root), "diff", "HEAD", "--", ".") or ""
    return f"{said}\n" if said and len(said) <= LARGEST_DIFF else ""


def describe(root: Path) -> Machine:
    """Looks at the machine."""
    commit = _said("git", "-C", str(root), "rev-parse", "HEAD")
    changes = _said("git", "-C", str(root), "status", "--porcelain") if commit else None
    return Machine(
        host=platform.node(),
        platform=platform.platform(),
        cpus=os.cpu_count(),
        memory_bytes=_memory(),
        load=_load(),
        gpus=_gpus(),
        versions=_versions(),
        git_commit=commit,
        git_dirty=bool(changes) if commit else None,
    )


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("cgspec", "ray", "torch"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None


def _load() -> tuple[float, float, float] | None:
    try:
        return os.getloadavg()
    except (OSError, AttributeError):
        return None


def _gpus() -> list[str]:
    said = _said("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    return [line.strip() for line in (said or "").splitlines() if line.strip()]


def _said(program: str, *arguments: str) -> str | None:
    """What a program prints; None where it is missing, fails or takes too long."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
