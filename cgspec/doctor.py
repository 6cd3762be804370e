"""Looks at what a run needs on this machine: packages, CUDA, profilers, GPUs and who holds them, memory.

Nothing is imported that a run would import (torch alone takes seconds), programs get a few seconds to answer, and none
can make it hang. It looks at this machine only; the nodes of a cluster may differ.
"""

from __future__ import annotations

import os
import platform
import pwd
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Literal

from cgspec.quantities import show_size

PATIENCE = 5.0
"""Seconds that a program may take."""
RAY = ((2, 55), (2, 61))
"""The first Ray that fits, and the first that may not, as in ``pyproject.toml``."""
SHM = Path("/dev/shm")
LEAST_SHM = 2**30
LEAST_FILES = 4096
STORE_SHARE = 0.3
"""Of the memory, that Ray takes for its object store, which lies in shared memory."""

Status = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        topic: which group it belongs to.
        status: ``bad`` keeps runs from working, ``note`` some of them.
        found: what there is.
        fix: what to do, or the empty string.
    """

    topic: str
    what: str
    status: Status
    found: str
    fix: str = ""


def doctor() -> list[Check]:
    """Everything, by topic."""
    return [check for look in LOOKS for check in look()]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _package(what: str, package: str, *, need: bool = True, fix: str = "") -> Check:
    version = _version(package)
    missing: Status = "bad" if need else "note"
    return Check("packages", what, "good" if version else missing, version or "not installed", "" if version else fix)


def _packages() -> Iterator[Check]:
    old = sys.version_info < (3, 10)
    yield Check("packages", "Python", "bad" if old else "good", platform.python_version(), "3.10 or later" * old)
    yield _package("cgspec", "cgspec", fix="pip install cgspec")
    yield _ray(_version("ray"))
    yield _package("nvtx", "nvtx", need=False, fix="pip install nvtx, for ranges in Nsight Systems")
    yield _package("graphviz", "graphviz", need=False, fix="pip install graphviz, for pictures")
    yield _package(
        "pygraphviz", "pygraphviz", need=False, fix="pip install pygraphviz, for pictures without a system dot"
    )


def _ray(version: str | None) -> Check:
    least, bound = (".".join(map(str, each)) for each in RAY)
    fix = f"pip install 'ray>={least},<{bound}': compiled graphs are driven by names that change between versions"
    if version is None:
        return Check("packages", "Ray", "note", "not installed: only the local engine works", fix)
    known = RAY[0] <= tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < RAY[1]
    return Check("packages", "Ray", "good" if known else "bad", version, "" if known else fix)


def torch_cuda() -> str | None:
    """The CUDA version that the installed torch was built for, e.g. ``12.8``; read from its files, not imported."""
    spec = util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    with suppress(OSError):
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
        if found := re.search(r"^cuda\b[^=]*=\s*['\"]([0-9.]+)['\"]", text, re.MULTILINE):
            return found[1]
    return None


def _cuda() -> Iterator[Check]:
    version, cuda = _version("torch"), torch_cuda()
    if version is None:
        yield Check("CUDA", "torch", "note", "not installed", "pip install torch, for tensors and the torch profiler")
        return
    yield Check("CUDA", "torch", "good", f"{version}, " + (f"built for CUDA {cuda}" if cuda else "built for CPUs"))
    if cuda is None:
        yield Check("CUDA", "NCCL group", "note", "a CPU build of torch: GPU specs can be rehearsed (--rehearse)")
        return
    major = cuda.split(".")[0]
    yield _cupy(major)
    nccl = _version(f"nvidia-nccl-cu{major}")
    yield Check("CUDA", "NCCL", "good" if nccl else "note", nccl or "no package: torch's own, or the system's")


def _cupy(major: str) -> Check:
    """Whether the cupy that Ray's NCCL group needs is the one that fits torch."""
    extra = f"pip install 'cgspec[cuda{major}]'"
    if major not in ("12", "13"):
        return Check(
            "CUDA",
            "cupy",
            "bad",
            f"torch is built for CUDA {major}: there is no cupy for it here",
            "torch for CUDA 12 or 13",
        )
    found = {other: _version(f"cupy-cuda{other}x") for other in ("11", "12", "13")}
    wrong = [other for other, version in found.items() if version and other != major]
    if wrong:
        remove = f"pip uninstall {' '.join(f'cupy-cuda{other}x' for other in wrong)}, then {extra}"
        return Check("CUDA", "cupy", "bad", f"for CUDA {', '.join(wrong)}, but torch is built for CUDA {major}", remove)
    version = found[major] or _version("cupy")
    if version is None:
        return Check("CUDA", "cupy", "bad", "not installed: accelerator transports cannot start", extra)
    return Check("CUDA", "cupy", "good", f"{version}, for CUDA {major}")


def _programs() -> Iterator[Check]:
    nsys = _said("nsys", "--version")
    found = nsys.splitlines()[-1].strip() if nsys else None
    fix = "install Nsight Systems, for profile: nsight"
    yield Check(
        "profilers",
        "nsys",
        "good" if found else "note",
        found or "not on PATH, or it does not answer",
        "" if found else fix,
    )
    if found and shutil.which("python") is None:
        fix = "put the environment's bin folder on PATH: Ray starts profiled workers as `nsys profile … python`"
        yield Check("profilers", "python on PATH", "bad", "there is no program called python", fix)
    yield Check("profilers", "torch profiler", "good" if _version("torch") else "note", "comes with torch")
    dot = shutil.which("dot")
    yield Check("profilers", "dot", "good", dot or "not on PATH, and not needed: pygraphviz draws")


def _gpus() -> Iterator[Check]:
    query = "index,uuid,name,memory.total,memory.used,utilization.gpu,driver_version"
    if shutil.which("nvidia-smi") is None:
        yield Check(
            "GPUs", "GPUs", "note", "no nvidia-smi: no NVIDIA GPU here, or no driver", "specs can be rehearsed on CPUs"
        )
        return
    said = _said("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits")
    if said is None:
        yield Check("GPUs", "GPUs", "bad", "nvidia-smi failed or did not answer", "look at dmesg and at the driver")
        return
    holders = _holders()
    rows = [[cell.strip() for cell in line.split(",")] for line in said.splitlines() if line.count(",") == 6]
    for index, uuid, name, total, used, busy, driver in rows:
        held = holders.get(uuid, [])
        state = f"{used} of {total} MiB used, {busy}% busy"
        who = f"; held by {', '.join(held)}" if held else "; free" if used.isdigit() and int(used) < 1024 else ""
        yield Check("GPUs", f"GPU {index}", "note" if held else "good", f"{name}, driver {driver}, {state}{who}")
    if not rows:
        yield Check("GPUs", "GPUs", "note", "nvidia-smi lists none")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        yield Check("GPUs", "CUDA_VISIBLE_DEVICES", "note", visible or "empty: no GPU is visible")


def _holders() -> dict[str, list[str]]:
    """GPU → its processes, with their owners where they can be seen."""
    query = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"
    found: dict[str, list[str]] = {}
    for line in (_said("nvidia-smi", query, "--format=csv,noheader,nounits") or "").splitlines():
        if line.count(",") >= 3:
            uuid, pid, *name, used = (cell.strip() for cell in line.split(","))
            found.setdefault(uuid, []).append(
                f"{os.path.basename(','.join(name))} (pid {pid}{_owner(pid)}, {used} MiB)"
            )
    return found


def _owner(pid: str) -> str:
    try:
        return f" of {pwd.getpwuid(os.stat(f'/proc/{int(pid)}').st_uid).pw_name}"
    except (OSError, ValueError, KeyError):
        return ""


def _memory() -> Iterator[Check]:
    total, free = memory()
    if total is not None:
        yield Check("machine", "memory", "good", f"{show_size(total)}, {show_size(free or 0)} available")
    yield _cores()
    if SHM.is_dir():
        yield _shared(shutil.disk_usage(SHM).total, shutil.disk_usage(SHM).free, total)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft != resource.RLIM_INFINITY and soft < LEAST_FILES
    fix = f"ulimit -n {LEAST_FILES * 16}: Ray opens many files" * few
    yield Check("machine", "open files", "note" if few else "good", "unlimited" if soft < 0 else f"up to {soft:,}", fix)
    yield from _inherited()


def _cores() -> Check:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    found = f"{usable} cores" + (f", limited to {quota:g} by the container" if quota is not None else "")
    few = usable < 2 or (quota is not None and quota < 2)
    fix = "actors will wait for each other: times say little" * few
    return Check("machine", "processors", "note" if few else "good", found, fix)


def _quota() -> float | None:
    """The processors that a container allows, by cgroup v2."""
    with suppress(OSError, ValueError):
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        return int(most) / int(period)
    return None


def memory() -> tuple[int | None, int | None]:
    """The machine's memory and what is available of it, in bytes; a container's limit counts."""
    with suppress(OSError, ValueError):
        text = Path("/proc/meminfo").read_text(encoding="utf-8")
        read = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text.splitlines() if line.endswith("kB")}
        total, free = read.get("MemTotal"), read.get("MemAvailable")
        with suppress(OSError, ValueError):
            limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8"))
            total, free = min(limit, total or limit), min(limit, free or limit)
        return total, free
    return None, None


def _shared(total: int, free: int, memory: int | None) -> Check:
    found = f"{show_size(total)}, {show_size(free)} free"
    wanted = int((memory or 0) * STORE_SHARE)
    if free < LEAST_SHM:
        fix = "docker run --shm-size=8g: Ray's object store lies in /dev/shm, without room it falls back to the disk"
        return Check("machine", "shared memory", "bad", found, fix)
    if free < wanted:
        fix = f"Ray would take {show_size(wanted)} for its object store: large payloads may not fit"
        return Check("machine", "shared memory", "note", found, fix)
    return Check("machine", "shared memory", "good", found)


def _inherited() -> Iterator[Check]:
    """What the environment says to Ray."""
    if address := os.environ.get("RAY_ADDRESS"):
        yield Check("machine", "RAY_ADDRESS", "note", address, "cgspec follows cluster.address of the spec only")
    current = Path("/tmp/ray/ray_current_cluster")
    with suppress(OSError):
        yield Check("machine", "Ray cluster here", "note", current.read_text(encoding="utf-8").strip() or "unknown")


def _said(program: str, *arguments: str) -> str | None:
    """What a program prints; None where it is missing, fails or takes too long. One that cannot be killed is left."""
    path = shutil.which(program)
    if path is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        process = subprocess.Popen(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return None
        return out.decode(errors="replace").strip() if process.returncode == 0 else None
    return None


LOOKS: tuple[Callable[[], Iterator[Check]], ...] = (_packages, _cuda, _programs, _gpus, _memory)
