"""Reading classes from source: imports, bases, decorators."""

from __future__ import annotations

import pathlib

import pytest
from signatures_reading import read, ref, write

from cgspec.signatures import ClassInfo
from cgspec.signatures.reader import SourceReader


def test_bases_are_followed_through_every_kind_of_import(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        pkg__in__base="class A:\n    def a(self, x): ...",
        side="class B:\n    def b(self, y): ...",
        pkg__in__deep__in__c="class C:\n    def c(self, z): ...",
        pkg__in__deep__in____init__="from .c import *",
        pkg__in__model="""
              import side as s
              import json.decoder
              from .base import A as First
              from . import deep
              from .deep import c
              class Stage(First, s.B, deep.C, json.decoder.JSONDecoder): ...
              class Other(c.C): ...
              """,
    )
    reader = SourceReader(tmp_path)
    info = reader.read_class(ref("Stage", "pkg/model.py"))
    assert isinstance(info, ClassInfo)
    assert [str(info.methods[name]) for name in "abc"] == ["a(self, x)", "b(self, y)", "c(self, z)"]
    assert str(info.methods["decode"]).startswith("decode(self, s, _w=")
    assert info.complete
    other = reader.read_class(ref("Other", "pkg/model.py"))
    assert isinstance(other, ClassInfo) and other.complete and list(other.methods) == ["c"]


def test_a_class_that_another_file_defines_is_followed(tmp_path: pathlib.Path) -> None:
    write(tmp_path, impl="class Real:\n    def forward(self, x): ...")
    assert str(read(tmp_path, "from impl import Real as Stage").methods["forward"]) == "forward(self, x)"


def test_a_nested_class_is_found_and_its_bases_are_looked_up_in_its_scope(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        """
        class Base:
            def wrong(self): ...
        class Outer:
            class Base:
                def right(self): ...
            class Inner(Base):
                def forward(self, x): ...
        """,
        "Outer.Inner",
    )
    assert (info.name, list(info.methods), info.complete) == ("Outer.Inner", ["forward", "right"], True)


@pytest.mark.parametrize(
    "text",
    [
        "import ray\n@ray.remote\nclass Stage:\n    def __init__(self, a): ...\n    def forward(self, x): ...",
        "import ray\n@ray.remote(num_gpus=1)\nclass Stage:\n    def __init__(self, a): ...\n"
        "    def forward(self, x): ...",
        "import ray\nclass Base:\n    def __init__(self, a): ...\n"
        "    def forward(self, x): ...\nStage = ray.remote(Base)",
        "from ray import remote as r\nclass B:\n    def __init__(self, a): ...\n    def forward(self, x): ...\n"
        "Stage = r(num_gpus=1)(B)",
        "import ray\nclass Stage:\n    def __init__(self, a): ...\n    def forward(self, x): ...\n"
        "Stage = ray.remote(Stage)",
    ],
)
def test_ray_remote_is_transparent(tmp_path: pathlib.Path, text: str) -> None:
    info = read(tmp_path, text)
    assert info.complete and info.init.names == ("a",) and str(info.methods["forward"]) == "forward(self, x)"


def test_ray_method_gives_the_number_of_returns_and_known_decorators_keep_the_signature(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        """
        import ray, torch, nvtx
        from ray import method
        from torch import inference_mode as im
        from typing import override
        class Stage:
            @ray.method(num_returns=2)
            @torch.no_grad()
            def two(self, x): ...
            @im()
            @method(num_returns=3)
            def three(self, x, *, y=1): ...
            @nvtx.annotate("f", color="red")
            @override
            def one(self, z): ...
            plain = torch.no_grad()(one)
            @ray.method(num_returns="dynamic")
            def many(self): ...
        """,
    )
    assert {name: (str(s), s.num_returns) for name, s in info.methods.items()} == {
        "two": ("two(self, x)", 2),
        "three": ("three(self, x, *, y=1)", 3),
        "one": ("one(self, z)", None),
        "plain": ("plain(self, z)", None),
        "many": ("many(self)", None),
    }
    assert info.methods["two"].line == 7 + 2
