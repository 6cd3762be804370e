"""The constructor that ``dataclasses`` would write for a class, read from its annotations."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cgspec.signatures import Parameter, Signature
from cgspec.signatures.bindings import statements
from cgspec.signatures.callables import shorten

DECORATORS = ("dataclasses.dataclass",)
_SPECIAL = re.compile(r"""^['"]?(?:\w+\.)?(ClassVar|KW_ONLY)\b""")


@dataclass(frozen=True, slots=True)
class Layer:
    """One dataclass among the bases: its body and its decorator's call, if it has one."""

    node: ast.ClassDef
    call: ast.Call | None

    def option(self, name: str) -> bool | None:
        """A literal option of the decorator; None where it was not given."""
        for word in self.call.keywords if self.call else ():
            if word.arg == name and isinstance(word.value, ast.Constant):
                return bool(word.value.value)
        return None

    @property
    def literal(self) -> bool:
        words = self.call.keywords if self.call else []
        return all(word.arg and isinstance(word.value, ast.Constant) for word in words)


def constructor(name: str, layers: Sequence[Layer], file: str) -> Signature:
    """The constructor of the last of the layers, which go from the oldest base to the class itself."""
    node = layers[-1].node
    fields: dict[str, Parameter | None] = {}
    for layer in layers:
        if not layer.literal:
            return Signature(name, readable=False, why=f"{name} is a dataclass with computed options", file=file)
        if list(statements(layer.node.body)) != layer.node.body and _conditional(layer.node):
            return Signature(name, readable=False, why=f"{layer.node.name} has fields in branches", file=file)
        _add_fields(fields, layer)
    listed = [one for one in fields.values() if one is not None]
    placed = [one for one in listed if one.kind == "positional"]
    named = [one for one in listed if one.kind == "keyword-only"]
    return Signature(name, (*placed, *named), file=file, line=node.lineno)


def _conditional(node: ast.ClassDef) -> bool:
    return any(isinstance(one, ast.AnnAssign) and one not in node.body for one in statements(node.body))


def _add_fields(fields: dict[str, Parameter | None], layer: Layer) -> None:
    keyword_only = bool(layer.option("kw_only"))
    for statement in layer.node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        special = _SPECIAL.match(ast.unparse(statement.annotation))
        if special is not None:
            keyword_only = keyword_only or special[1] == "KW_ONLY"
        else:
            fields[statement.target.id] = _field(statement.target.id, statement.value, keyword_only)


def _field(name: str, value: ast.expr | None, keyword_only: bool) -> Parameter | None:
    """The parameter of one field; None where the constructor does not take it."""
    default = shorten(value)
    if isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == "field":
        words = {word.arg: word.value for word in value.keywords}
        if _is(words.get("init"), False):
            return None
        if "kw_only" in words:
            keyword_only = _is(words["kw_only"], True)
        factory = words.get("default_factory")
        default = f"{ast.unparse(factory)}()" if factory is not None else shorten(words.get("default"))
    return Parameter(name, "keyword-only" if keyword_only else "positional", default)


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
