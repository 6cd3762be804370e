"""What the script has to know of the user's code, read from its source: signatures, returns, decorators."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

from cgspec.classes import ClassRef
from cgspec.signatures import ClassInfo, Signature
from cgspec.signatures.reader import SourceReader

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Sources:
    """Reads the user's files; imports nothing."""

    def __init__(self, root: pathlib.Path) -> None:
        self._reader = SourceReader(root)
        self._trees: dict[str, ast.Module | None] = {}

    def method(self, ref: ClassRef, name: str) -> Signature | None:
        """The method as its class defines it; None where it may be an attribute of the object."""
        info = self._reader.read_class(ref)
        found = info.methods.get(name) if isinstance(info, ClassInfo) else None
        return found if found is not None and found.readable and found.line else None

    def has(self, ref: ClassRef, name: str) -> bool:
        """Whether the class has a name already."""
        info = self._reader.read_class(ref)
        return isinstance(info, ClassInfo) and (name in info.methods or name in info.attributes)

    def is_remote(self, ref: ClassRef) -> bool:
        """Whether the class is decorated with ``ray.remote``."""
        info = self._reader.read_class(ref)
        tree = self._tree(info.file) if isinstance(info, ClassInfo) else None
        found = next((node for node in _nodes(tree) if _is_class(node, ref)), None)
        return isinstance(found, ast.ClassDef) and any("remote" in ast.unparse(d) for d in found.decorator_list)

    def returns_tuple(self, signature: Signature | None) -> bool:
        """Whether a method certainly returns a tuple: it is annotated so, or every return shows one."""
        node = self._function(signature)
        if node is None:
            return False
        if node.returns is not None:
            return ast.unparse(node.returns).partition("[")[0].rpartition(".")[2].lower() == "tuple"
        values = [each.value for each in _returns(node)]
        return bool(values) and all(isinstance(value, ast.Tuple) for value in values)

    def returns_nothing(self, signature: Signature | None) -> bool:
        """Whether a method certainly returns None."""
        node = self._function(signature)
        return node is not None and not any(
            each.value is not None and ast.unparse(each.value) != "None" for each in _returns(node)
        )

    def _function(self, signature: Signature | None) -> Function | None:
        tree = self._tree(signature.file) if signature is not None else None
        line = signature.line if signature is not None else 0
        return next((node for node in _nodes(tree) if isinstance(node, Function) and node.lineno == line), None)

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._trees:
            try:
                self._trees[file] = ast.parse(pathlib.Path(file).read_bytes())
            except (OSError, SyntaxError, ValueError):
                self._trees[file] = None
        return self._trees[file]


def _nodes(tree: ast.Module | None) -> Iterator[ast.AST]:
    return ast.walk(tree) if tree is not None else iter(())


def _is_class(node: ast.AST, ref: ClassRef) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == ref.qualname.rpartition(".")[2]


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """The returns of a function itself, not of functions inside."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _returns(child)
