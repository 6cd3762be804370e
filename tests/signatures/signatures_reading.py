"""Classes written to a folder and read from source, for the tests of the reader of signatures."""

from __future__ import annotations

import inspect
import pathlib
import textwrap

from cgspec.graph import ClassRef
from cgspec.signatures import ClassInfo, NotFound, Signature
from cgspec.signatures.reader import SourceReader

KINDS = {
    "positional-only": inspect.Parameter.POSITIONAL_ONLY,
    "positional": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "var-positional": inspect.Parameter.VAR_POSITIONAL,
    "keyword-only": inspect.Parameter.KEYWORD_ONLY,
    "var-keyword": inspect.Parameter.VAR_KEYWORD,
}


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
