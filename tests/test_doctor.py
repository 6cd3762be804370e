"""The doctor: quick, imports nothing heavy, says what fits, and outlives programs that hang."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cgspec import doctor as module
from cgspec.doctor import Check, doctor
from cgspec.views.doctor import as_data, exit_code, text

SMI = """#!/bin/sh
case "$1" in
  --query-gpu*)
    echo "0, GPU-aa, NVIDIA A100, 81920, 40960, 87, 570.1"
    echo "1, GPU-bb, NVIDIA A100, 81920, 4, 0, 570.1";;
  *) echo "GPU-aa, 1, /usr/bin/python3, 40000";;
esac
"""


def found(checks: list[Check]) -> dict[str, Check]:
    return {check.what: check for check in checks}


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def bin_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but the system's shell and what the test puts there."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    return tmp_path


def versions(monkeypatch: pytest.MonkeyPatch, cuda: str | None, **known: str) -> None:
    monkeypatch.setattr(module, "torch_cuda", lambda: cuda)
    monkeypatch.setattr(module, "_version", lambda package: known.get(package.replace("-", "_")))


def test_it_looks_without_importing_ray_or_torch() -> None:
    code = "import sys; from cgspec.doctor import doctor; doctor(); print(sorted({'ray', 'torch'} & set(sys.modules)))"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert time.monotonic() - began < 15


def test_text_and_json_say_the_same() -> None:
    checks = doctor()
    data = json.loads(json.dumps(as_data(checks)))
    assert [check["what"] for check in data["checks"]] == [check.what for check in checks]
    assert {"packages", "CUDA", "profilers", "GPUs", "machine"} == {check.topic for check in checks}
    shown = text(checks)
    assert all(check.what in shown and check.found in shown for check in checks)


def test_the_extra_that_fits_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, "13.0", torch="2.13.0", nvidia_nccl_cu13="2.27")
    cupy = found(list(module._cuda()))["cupy"]
    assert cupy.status == "bad" and cupy.fix == "pip install 'cgspec[cuda13]'"


def test_a_cupy_for_another_cuda_is_to_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, "12.8", torch="2.13.0", cupy_cuda13x="13.6")
    cupy = found(list(module._cuda()))["cupy"]
    assert cupy.found == "for CUDA 13, but torch is built for CUDA 12"
    assert cupy.fix == "pip uninstall cupy-cuda13x, then pip install 'cgspec[cuda12]'"


def test_the_right_cupy_is_good_and_a_cpu_build_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, "12.8", torch="2.13.0", cupy_cuda12x="13.6")
    assert found(list(module._cuda()))["cupy"] == Check("CUDA", "cupy", "good", "13.6, for CUDA 12")
    versions(monkeypatch, None, torch="2.13.0+cpu")
    assert [check.what for check in module._cuda()] == ["torch", "NCCL group"]


def test_torch_says_its_cuda_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "torch/version.py").write_text("__version__ = '2.13.0'\ncuda: Optional[str] = '12.8'\nhip = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert module.torch_cuda() == "12.8"


def test_another_ray_is_bad_and_none_a_note() -> None:
    assert [module._ray(version).status for version in ("2.54.1", "2.55.0", "2.60.3", "2.61.0rc0", "3.0")] == [
        "bad",
        "good",
        "good",
        "bad",
        "bad",
    ]
    assert module._ray(None).status == "note"


def test_the_range_of_ray_is_that_of_the_package() -> None:
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    (least, bound) = re.findall(r'"ray>=([\d.]+),<([\d.]+)"', project)[0]
    assert module._ray(None).fix.startswith(f"pip install 'ray>={least},<{bound}'")


def test_gpus_are_listed_with_those_who_hold_them(bin_only: Path) -> None:
    program(bin_only, "nvidia-smi", SMI)
    gpus = found(list(module._gpus()))
    assert gpus["GPU 0"].found == (
        "NVIDIA A100, driver 570.1, 40960 of 81920 MiB used, 87% busy; held by python3 (pid 1 of root, 40000 MiB)"
    )
    assert gpus["GPU 1"].found.endswith("4 of 81920 MiB used, 0% busy; free") and gpus["GPU 1"].status == "good"


def test_a_program_that_hangs_does_not_hang_the_doctor(bin_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    program(bin_only, "nvidia-smi", "#!/bin/sh\nsleep 30\n")
    began = time.monotonic()
    (check,) = module._gpus()
    assert check.status == "bad" and time.monotonic() - began < 5


def test_programs_that_fail_or_print_nonsense_are_survived(bin_only: Path) -> None:
    program(bin_only, "nvidia-smi", "#!/bin/sh\nprintf '\\377\\376, what\\n'\n")
    program(bin_only, "nsys", "#!/bin/sh\nexit 3\n")
    assert next(check.found for check in module._gpus()) == "nvidia-smi lists none"
    assert found(list(module._programs()))["nsys"].status == "note"


def test_little_shared_memory_is_bad() -> None:
    assert module._shared(64 * 2**20, 64 * 2**20, 16 * 2**30).status == "bad"
    assert module._shared(2**31, 2**31, 64 * 2**30).status == "note"
    assert module._shared(2**35, 2**35, 64 * 2**30).status == "good"


def test_the_exit_code_follows() -> None:
    good, bad = Check("a", "x", "note", "1"), Check("a", "y", "bad", "2", "mend it")
    assert exit_code([good]) == 0 and exit_code([good, bad]) == 3
    assert text([good]).endswith("nothing keeps cgspec from running here")
    assert text([good, bad]).splitlines() == ["a", "  - x  1", "  ✗ y  2", "       → mend it", "", "to be mended: y"]
