"""The codes that the source can emit, found by reading it."""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterator

import cgspec

SOURCE = pathlib.Path(cgspec.__file__).parent
MAKERS = ("Finding", "report", "_break", "_report", "_fatal", "Rule", "BadReference", "breaks")
"""What takes a code as its first argument."""


@functools.cache
def codes() -> frozenset[str]:
    """Every code that stands as a first argument, or in a table of codes, anywhere in the source."""
    return frozenset(code for file in SOURCE.rglob("*.py") for code in _codes_in(ast.parse(file.read_text("utf-8"))))


def _codes_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _name(node.func) in MAKERS:
            yield from _texts(node.args[0])
        if isinstance(node, ast.Assign) and any(_name(target).endswith("_CODES") for target in node.targets):
            assert isinstance(node.value, ast.Dict)
            for value in node.value.values:
                yield from _texts(value)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be: itself, or either side of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_texts(node.body), *_texts(node.orelse))
