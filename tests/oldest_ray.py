"""Runs the tests of the engines with the oldest Ray that ``pyproject.toml`` allows, or with another version of it.

``python -m tests.oldest_ray [VERSION]``, from the repository's top, installs it into a virtual environment of its own.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile
import venv

TOP = pathlib.Path(__file__).parent.parent
TORCH = "torch==2.13.0"
"""Without a version, pip takes one with gigabytes of libraries for GPUs."""
TESTS = ("raynames", "startup", "engines", "loops", "engine_failures", "direct", "collectives", "accelerator")

NEWER = {
    (2, 56): (
        "test_tensors_of_the_direct_engine_go_by_rays_nccl_transport",
        "test_an_nccl_group_that_cannot_be_formed_is_told",
    )
}
"""Tests whose stand-in for NCCL can be registered only with this Ray or a later one."""


def oldest() -> str:
    """The lower bound of ``pyproject.toml``."""
    found = re.search(r'"ray>=([\d.]+)', (TOP / "pyproject.toml").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def main(arguments: list[str]) -> int:
    version = arguments[0] if arguments else oldest()
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        venv.create(folder, with_pip=True)
        python = str(pathlib.Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", f"ray=={version}", TORCH, "--editable", f"{TOP}[dev]"]
        subprocess.run(install, check=True)
        files = [f"tests/test_{name}.py" for name in TESTS]
        chosen = ["-m", "not soak", "-k", " and ".join(f"not {name}" for name in _too_new(version)), *files]
        return subprocess.run([python, "-m", "pytest", "-q", *chosen], cwd=TOP).returncode


def _too_new(version: str) -> list[str]:
    there = tuple(int(part) for part in version.split(".")[:2])
    return [name for needed, names in NEWER.items() if there < needed for name in names]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
