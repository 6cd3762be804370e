"""What a body of statements binds to which names, read from the syntax tree; nothing is evaluated.

Branches that a reader cannot decide leave several candidates for a name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True)
class Imported:
    """A name that an import binds: ``name`` of ``module``, or (None) the module itself; ``*`` for all its names."""

    module: str
    level: int
    name: str | None
    line: int


@dataclass(frozen=True)
class Opaque:
    """A name that is bound to something that cannot be known without running the code."""

    why: str
    line: int


@dataclass(frozen=True)
class Rebound:
    """A binding that reads the name that it replaces, as ``Stage = ray.remote(Stage)`` does."""

    name: str
    value: ast.ClassDef | ast.expr
    before: tuple[Binding, ...]


Binding = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.expr | Imported | Opaque | Rebound


@dataclass(frozen=True)
class Bound:
    """The candidates for a name, and whether the statements certainly bind it."""

    candidates: tuple[Binding, ...]
    certain: bool = True


Names = dict[str, Bound]
STAR = "*"
_TRY: tuple[type, ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))


def bind(body: Sequence[ast.stmt]) -> Names:
    """What the statements bind, in order; the imports by ``*`` are candidates of the name ``*``."""
    names: Names = {}
    for statement in body:
        _then(names, _bound_by(statement))
    return names


def _then(names: Names, later: Names) -> None:
    for name, bound in later.items():
        old = names.get(name)
        if old is None:
            names[name] = bound
        elif bound.certain:
            names[name] = Bound(tuple(_rebound(name, one, old) for one in bound.candidates))
        else:
            names[name] = Bound(old.candidates + bound.candidates, old.certain)


def _rebound(name: str, binding: Binding, old: Bound) -> Binding:
    if isinstance(binding, ast.ClassDef):
        read: list[ast.expr] = [*binding.bases, *binding.decorator_list]
    elif isinstance(binding, ast.expr):
        read = [binding]
    else:
        return binding
    itself = any(isinstance(n, ast.Name) and n.id == name for one in read for n in ast.walk(one))
    return Rebound(name, binding, old.candidates) if itself else binding


def _either(*branches: Names) -> Names:
    merged: Names = {}
    for name in dict.fromkeys(name for branch in branches for name in branch):
        found = [branch[name] for branch in branches if name in branch]
        candidates = tuple(one for bound in found for one in bound.candidates)
        if name == STAR and len(found) > 1:
            candidates = (*candidates, Opaque("is taken by * in one of several branches", 0))
        certain = name != STAR and len(found) == len(branches) and all(bound.certain for bound in found)
        merged[name] = Bound(candidates, certain)
    return merged


def _bound_by(statement: ast.stmt) -> Names:
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return {statement.name: Bound((statement,))}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return _bound_by_import(statement)
    if isinstance(statement, ast.If):
        return _bound_by_if(statement)
    if isinstance(statement, _TRY):
        return _bound_by_try(cast(ast.Try, statement))
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
        looped = _opaque(statement.target, "a loop") if not isinstance(statement, ast.While) else {}
        return _either({}, {**looped, **bind([*statement.body, *statement.orelse])})
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        entered = [_opaque(item.optional_vars, "a with statement") for item in statement.items if item.optional_vars]
        return {**{name: bound for names in entered for name, bound in names.items()}, **bind(statement.body)}
    if isinstance(statement, ast.Match):
        return _either({}, *(bind(case.body) for case in statement.cases if not _fails(case.body)))
    if isinstance(statement, ast.Delete):
        return {target.id: Bound(()) for target in statement.targets if isinstance(target, ast.Name)}
    return _bound_by_assignment(statement)


def _bound_by_assignment(statement: ast.stmt) -> Names:
    if isinstance(statement, ast.Assign):
        names: Names = {}
        for target in statement.targets:
            if isinstance(target, ast.Name):
                names[target.id] = Bound((statement.value,))
            else:
                names.update(_opaque(target, "unpacking"))
        return names
    if isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name):
        return {statement.target.id: Bound((statement.value,))}
    if isinstance(statement, ast.AugAssign):
        return _opaque(statement.target, "an assignment that changes it")
    if sys.version_info >= (3, 12) and isinstance(statement, ast.TypeAlias):
        return _opaque(statement.name, "a type alias")
    return {}


def _opaque(target: ast.expr, how: str) -> Names:
    line = target.lineno
    return {
        node.id: Bound((Opaque(f"is bound by {how} in line {line}", line),))
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _bound_by_import(statement: ast.Import | ast.ImportFrom) -> Names:
    names: Names = {}
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            module = alias.name if alias.asname else alias.name.partition(".")[0]
            names[alias.asname or module] = Bound((Imported(module, 0, None, statement.lineno),))
        else:
            found = Imported(statement.module or "", statement.level, alias.name, statement.lineno)
            names[alias.asname or alias.name] = Bound((found,), alias.name != STAR)
    return names


def _bound_by_if(statement: ast.If) -> Names:
    known = _decided(statement.test)
    if known is not None:
        return bind(statement.body if known else statement.orelse)
    branches = [body for body in (statement.body, statement.orelse) if not _fails(body)]
    return _either(*map(bind, branches))


def _bound_by_try(statement: ast.Try) -> Names:
    handlers = [handler.body for handler in statement.handlers if not _fails(handler.body)]
    names = _either(bind([*statement.body, *statement.orelse]), *map(bind, handlers))
    _then(names, bind(statement.finalbody))
    return names


def _fails(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _decided(test: ast.expr) -> bool | None:
    """What a condition that depends on nothing but Python's version and on not being a script comes to."""
    text = ast.unparse(test) if isinstance(test, (ast.Name, ast.Attribute, ast.Constant)) else ""
    if text:
        return {"TYPE_CHECKING": False, "True": True, "False": False, "0": False, "1": True}.get(text.split(".")[-1])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _decided(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(ast.unparse(test.left), test.ops[0], test.comparators[0])
    return None


def _compared(left: str, operator: ast.cmpop, right: ast.expr) -> bool | None:
    try:
        value = ast.literal_eval(right)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if left == "__name__" and value == "__main__":
        return {ast.Eq: False, ast.NotEq: True}.get(type(operator))
    if left in ("sys.version_info", "version_info") and isinstance(value, tuple) and all(type(v) is int for v in value):
        mine = sys.version_info[:3]
        table: Mapping[type, bool] = {
            ast.GtE: mine >= value,
            ast.Gt: mine > value,
            ast.LtE: mine <= value,
            ast.Lt: mine < value,
        }
        return table.get(type(operator))
    return None


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that runs with the body, those in branches and loops included, those in functions not."""
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.stmt):
            yield statement
        if not isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in ("finalbody", "orelse", "handlers", "cases", "body"):
                waiting.extend(reversed(getattr(statement, part, ())))


def patched(body: Sequence[ast.stmt], name: str) -> Iterator[tuple[str | None, int]]:
    """The attributes that statements set on ``name`` (``Stage.forward = …``, ``setattr``), None where not literal."""
    for statement in statements(body):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                for node in ast.walk(target):
                    stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    if stored and isinstance(node, ast.Attribute) and _is_name(node.value, name):
                        yield node.attr, node.lineno
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield from _set_by_call(statement.value, name)


def _set_by_call(call: ast.Call, name: str) -> Iterator[tuple[str | None, int]]:
    if _is_name(call.func, "setattr") and len(call.args) == 3 and _is_name(call.args[0], name):
        key = call.args[1]
        yield (str(key.value) if isinstance(key, ast.Constant) else None), call.lineno


@dataclass(frozen=True)
class Hidden:
    """Names that a module may have though no statement binds them.

    Attributes:
        names: those that ``global`` statements and ``:=`` bind.
        line: where it writes into a namespace, 0 for nowhere; then it may have any name.
        changes_all: whether it changes ``__all__`` in place.
    """

    names: frozenset[str]
    line: int
    changes_all: bool


def hidden(body: Sequence[ast.stmt]) -> Hidden:
    """Looks through everything in a module for what binds names behind the reader's back."""
    names: set[str] = set()
    line, changes_all = 0, False
    for node in (node for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Global):
            names.update(node.names)
        elif isinstance(node, ast.NamedExpr):
            names.add(node.target.id)
        elif isinstance(node, ast.Attribute) and _is_name(node.value, "__all__"):
            changes_all = True
        elif _writes_names(node):
            line = line or getattr(node, "lineno", 0)
    return Hidden(frozenset(names), line, changes_all)


def _writes_names(node: ast.AST) -> bool:
    """``globals()``, ``exec``, ``sys.modules``, or a statement that hands ``__name__`` on (``_convert_``)."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return any(_is_name(one, "__name__") for one in node.value.args)
    if isinstance(node, ast.Attribute):
        return node.attr == "modules" and _is_name(node.value, "sys")
    return isinstance(node, ast.Call) and any(_is_name(node.func, word) for word in ("globals", "exec", "vars"))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
