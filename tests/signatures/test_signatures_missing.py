"""What is not found, and what is wrong with a call: one sentence for each way."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib

import pytest
from signatures_reading import missing, read, ref, write

from cgspec.graph import ClassRef
from cgspec.signatures import NotFound, Parameter, Signature
from cgspec.signatures.reader import SourceReader


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
