"""What the reader of signatures says, compared with ``inspect`` on the imported module."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib

import pytest
from signatures_reading import expected, read, shape

from cgspec.graph import ClassRef
from cgspec.signatures import ClassInfo
from cgspec.signatures.reader import SourceReader

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


def test_kinds_tell_async_and_generators_apart(tmp_path: pathlib.Path) -> None:
    info = read(tmp_path, AS_INSPECT_HAS_IT["kinds"])
    assert [info.methods[n].kind for n in ("one", "two", "three")] == ["async", "generator", "async generator"]
