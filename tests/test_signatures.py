"""Reading classes and signatures from source: compared with ``inspect`` on the imported module, and by hand."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

from cgspec.graph import ClassRef
from cgspec.signatures import ClassInfo, NotFound, Parameter, Signature
from cgspec.signatures.reader import SourceReader

KINDS = {
    "positional-only": inspect.Parameter.POSITIONAL_ONLY,
    "positional": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "var-positional": inspect.Parameter.VAR_POSITIONAL,
    "keyword-only": inspect.Parameter.KEYWORD_ONLY,
    "var-keyword": inspect.Parameter.VAR_KEYWORD,
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests import modules of the same names, and leave their folders on ``sys.path``."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("model", "pkg", "layers", "data", "actors")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(
        sys, "path", [folder for folder in sys.path if not (pathlib.Path(folder) / "model.py").exists()]
    )


def write(root: pathlib.Path, **files: str) -> None:
    for name, text in files.items():
        path = root / (name.replace("__in__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def ref(qualname: str, file: str = "model.py") -> ClassRef:
    return ClassRef("cgspec_user." + file.removesuffix(".py").replace("/", "."), qualname, file)


def read(root: pathlib.Path, text: str, qualname: str = "Stage") -> ClassInfo:
    write(root, model=text)
    found = SourceReader(root).read_class(ref(qualname))
    assert isinstance(found, ClassInfo), found
    return found


def missing(root: pathlib.Path, qualname: str = "Stage", file: str = "model.py") -> NotFound:
    found = SourceReader(root).read_class(ref(qualname, file))
    assert isinstance(found, NotFound), found
    return found


def shape(signature: Signature) -> list[tuple[str, object, bool]]:
    return [(p.name, KINDS[p.kind], p.default is not None) for p in signature.parameters]


def expected(signature: inspect.Signature) -> list[tuple[str, object, bool]]:
    return [(p.name, p.kind, p.default is not p.empty) for p in signature.parameters.values()]


@pytest.fixture
def imported(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A root whose files can be imported too."""
    sys.path.append(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


# --- the same as inspect -------------------------------------------------------------------------------------------

AS_INSPECT_HAS_IT = {
    "plain": "class Stage:\n    def forward(self, x, scale=2, *, y, z=3): ...",
    "stars": "class Stage:\n    def __init__(self, *layers, rank=0, **rest): ...\n    def forward(self, *x, **k): ...",
    "positional only": "class Stage:\n    def forward(self, a, b=1, /, c=2, *, d): ...",
    "self positional only": "class Stage:\n    def forward(self, /, x): ...",
    "self among the stars": "class Stage:\n    def forward(*args, x=1): ...",
    "static and class": """
        class Stage:
            @staticmethod
            def one(x, y=1): ...
            @classmethod
            def two(cls, x): ...
        """,
    "inherited": """
        class Base:
            def __init__(self, rank, world=1): ...
            def forward(self, x): ...
        class Stage(Base):
            def other(self, y): ...
        """,
    "diamond": """
        class A:
            def f(self, a): ...
            def g(self, a): ...
        class B(A):
            def f(self, b): ...
        class C(A):
            def f(self, c): ...
            def g(self, c): ...
            def __init__(self, c): ...
        class Stage(B, C): ...
        """,
    "generic": """
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Base(Generic[T]):
            def __init__(self, item: T): ...
            def forward(self, x: T) -> T: ...
        class Stage(Base[int]): ...
        """,
    "abstract": """
        import abc
        class Base(abc.ABC):
            @abc.abstractmethod
            def forward(self, x): ...
        class Stage(Base):
            def forward(self, x, y=0): ...
        """,
    "assigned": """
        def _impl(self, x, y=2): ...
        class Stage:
            forward = _impl
            short = lambda self, a, *, b=1: a
            def _f(self, q): ...
            again = _f
        """,
    "partialmethod": """
        import functools
        class Stage:
            def _impl(self, a, b, c=1, *rest, d): ...
            first = functools.partialmethod(_impl, 1)
            named = functools.partialmethod(_impl, b=2)
            both = functools.partialmethod(_impl, 1, c=2, d=3)
        """,
    "decorated": """
        import functools, abc
        class Stage:
            @functools.lru_cache(maxsize=3)
            def forward(self, x, y): ...
            @functools.cache
            def other(self, x): ...
        """,
    "own decorator": """
        import functools
        def timed(fn):
            @functools.wraps(fn)
            def inner(*args, **kwargs):
                return fn(*args, **kwargs)
            return inner
        def named(label):
            def wrap(fn):
                @functools.wraps(fn)
                def inner(self, *args, **kwargs):
                    return fn(self, *args, **kwargs)
                return inner
            return wrap
        def register(fn):
            return fn
        class Stage:
            @timed
            def one(self, x): ...
            @named("a")
            def two(self, x, *, y=1): ...
            @register
            def three(self, z): ...
        """,
    "kinds": """
        class Stage:
            async def one(self, x): ...
            def two(self, x):
                yield x
            async def three(self, x):
                yield x
        """,
    "dataclass": """
        from dataclasses import dataclass, field, KW_ONLY, InitVar
        from typing import ClassVar
        @dataclass
        class Base:
            rank: int
            names: list = field(default_factory=list)
            hidden: int = field(default=0, init=False)
            total: ClassVar[int] = 3
        @dataclass(frozen=True)
        class Other:
            x: int = 1
        @dataclass
        class Stage(Base):
            rank: float
            seed: InitVar[int] = 0
            _: KW_ONLY
            scale: float = 1.0
            must: int
            def forward(self, x): ...
        """,
    "dataclass kw_only": """
        import dataclasses
        @dataclasses.dataclass(kw_only=True, slots=True)
        class Stage:
            b: int = 1
            a: int
            c: int = dataclasses.field(kw_only=False)
        """,
    "dataclass with its own init": """
        from dataclasses import dataclass
        @dataclass
        class Stage:
            x: int
            def __init__(self, y): ...
        """,
    "plain child of a dataclass": """
        from dataclasses import dataclass
        @dataclass
        class Base:
            x: int
        class Stage(Base):
            y: int = 3
        """,
    "dataclass init=False": """
        from dataclasses import dataclass
        class Base:
            def __init__(self, a): ...
        @dataclass(init=False)
        class Stage(Base):
            x: int
        """,
    "new only": "class Stage:\n    def __new__(cls, a, b=1): return object.__new__(cls)",
    "if and try": """
        import sys
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            class Stage:
                def forward(self, wrong): ...
        else:
            class Stage:
                def forward(self, x): ...
                if sys.version_info >= (3, 8):
                    def other(self, new): ...
                else:
                    def other(self, old): ...
        """,
    "try and raise": """
        try:
            from collections import OrderedDict
            class Stage:
                def forward(self, x): ...
        except ImportError as error:
            raise RuntimeError("install it") from error
        """,
    "redefined with itself as base": """
        class Stage:
            def __init__(self, a): ...
            def forward(self, x): ...
        class Stage(Stage):
            def other(self, y): ...
        """,
    "overload": """
        from typing import overload
        class Stage:
            @overload
            def forward(self, x: int): ...
            @overload
            def forward(self, x: str, y: int): ...
            def forward(self, x, y=None): ...
        """,
    "alias": "class Base:\n    def forward(self, x): ...\nStage = Base",
    "private names": "class Stage:\n    def __secret(self, x): ...\n    def _inner(self, y): ...",
    "metaclass abc": "import abc\nclass Stage(metaclass=abc.ABCMeta):\n    def __init__(self, a): ...",
    "no constructor": "class Stage:\n    pass",
    "static by call": "def f(x, y): ...\nclass Stage:\n    f = staticmethod(f)\n    g = staticmethod(lambda q: q)",
}


@pytest.mark.parametrize("text", AS_INSPECT_HAS_IT.values(), ids=AS_INSPECT_HAS_IT.keys())
def test_methods_and_constructor_are_as_inspect_has_them(imported: pathlib.Path, text: str) -> None:
    info = read(imported, text)
    cls = importlib.import_module("model").Stage
    assert info.complete, info.why_incomplete
    assert info.init.readable, info.init.why
    assert shape(info.init) == expected(inspect.signature(cls))
    for name, signature in info.methods.items():
        if name not in ("__init__", "__new__") and "field" not in signature.why:
            assert signature.readable, signature.why
            bound = getattr(cls.__new__(cls) if "__new__" not in vars(cls) else cls(1), name)
            assert shape(signature) == expected(inspect.signature(bound)), name
    theirs = {name for name in dir(cls) if callable(getattr(cls, name)) and not name.endswith("__")}
    assert theirs - {"hidden", "_abc_impl", "total"} <= set(info.methods)


@pytest.mark.parametrize("module, name", [
    ("queue", "Queue"), ("threading", "Thread"), ("subprocess", "Popen"), ("argparse", "ArgumentParser"),
    ("concurrent.futures.thread", "ThreadPoolExecutor"), ("logging", "Logger"), ("fractions", "Fraction"),
    ("configparser", "ConfigParser"), ("string", "Template"), ("email.message", "EmailMessage"),
    ("http.client", "HTTPConnection"), ("tempfile", "TemporaryDirectory"), ("json", "JSONEncoder"),
    ("unittest", "TestCase"), ("ast", "NodeVisitor"), ("asyncio", "Queue"), ("cmd", "Cmd"), ("csv", "DictReader"),
    ("torch.nn", "Linear"), ("torch.nn", "Transformer"), ("torch.nn", "Conv2d"), ("torch.nn", "Sequential"),
    ("torch.nn", "MultiheadAttention"), ("torch.optim", "AdamW"), ("torch.utils.data", "DataLoader"),
])  # fmt: skip
def test_installed_classes_are_as_inspect_has_them_where_they_are_readable(module: str, name: str) -> None:
    info = SourceReader(pathlib.Path("/nonexistent")).read_class(ClassRef(module, name, None))
    assert isinstance(info, ClassInfo)
    cls = getattr(importlib.import_module(module), name)
    if info.init.readable:
        assert shape(info.init) == expected(inspect.signature(cls))
    compared = 0
    for method, signature in info.methods.items():
        found = inspect.getattr_static(cls, method, None)
        if signature.readable and inspect.isfunction(found) and method not in ("__new__", "__init__"):
            if str(inspect.signature(found)) != "(*args, **kwargs)":  # there we see through a wrapper, inspect does not
                assert shape(signature) == expected(inspect.signature(found))[1:], method
            compared += 1
    assert compared
    if info.complete:
        public = {one for one in dir(cls) if inspect.isfunction(inspect.getattr_static(cls, one))}
        assert public <= set(info.methods)


# --- imports and bases ---------------------------------------------------------------------------------------------


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


def test_kinds_tell_async_and_generators_apart(tmp_path: pathlib.Path) -> None:
    info = read(tmp_path, AS_INSPECT_HAS_IT["kinds"])
    assert [info.methods[n].kind for n in ("one", "two", "three")] == ["async", "generator", "async generator"]


# --- what cannot be known gives a note, never an alarm --------------------------------------------------------------

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


# --- not found: one sentence for each way ---------------------------------------------------------------------------


def test_each_way_of_not_being_found_has_its_own_sentence(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        model="class Stage: ...\nclass Other: ...\ndef make(): ...\nSIZE = 3\nimport os\n",
        broken="class Stage:\n    def f(:\n",
        stages__in__a="class A: ...",
        lacks="from model import Nope\n",
    )
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "latin.py").write_bytes(b"x = 'caf\xe9'\nclass Stage: ...\n")
    (tmp_path / "null.py").write_bytes(b"class Stage:\0 ...\n")
    cases = [
        ("Stage", "modle.py", "file", "there is no modle.py beside the spec; did you mean model.py?"),
        ("A", "stages/b.py", "file", "there is no stages/b.py below the spec's folder; Python files there: a.py"),
        (
            "A",
            "stagse/a.py",
            "file",
            "there is no stagse/a.py below the spec's folder: no folder stagse; did you mean stages?",
        ),
        ("Stage", "folder.py", "unreadable", "folder.py is a folder, and a class is read from a Python file"),
        ("Stage", "broken.py", "syntax", "broken.py does not parse as Python in line 2: invalid syntax"),
        ("Stgae", "model.py", "name", "model.py has no class Stgae; did you mean Stage?"),
        ("Zebra", "model.py", "name", "model.py has no class Zebra; its classes: Stage, Other"),
        ("Stage.Inner", "model.py", "name", "Stage in model.py has no class Inner; it defines no classes"),
        ("make", "model.py", "not-a-class", "model.py:make is a function, not a class"),
        ("SIZE", "model.py", "not-a-class", "model.py:SIZE is a value (3), not a class"),
        ("os", "model.py", "not-a-class", "model.py:os is a module, not a class"),
        ("os.system", "model.py", "name", "os is a module that model.py imports; a class is named by its own module"),
        ("Nope", "lacks.py", "name", "lacks.py imports Nope from model.py (line 1), which lacks it"),
        ("", "model.py", "name", "model.py has no class ; its classes: Stage, Other"),
    ]
    for qualname, file, kind, message in cases:
        found = missing(tmp_path, qualname, file)
        assert (found.kind, found.message) == (kind, message)
    assert missing(tmp_path, "Stage", "latin.py").kind == "syntax"
    assert missing(tmp_path, "Stage", "null.py").kind == "syntax"
    assert missing(tmp_path, "Stage", "a\0b.py").kind in ("file", "unreadable")
    assert missing(tmp_path, "Zebra").choices == ("Stage", "Other")


def test_modules_that_are_not_there_or_have_no_source_say_so(tmp_path: pathlib.Path) -> None:
    reader = SourceReader(tmp_path)
    cases = [
        ("torchh", "module", "did you mean torch?"),
        ("torch.n", "module", "torch has no module n"),
        ("json.decodr", "module", "did you mean decoder?"),
        ("queue.sub", "module", "not a package"),
        ("math", "no-source", "math"),
        ("sys", "no-source", "part of the interpreter"),
        ("", "module", "there is no module"),
        ("..x", "module", "no module"),
    ]
    for name, kind, part in cases:
        found = reader.read_class(ClassRef(name, "X", None))
        assert isinstance(found, NotFound) and found.kind == kind and part in found.message, (name, found)
    misspelt = reader.read_class(ClassRef("torch.nn", "Liner", None))
    assert isinstance(misspelt, NotFound) and misspelt.message == "torch.nn has no class Liner; did you mean Linear?"


def test_a_missing_method_offers_the_nearest_and_lists_own_methods_first(tmp_path: pathlib.Path) -> None:
    info = read(
        tmp_path,
        "class B:\n    def step(self): ...\nclass Stage(B):\n    def forward(self): ...\n    def _p(self): ...",
    )
    near, far = info.method("forwrad"), info.method("xyz")
    assert isinstance(near, NotFound) and near.message == "Stage has no method forwrad; did you mean forward?"
    assert isinstance(far, NotFound) and far.message == "Stage has no method xyz; its methods: forward, step"


# --- problems of a call ----------------------------------------------------------------------------------------------


def signature(text: str, root: pathlib.Path) -> Signature:
    return read(root, f"class Stage:\n    def forward({text}): ...").methods["forward"]


@pytest.mark.parametrize("text, positional, names, kinds", [
    ("self, x", 1, [], []), ("self, x", 0, ["x"], []), ("self, x, *, y", 1, ["y"], []),
    ("self, x, /, y", 0, ["x", "y"], []), ("self, *x", 5, [], []), ("self, **k", 0, ["any", "thing"], []),
    ("self, x=1", 0, [], []), ("self, *, y=1", 0, [], []),
    ("self, x", 0, [], ["missing"]), ("self, x, y, *, z", 1, [], ["missing"]),
    ("self, x", 2, [], ["too-many"]), ("self", 1, [], ["too-many"]), ("self, *, x", 1, ["x"], ["too-many"]),
    ("self, x", 1, ["x"], ["twice"]), ("self, x", 0, ["x", "x"], ["twice"]), ("self, x, /", 1, ["x"], ["twice"]),
    ("self, x", 1, ["y"], ["unexpected"]), ("self, x", 0, ["y"], ["unexpected", "missing"]),
    ("self, x", 1, ["self"], ["unexpected"]), ("self, /, **k", 0, ["self"], []), ("self, **k", 0, ["k"], []),
    ("self, *args", 0, ["args"], ["unexpected"]), ("", 0, [], ["no-self"]), ("*args", 3, [], []),
    ("*, x", 0, ["x"], ["no-self"]),
])  # fmt: skip
def test_problems_of_a_call(
    tmp_path: pathlib.Path, text: str, positional: int, names: list[str], kinds: list[str]
) -> None:
    assert [p.kind for p in signature(text, tmp_path).problems(positional, names)] == kinds


def test_problems_are_said_in_words_with_the_nearest_parameter(tmp_path: pathlib.Path) -> None:
    found = signature("self, x, *, scale=2", tmp_path).problems(0, ["scael", "self"])
    assert [(p.kind, p.names, p.message, p.fix) for p in found] == [
        ("unexpected", ("scael",), "forward(self, x, *, scale=2) has no parameter scael", "did you mean scale?"),
        ("unexpected", ("self",), "self of forward(self, x, *, scale=2) is the object itself and cannot be given", ""),
        ("missing", ("x",), "forward(self, x, *, scale=2) needs x", ""),
    ]
    assert signature("self, a, b, c", tmp_path).problems(0, [])[0].message == "forward(self, a, b, c) needs a, b and c"


def test_problems_agree_with_python_where_nothing_is_positional_only(imported: pathlib.Path) -> None:
    """Every signature of a small grid is called in every way of a small grid: a problem iff Python refuses."""
    texts = [
        "self",
        "self, a",
        "self, a, b=1",
        "self, *a",
        "self, a, *, b",
        "self, *, b=1, **k",
        "self, a, *r, b=2, **k",
    ]
    info = read(imported, "class Stage:\n" + "".join(f"    def f{i}({t}): ...\n" for i, t in enumerate(texts)))
    stage = importlib.import_module("model").Stage()
    calls = [(n, names) for n in range(4) for names in ([], ["a"], ["b"], ["a", "b"], ["c"], ["self"], ["a", "c"])]
    for number in range(len(texts)):
        for positional, names in calls:
            try:
                getattr(stage, f"f{number}")(*range(positional), **dict.fromkeys(names, 0))
                refused = False
            except TypeError:
                refused = True
            found = info.methods[f"f{number}"].problems(positional, names)
            assert bool(found) == refused, (texts[number], positional, names, found)


@pytest.mark.parametrize(
    "text",
    [
        "self, x, *, scale=2",
        "self, a, /, b, *args, c, d=1, **kw",
        "self, /",
        "*args, **kw",
        "self, x='a, b', y=(1, 2)",
    ],
)
def test_a_signature_reads_like_python(tmp_path: pathlib.Path, text: str) -> None:
    assert str(signature(text, tmp_path)) == f"forward({text})"


# --- functions --------------------------------------------------------------------------------------------------------


def test_functions_are_read_for_calls(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        data="""
        import functools
        def batch(n, *, seed=0): ...
        async def later(n): ...
        class Loader:
            def __init__(self, path): ...
            @staticmethod
            def make(a): ...
            @classmethod
            def build(cls, b): ...
            def plain(self, c): ...
        small = functools.partial(batch, 4)
        size = lambda i: i
        N = 3
        made = batch(1)
        """,
    )
    reader = SourceReader(tmp_path)
    names = ["batch", "later", "Loader", "Loader.make", "Loader.build", "Loader.plain", "small", "size", "made"]
    found = [str(reader.read_function(ref(name, "data.py"))) for name in names]
    assert found == [
        "batch(n, *, seed=0)",
        "later(n)",
        "Loader(path)",
        "make(a)",
        "build(cls, b)",
        "plain(self, c)",
        "small(*, seed=0)",
        "size(i)",
        "made(…)",
    ]
    constant, absent = (reader.read_function(ref(name, "data.py")) for name in ("N", "bacth"))
    assert isinstance(constant, NotFound) and constant.message == "data.py:N is a value (3), not a function"
    assert isinstance(absent, NotFound) and absent.message == "data.py has no function bacth; did you mean batch?"
    plain = reader.read_function(ref("Loader.plain", "data.py"))
    assert isinstance(plain, Signature) and plain.parameters[0] == Parameter("self")


# --- safety, limits, speed -------------------------------------------------------------------------------------------


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
