"""Reading source executes nothing, blocks on nothing and takes no time."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import time

import pytest
from signatures_reading import missing, ref, write

from cgspec.graph import ClassRef
from cgspec.signatures import ClassInfo
from cgspec.signatures.reader import SourceReader


def test_nothing_of_the_user_is_executed(tmp_path: pathlib.Path) -> None:
    bomb = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise SystemExit(9)\n"
    write(
        tmp_path,
        pkg__in____init__=bomb,
        pkg__in__sub__in____init__=bomb,
        pkg__in__sub__in__mod=bomb + "class Base:\n    def forward(self, x): ...",
        model=bomb + "from pkg.sub.mod import Base\nclass Stage(Base): ...",
    )
    reader = SourceReader(tmp_path)
    before = set(sys.modules)
    for found in (reader.read_class(ref("Stage")), reader.read_class(ClassRef("pkg.sub.mod", "Base", None))):
        assert isinstance(found, ClassInfo) and str(found.methods["forward"]) == "forward(self, x)"
    assert not list(tmp_path.rglob("*.ran"))
    assert not {name for name in set(sys.modules) - before if name.split(".")[0] in ("pkg", "model", "cgspec_user")}


def test_reading_torch_neither_imports_torch_nor_takes_long() -> None:
    script = """
import sys, time, pathlib, types
from cgspec.signatures.reader import SourceReader
ref = types.SimpleNamespace(module="torch.nn", qualname="Linear", file=None)
start = time.perf_counter()
info = SourceReader(pathlib.Path(".")).read_class(ref)
print(info.methods["forward"], info.init, info.complete, time.perf_counter() - start < 2,
      sorted({"torch", "ray", "pydantic", "numpy"} & set(sys.modules)), sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent.parent)},
    )
    assert done.stdout.strip() == (
        "forward(self, input)|Linear(in_features, out_features, bias=True, device=None, dtype=None)|True|True|[]"
    ), done.stderr


def test_the_second_reading_of_a_class_is_a_look_up(tmp_path: pathlib.Path) -> None:
    write(tmp_path, model="class Stage:\n    def forward(self, x): ...")
    reader = SourceReader(tmp_path)
    first = reader.read_class(ref("Stage"))
    (tmp_path / "model.py").unlink()
    start = time.perf_counter()
    assert all(reader.read_class(ref("Stage")) is first for _ in range(10_000))
    assert time.perf_counter() - start < 1


NASTY = {
    "deep expression": "x = " + "-" * 100_000 + "1\nclass Stage: ...",
    "long sum": "x = " + "+".join(["1"] * 50_000) + "\nclass Stage: ...",
    "long attribute": "x = a" + ".b" * 50_000 + "\nclass Stage: ...",
    "deep default": "class Stage:\n    def forward(self, x=" + "a." * 2_000 + "b): ...",
    "long inheritance": "class C0: ...\n"
    + "".join(f"class C{i + 1}(C{i}): ...\n" for i in range(3_000))
    + "Stage = C3000",
    "alias chain": "class A0: ...\n" + "".join(f"A{i + 1} = A{i}\n" for i in range(3_000)) + "Stage = A3000",
    "alias circle": "A = B\nB = A\nStage = A",
    "itself": "Stage = Stage",
    "import circle": "from model import Stage",
    "alternatives by star": "try:\n    from _decimal import *\nexcept ImportError:\n    from _pydecimal import *\n"
    "Stage = Context",
    "a name that is gone again": "for kind in ():\n    Stage = kind\ndel kind",
    "elif chain": "".join(f"{'el' if i else ''}if x == {i}:\n    Stage = {i}\n" for i in range(2_000)),
    "many members": "class Stage:\n" + "".join(f"    def m{i}(self, x): ...\n" for i in range(5_000)),
    "surrogates": "class Stage:\n    x = '\\ud800'\n    def f(self, y='\\ud800'): ...",
    "form feeds and a bom": "\ufeff\f\nclass Stage: ...",
    "latin-1 cookie": "# -*- coding: latin-1 -*-\nclass Stage: ...",
    "unknown cookie": "# -*- coding: klingon -*-\nclass Stage: ...",
    "newer syntax": "class Stage[T]:\n    def f[U](self, x: U): ...\ntype A = int\n",
    "walrus in a class": "class Stage:\n    (y := 3)\n    def f(self, x=(z := 4)): ...",
    "deleted": "class Stage: ...\ndel Stage",
    "star of itself": "from model import *\nfrom .model import *\nfrom . import *",
    "beyond the top": "from ....x import Stage",
    "empty": "",
    "bad escape": "class Stage:\n    x = '\\d'",
    "match": "match 1:\n    case 1:\n        class Stage: ...\n    case _:\n        Stage = 3",
    "odd names": "class Stage:\n    def \uff41(self, \uff42): ...",
    "property setter": "class Stage:\n    @property\n    def x(self): ...\n    @x.setter\n    def x(self, v): ...",
    "class as decorator": "class D:\n    def __init__(self, f): ...\nclass Stage:\n    @D\n    def f(self): ...",
    "method is its own default": "class Stage:\n    f = f\n    g = g.h.i\n    h = staticmethod(h)",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_no_source_raises_or_takes_long(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    start = time.perf_counter()
    reader = SourceReader(tmp_path)
    found = reader.read_class(ref("Stage"))
    reader.read_function(ref("Stage"))
    assert time.perf_counter() - start < 20
    if isinstance(found, ClassInfo):
        assert found.complete or found.why_incomplete
        assert found.init.readable or found.init.why
        [str(one) + one.why for one in found.methods.values()]
        found.method("f"), found.method("nope")
    else:
        assert found.message and "Traceback" not in found.message


def test_files_that_are_no_files_do_not_block_or_raise(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "dangling.py").symlink_to("nowhere.py")
    with (tmp_path / "big.py").open("wb") as big:
        big.truncate(50_000_000)
    assert missing(tmp_path, "Stage", "fifo.py").kind == "unreadable"
    assert missing(tmp_path, "Stage", "loop.py").kind in ("file", "unreadable")
    assert missing(tmp_path, "Stage", "dangling.py").kind == "file"
    assert missing(tmp_path, "Stage", "x" * 5_000 + ".py").kind in ("file", "unreadable")
    big_one = SourceReader(tmp_path).read_class(ref("Stage", "big.py"))
    assert isinstance(big_one, ClassInfo) and not big_one.complete
    assert big_one.why_incomplete.endswith("big.py has 50 MB, and cgspec reads up to 8 MB")


def test_namespace_packages_and_editable_installs_are_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        space__in__inner__in__mod="class Stage:\n    def forward(self, x): ...",
        elsewhere__in__edit__in____init__="",
        elsewhere__in__edit__in__mod="class Stage:\n    def go(self): ...",
    )

    class Finder:
        __module__ = "__editable___edit_1_0_finder"

        @classmethod
        def find_spec(cls, name: str, path: object, target: object = None) -> object:
            init = tmp_path / "elsewhere" / "edit" / "__init__.py"
            return importlib.util.spec_from_file_location(name, init) if name == "edit" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    reader = SourceReader(tmp_path)
    for module, method in (("space.inner.mod", "forward"), ("edit.mod", "go")):
        info = reader.read_class(ClassRef(module, "Stage", None))
        assert isinstance(info, ClassInfo) and list(info.methods) == [method]
