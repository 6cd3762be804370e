"""What cannot be known from the source gives a note, never an alarm."""

from __future__ import annotations

import pathlib

import pytest
from signatures_reading import read

from cgspec.signatures import NotFound, Signature

DOUBTFUL = {
    "a base made by a call": "Base = make()\nclass Stage(Base):\n    def forward(self, x): ...",
    "a base that is not installed": "from nowhere import Base\nclass Stage(Base):\n    def forward(self, x): ...",
    "a base in C": "class Stage(dict):\n    def forward(self, x): ...",
    "a compiled base": "import _datetime\nclass Stage(_datetime.date):\n    def forward(self, x): ...",
    "a metaclass": "class Meta(type): ...\nclass Stage(metaclass=Meta):\n    def forward(self, x): ...",
    "an inherited metaclass": "import enum\nclass Stage(enum.Enum):\n    def forward(self, x): ...",
    "getattr": "class Stage:\n    def __getattr__(self, n): ...\n    def forward(self, x): ...",
    "computed attributes": "class Stage:\n    def __init__(self):\n        for n in 'ab': setattr(self, n, 1)\n"
    "    def forward(self, x): ...",
    "a class decorator": "from x import deco\n@deco\nclass Stage:\n    def forward(self, x): ...",
    "a class decorator that adds": "def deco(cls):\n    cls.more = 1\n    return cls\n@deco\n"
    "class Stage:\n    def forward(self, x): ...",
    "setattr on the class": "class Stage:\n    def forward(self, x): ...\nfor n in 'ab':\n    setattr(Stage, n, 1)",
    "locals": "class Stage:\n    def forward(self, x): ...\n    for n in 'ab': locals()[n] = n",
    "init_subclass": "class B:\n    def __init_subclass__(cls):\n        setattr(cls, 'a', 1)\n"
    "class Stage(B):\n    def forward(self, x): ...",
    "its own base": "class A(Stage): ...\nclass Stage(A):\n    def forward(self, x): ...",
    "bases that cannot be ordered": "class A: ...\nclass B(A): ...\nclass Stage(A, B):\n    def forward(self, x): ...",
    "a conditional base": "try:\n    from nowhere import Base\nexcept ImportError:\n    Base = object\n"
    "class Stage(Base):\n    def forward(self, x): ...",
    "an unpacked base": "class Stage(*bases()):\n    def forward(self, x): ...",
}


@pytest.mark.parametrize("text", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_a_class_that_may_have_more_is_incomplete_and_says_why(tmp_path: pathlib.Path, text: str) -> None:
    info = read(tmp_path, text)
    assert not info.complete and info.why_incomplete
    assert str(info.methods["forward"]) == "forward(self, x)"
    unknown = info.method("elsewhere")
    assert isinstance(unknown, Signature) and not unknown.readable and unknown.why == info.why_incomplete
    assert unknown.problems(9, ["nonsense"]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Stage = make()",
        "import functools\nStage = functools.partial(dict, a=1)",
        "from nowhere import Stage",
        "from nowhere import *",
        "globals()['Stage'] = 1",
        "def __getattr__(name): ...",
        "for Stage in (): pass",
        "Stage, B = make()",
        "from _datetime import date as Stage",
        "print(Stage := 3)",
        "def f():\n    global Stage\n    Stage = 1",
        "Stage = type('Stage', (), {})",
        "import collections\nStage = collections.namedtuple('Stage', 'a b')",
        "Stage = (lambda: 0)()",
    ],
)
def test_a_class_that_only_running_makes_is_incomplete_not_missing(tmp_path: pathlib.Path, text: str) -> None:
    info = read(tmp_path, text)
    assert (info.complete, info.init.readable) == (False, False) and info.why_incomplete


def test_methods_in_doubt_are_unreadable_and_say_why(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        """
        from somewhere import deco
        class Stage:
            @deco
            def wrapped(self, x): ...
            made = deco()
            if deco:
                def either(self, a): ...
            else:
                def either(self, b): ...
            def patched(self, x): ...
            def over(self, x): ...
            def __init__(self, fn):
                self.fn = fn
                self.over = fn
                self.size = 3
            @property
            def rank(self): ...
            kind = "stage"
        Stage.patched = deco(Stage.patched)
        """,
    )
    assert {name for name, s in info.methods.items() if not s.readable} == {
        "wrapped",
        "made",
        "either",
        "patched",
        "over",
        "fn",
    }
    assert all(s.why for s in info.methods.values() if not s.readable)
    assert info.complete
    rank, size, kind = (info.method(name) for name in ("rank", "size", "kind"))
    assert isinstance(rank, NotFound) and rank.message == "rank of Stage is a property (line 18), not a method"
    assert isinstance(size, NotFound)
    assert size.message == "size of Stage is a value that __init__ sets (line 16), not a method"
    assert isinstance(kind, NotFound) and "a value ('stage')" in kind.message
    assert "fn" not in info.choices


def test_a_field_may_be_callable_and_is_not_offered(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        """
        from dataclasses import dataclass, field
        @dataclass
        class Stage:
            fn: Callable
            rank: int
            names: list = field(default_factory=list)
            def forward(self, x): ...
        """,
    )
    fn, rank = info.method("fn"), info.method("rank")
    assert isinstance(fn, Signature) and not fn.readable
    assert isinstance(rank, NotFound) and rank.message == "rank of Stage is a field of type int, not a method"
    assert info.choices == ("forward",) and str(info.init) == "Stage(fn, rank, names=list())"


def test_submodules_that_are_set_by_name_are_known(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        """
        from torch import nn
        class Stage(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.linear = nn.Linear(width, width)
                self.add_module("norm", nn.LayerNorm(width))
                setattr(self, "act", nn.ReLU())
            def forward(self, x): ...
        """,
    )
    assert info.complete and str(info.methods["forward"]) == "forward(self, x)"
    for name in ("linear", "norm", "act"):
        found = info.method(name)
        assert isinstance(found, Signature) and not found.readable
    lost = info.method("forwrd")
    assert isinstance(lost, NotFound) and lost.message == "Stage has no method forwrd; did you mean forward?"


def test_private_parameters_are_mangled_as_python_does(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, "class Stage:\n    def f(self, __x): ...").methods["f"].names == ("_Stage__x",)


def test_decorators_that_change_the_arguments_are_not_taken_for_transparent(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        """
        import functools
        def injects(fn):
            @functools.wraps(fn)
            def inner(self, *args, **kwargs):
                return fn(self, 1, *args, **kwargs)
            return inner
        def pops(fn):
            def inner(*args, **kwargs):
                args = args[1:]
                return fn(*args, **kwargs)
            return inner
        def hides(fn):
            def inner(self): return fn(self, 1)
            return inner
        class Stage:
            @injects
            def a(self, lock, x): ...
            @pops
            def b(self, x): ...
            @hides
            def c(self, x): ...
        """,
    )
    assert [info.methods[n].readable for n in "abc"] == [False] * 3


def test_a_constructor_in_doubt_is_unreadable(tmp_path: pathlib.Path) -> None:
    for text in (
        "from a import d\n@d\nclass Stage:\n    x: int",
        "from p import Base\nclass Stage(Base):\n    x: int",
        "class Stage:\n    def __new__(cls, a): ...\n    def __init__(self, b): ...",
        "from dataclasses import dataclass\nK = True\n@dataclass(kw_only=K)\nclass Stage:\n    x: int",
        "class M(type): ...\nclass Stage(metaclass=M):\n    def __init__(self, a): ...",
    ):
        assert not read(tmp_path, text).init.readable, text


def test_a_readable_constructor_stays_readable_below_an_unknown_base(tmp_path: pathlib.Path) -> None:
    info = read(tmp_path, "from nowhere import Base\nclass Stage(Base):\n    def __init__(self, a): ...")
    assert str(info.init) == "Stage(a)" and info.init.readable
