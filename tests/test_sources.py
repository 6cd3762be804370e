"""What a run is made of is kept: the files that its spec names, and those that they import, as Python finds them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from finished import finish

from cgspec.checking import check
from cgspec.comparing import compare
from cgspec.sources import kept_files

FILES = {
    "model.py": """
        import json, yaml, nowhere
        from net import Net
        from . import shared
        from .blocks.attention import Attention
        class Stage:
            def forward(self, x):
                import blocks.late.inner
                return x
    """,
    "net.py": "from blocks import mlp\nclass Net: pass\n",
    "shared.py": "from torch import nn\n",
    "blocks/__init__.py": "",
    "blocks/mlp.py": "import net\nfrom .deep import *\n",
    "blocks/deep.py": "",
    "blocks/attention.py": "class Attention: pass\n",
    "blocks/late/inner.py": "",
    "blocks/unused.py": "",
    "data.py": "import sizes\ndef batch(n): return n\n",
    "sizes.py": "",
    "unused.py": "import net\n",
    "json.py": "raise SystemExit('never imported: the standard library comes first')\n",
    ".venv/lib/python3.11/site-packages/vendored.py": "",
}

SPEC = """
cgspec: 1
engine: local
actors:
  one: {class: model.py:Stage}
inputs:
  x: {$call: "data.py:batch", args: {n: 3}}
tasks:
  a: {call: one.forward, in: {x: inputs.x}}
outputs: a
run: {iterations: 40, warmup: 1}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        indented = text.startswith("\n")
        (tmp_path / name).write_text("\n".join(line[8 * indented :] for line in text.split("\n")))
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


WANTED = [
    "blocks/__init__.py",
    "blocks/attention.py",
    "blocks/deep.py",
    "blocks/late/inner.py",
    "blocks/mlp.py",
    "data.py",
    "model.py",
    "net.py",
    "shared.py",
    "sizes.py",
]


def test_named_files_and_what_they_import_are_kept_and_nothing_else(project: Path) -> None:
    checked = check(project / "spec.yaml")
    assert checked.graph is not None, checked.findings
    assert kept_files(checked.graph, project) == WANTED
    assert "json" in sys.modules and "model" not in sys.modules


def test_python_loads_nothing_below_the_root_that_is_not_kept(project: Path) -> None:
    """The interpreter is asked: all but what is imported in a method, which is not called here."""
    (project / "model.py").write_text((project / "model.py").read_text().replace(", nowhere", ""))
    code = "import sys, pathlib; from cgspec import usercode; from cgspec.graph import ClassRef\n"
    code += "root = pathlib.Path(sys.argv[1]); usercode.install(root)\n"
    code += "usercode.load(ClassRef('cgspec_user.model', 'Stage', 'model.py'))\n"
    code += "files = {getattr(each, '__file__', None) for each in sys.modules.values()} - {None}\n"
    code += "print(*sorted({file[len(str(root)) + 1:] for file in files if file.startswith(str(root))}))"
    done = subprocess.run([sys.executable, "-c", code, str(project)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        name for name in WANTED if name not in ("blocks/late/inner.py", "data.py", "sizes.py")
    ]


HELPED = SPEC.replace("model.py:Stage", "user.py:User").replace('{$call: "data.py:batch", args: {n: 3}}', "1")
USER = "import net\nclass User(net.Net):\n    pass\n"
NET = "class Net:\n    def forward(self, x):\n        return x\n"


def test_a_change_in_a_file_that_is_only_imported_is_seen_by_compare(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "net.py").write_text(NET)
    one = finish(tmp_path, HELPED).run_dir
    assert (one / "source" / "net.py").read_text() == NET
    (tmp_path / "net.py").write_text(NET.replace("return x", "y = x\n        return y"))
    (tmp_path / "more.py").write_text("")
    (tmp_path / "user.py").write_text(USER.replace("import net", "import net, more"))
    two = finish(tmp_path, HELPED).run_dir
    found = {each.what: (each.before, each.after) for each in compare(one, two).differences}
    assert {what: said for what, said in found.items() if what.startswith("source")} == {
        "source more.py": ("none", "0 lines"),
        "source net.py": ("3 lines", "4 lines (2 added, 1 removed)"),
        "source user.py": ("3 lines", "3 lines (1 added, 1 removed)"),
    }
    assert not any(each.what.startswith("source") for each in compare(two, two).differences)
