"""What the body of one class says about the attributes of its objects, method by method."""

from __future__ import annotations

import ast

from cgspec.signatures import Signature
from cgspec.signatures.callables import own_nodes, parameters_of

Member = Signature | str
"""A method, or the words for what is not one."""

_LITERALS = (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.JoinedStr, ast.ListComp)


def unreadable(name: str, why: str) -> Signature:
    """A callable, or what may be one, of which nothing is known but its name."""
    return Signature(name, readable=False, why=why)


def mangled(owner: str, name: str) -> str:
    """The name that Python gives to ``__name`` in the class ``owner``."""
    private = name.startswith("__") and not name.endswith("__") and owner.strip("_")
    return f"_{owner.lstrip('_')}{name}" if private else name


def set_on_self(node: ast.FunctionDef | ast.AsyncFunctionDef, into: dict[str, Member]) -> str:
    """Notes what a method sets on ``self``; returns the words for attributes that it makes by computed names."""
    first = next(parameters_of(node.args), None)
    if first is None:
        return ""
    restores = node.name.startswith("__") and node.name not in ("__init__", "__post_init__", "__new__")
    for one in own_nodes(node):
        if isinstance(one, (ast.Assign, ast.AnnAssign)):
            for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                _note(target, one.value, first.name, node.name, into)
        elif isinstance(one, ast.Call) and not restores and (words := _sets_by_name(one, first.name, into)):
            return words
    return ""


def _note(target: ast.expr, value: ast.expr | None, receiver: str, where: str, into: dict[str, Member]) -> None:
    for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == receiver:
            literal = value if part is target and isinstance(value, _LITERALS) else None
            into.setdefault(
                part.attr,
                f"a value that {where} sets (line {literal.lineno})"
                if literal
                else unreadable(part.attr, f"{part.attr} is set on the object by {where}"),
            )


def _sets_by_name(call: ast.Call, receiver: str, into: dict[str, Member]) -> str:
    """Notes ``setattr(self, "x", …)`` and ``self.add_module("x", …)``; words where the name is not literal."""
    function = ast.unparse(call.func)
    if function in ("setattr", "object.__setattr__") and call.args and ast.unparse(call.args[0]) == receiver:
        key = call.args[1] if len(call.args) > 1 else None
    elif function in (f"{receiver}.add_module", f"{receiver}.register_module", "super().__setattr__"):
        key = call.args[0] if call.args else None
    else:
        updates = function == f"{receiver}.__dict__.update"
        return f"sets attributes through __dict__ (line {call.lineno})" if updates else ""
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return f"sets attributes by computed names (line {call.lineno})"
    into[key.value] = unreadable(key.value, f"{key.value} is set on the object in line {call.lineno}")
    return ""


def annotated(name: str, annotation: str) -> Member:
    """A name that a class body annotates without a value: a field."""
    plain = annotation.strip("'\"")
    if plain in ("int", "float", "bool", "str", "bytes"):
        return f"a field of type {plain}"
    return unreadable(name, f"{name} is a field, set on the object")


def sets_attributes(node: ast.AST) -> bool:
    """Whether code sets an attribute of anything, as a class decorator that adds methods does."""
    return rewrites(node) or any(
        isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) for one in ast.walk(node)
    )


def rewrites(node: ast.AST) -> bool:
    """Whether code sets attributes by name or writes into a namespace."""
    words = {"setattr", "locals", "vars", "exec", "__setattr__", "dataclass", "__dict__"}
    return any(getattr(one, "id", None) in words or getattr(one, "attr", None) in words for one in ast.walk(node))
