"""Follows names through scopes, assignments, imports and base classes to what they are, executing nothing."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgspec.signatures import NotFound
from cgspec.signatures.bindings import STAR, Binding, Imported, Names, Opaque, Rebound, bind
from cgspec.signatures.callables import PARTIALS, Node, Wrapper, keeps_arguments, makes_keepers, shorten
from cgspec.signatures.modules import Module, Modules, Unread

EMPTY_BASES = (
    "object",
    "builtins.object",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Protocol",
    "abc.ABC",
)
"""Bases that bring no methods and no constructor."""

_CONSTANTS = (
    ast.Constant,
    ast.JoinedStr,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
    ast.GeneratorExp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
)


@dataclass(frozen=True, eq=False)
class Scope:
    """Where an expression is evaluated: a class body (or None) in a module; ``before`` holds what a name was before."""

    module: Module
    inside: Class | None = None
    before: Mapping[str, tuple[Binding, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Class:
    """A class statement, and the scope that it stands in."""

    node: ast.ClassDef
    scope: Scope

    @property
    def qualname(self) -> str:
        outer = self.scope.inside
        return f"{outer.qualname}.{self.node.name}" if outer else self.node.name


@dataclass(frozen=True, eq=False)
class Defined:
    """A function or lambda with what is wrapped around it, from the innermost to the outermost."""

    node: Node
    scope: Scope
    wrappers: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """Something that is neither a class nor a function."""

    what: str


@dataclass(frozen=True, eq=False)
class Unknown:
    """Something that cannot be known without importing; ``why`` is a sentence."""

    why: str


@dataclass(frozen=True, eq=False)
class Several:
    """A name that undecided branches bind to different things."""

    things: tuple[Thing, ...]
    why: str


Thing = Class | Defined | Module | Constant | Unknown | Several | NotFound
Seen = frozenset[tuple[str, str]]


class Resolver:
    """Answers what names and expressions are, over the modules that ``modules`` finds."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._classes: dict[ast.ClassDef, Class] = {}
        self._bodies: dict[Class, Names] = {}
        self._orders: dict[Class, tuple[Class | Unknown, ...]] = {}

    def body(self, cls: Class) -> Names:
        """What the class's own body binds."""
        if cls not in self._bodies:
            self._bodies[cls] = bind(cls.node.body)
        return self._bodies[cls]

    def name(self, module: Module, name: str, seen: Seen = frozenset()) -> Thing | None:
        """What a name is at the end of a module; None where the module does not have it."""
        key = (module.name, name)
        if key in seen:
            return None
        bound = module.names.get(name)
        if bound is not None and name != STAR:
            return self._one(name, Scope(module), bound.candidates, seen | {key})
        found = [
            self._imported(Scope(module), replace(star, name=name), seen | {key}, star=True)
            for star in module.stars
            if not self._hides(module, star, name)
        ]
        known = [thing for thing in found if thing is not None]
        sure = [thing for thing in known if module.stars_differ or not isinstance(thing, Unknown)]
        if known:
            return sure[0] if sure and all(one is sure[0] for one in sure) else _several(name, sure or known[:1])
        return self._dynamic(module, name)

    def visible(self, module: Module, seen: frozenset[str] = frozenset()) -> dict[str, None]:
        """The names that a module has, those that it takes by ``*`` included."""
        names = {name: None for name in module.names if name != STAR}
        for star in module.stars:
            full = module.absolute(star.module, star.level)
            loaded = self.modules.named(full) if full and full not in seen else None
            if isinstance(loaded, Module):
                names.update(self.visible(loaded, seen | {loaded.name}))
        return names

    def _hides(self, module: Module, star: Imported, name: str) -> bool:
        """Whether ``from … import *`` leaves the name out, as far as a literal ``__all__`` or an underscore tells."""
        full = module.absolute(star.module, star.level)
        loaded = self.modules.named(full) if full else None
        if not isinstance(loaded, Module) or "__all__" not in loaded.names or loaded.hidden.changes_all:
            return name.startswith("_")
        bound = loaded.names["__all__"]
        if len(bound.candidates) != 1 or not isinstance(bound.candidates[0], (ast.List, ast.Tuple)):
            return False
        items = bound.candidates[0].elts
        return all(isinstance(i, ast.Constant) for i in items) and name not in {
            i.value for i in items if isinstance(i, ast.Constant)
        }

    def _dynamic(self, module: Module, name: str) -> Unknown | None:
        """Names that a module makes as it goes: by ``__getattr__``, ``globals()``, ``exec``, ``global`` or ``:=``."""
        if "__getattr__" in module.names:
            return Unknown(f"{module.shown} makes names in __getattr__")
        if module.hidden.line or name in module.hidden.names:
            where = f" (line {module.hidden.line})" if module.hidden.line else ""
            return Unknown(f"{module.shown} makes names as it runs{where}")
        return None

    def _one(self, name: str, scope: Scope, candidates: Sequence[Binding], seen: Seen) -> Thing | None:
        found = [thing for one in candidates if (thing := self.binding(scope, one, seen)) is not None]
        return found[0] if len(found) == 1 else _several(name, found) if found else None

    def binding(self, scope: Scope, binding: Binding, seen: Seen = frozenset()) -> Thing | None:
        """What one binding binds its name to."""
        if isinstance(binding, Rebound):
            scope = replace(scope, before={**scope.before, binding.name: binding.before})
            return self.binding(scope, binding.value, seen)
        if isinstance(binding, ast.ClassDef):
            return self._classes.setdefault(binding, Class(binding, scope))
        if isinstance(binding, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return Defined(binding, scope, tuple(reversed(binding.decorator_list)))
        if isinstance(binding, Imported):
            return self._imported(scope, binding, seen)
        if isinstance(binding, Opaque):
            return Unknown(f"it {binding.why}")
        return self.expression(scope, binding, seen) or Unknown(f"{shorten(binding)} cannot be followed")

    def _imported(self, scope: Scope, what: Imported, seen: Seen, *, star: bool = False) -> Thing | None:
        full = scope.module.absolute(what.module, what.level)
        if full is None:
            return Unknown(f"{scope.module.shown} imports from beyond the top of its package (line {what.line})")
        loaded = self.modules.named(full)
        if what.name is None:
            return loaded if isinstance(loaded, Module) else _unreadable(scope.module, full, loaded, what.line)
        if isinstance(loaded, Module):
            found = self.name(loaded, what.name, seen)
            if found is not None or star:
                return found
        elif star:
            return _unreadable(scope.module, full, loaded, what.line)
        below = self.modules.locate(f"{full}.{what.name}")
        if below is not None:
            inner = self.modules.named(below.name)
            return inner if isinstance(inner, Module) else _unreadable(scope.module, below.name, inner, what.line)
        if not isinstance(loaded, Module):
            return _unreadable(scope.module, full, loaded, what.line)
        message = f"{scope.module.shown} imports {what.name} from {loaded.shown} (line {what.line}), which lacks it"
        return NotFound("name", message, (), str(scope.module.file), what.line)

    def member(self, owner: Thing | None, name: str, seen: Seen = frozenset()) -> Thing | None:
        """What ``owner.name`` is; None where it is not there."""
        if isinstance(owner, Module):
            found = self.name(owner, name, seen)
            if found is not None or not owner.folders or self.modules.locate(f"{owner.name}.{name}") is None:
                return found
            below = self.modules.named(f"{owner.name}.{name}")
            return below if isinstance(below, Module) else _unreadable(owner, f"{owner.name}.{name}", below, 0)
        if isinstance(owner, Class):
            for one in self.order(owner):
                if isinstance(one, Unknown):
                    return one
                if name in self.body(one):
                    return self._one(name, Scope(one.scope.module, one), self.body(one)[name].candidates, seen)
            return None
        return owner if isinstance(owner, (Unknown, NotFound)) else Unknown(f"{name} is read from something unknown")

    def expression(self, scope: Scope, node: ast.expr, seen: Seen = frozenset()) -> Thing | None:
        """What an expression evaluates to."""
        if isinstance(node, ast.Name):
            return self._local(scope, node.id, seen)
        if isinstance(node, ast.Attribute):
            return self.member(self.expression(scope, node.value, seen), node.attr, seen)
        if isinstance(node, ast.Subscript):
            return self.expression(scope, node.value, seen)
        if isinstance(node, ast.Lambda):
            return Defined(node, scope)
        if isinstance(node, ast.Call):
            return self._called(scope, node, seen)
        if isinstance(node, _CONSTANTS):
            return Constant(f"a value ({shorten(node, 30)})")
        return Unknown(f"{shorten(node)} is known only when it runs")

    def _local(self, scope: Scope, name: str, seen: Seen) -> Thing | None:
        if name in scope.before:
            rest = {key: value for key, value in scope.before.items() if key != name}
            return self._one(name, replace(scope, before=rest), scope.before[name], seen)
        inside = self.body(scope.inside).get(name) if scope.inside else None
        key = (f"{scope.module.name}:{scope.inside.qualname}" if scope.inside else "", name)
        if inside is not None and key not in seen:
            return self._one(name, scope, inside.candidates, seen | {key})
        found = self.name(scope.module, name, seen)
        if found is None and hasattr(builtins, name):
            return Unknown(f"{name} is built into Python")
        return found

    def _called(self, scope: Scope, call: ast.Call, seen: Seen) -> Thing | None:
        """A call that wraps a class or function is followed; what any other call gives is unknown."""
        name = self.dotted(scope, call.func)
        one = len(call.args) == 1 and not call.keywords
        inner = self.expression(scope, call.args[0], seen) if one or (name in PARTIALS and call.args) else None
        if isinstance(inner, Class) and name == "ray.remote":
            return inner
        if isinstance(inner, Defined):
            wrapper = call if name in PARTIALS else call.func
            return replace(inner, wrappers=(*inner.wrappers, wrapper))
        return Unknown(f"it is made by a call of {shorten(call.func)} (line {call.lineno} of {scope.module.shown})")

    def dotted(self, scope: Scope, node: ast.expr) -> str:
        """The full name of a decorator, base or function, as far as imports tell, without looking it up."""
        if isinstance(node, (ast.Call, ast.Subscript)):
            return self.dotted(scope, node.func if isinstance(node, ast.Call) else node.value)
        if isinstance(node, ast.Attribute):
            owner = self.dotted(scope, node.value)
            return f"{owner}.{node.attr}" if owner else ""
        if not isinstance(node, ast.Name):
            return ""
        inside = self.body(scope.inside).get(node.id) if scope.inside else None
        bound = inside or scope.module.names.get(node.id)
        if bound is None:
            return node.id
        for one in bound.candidates:
            if isinstance(one, Imported):
                full = scope.module.absolute(one.module, one.level) or ""
                return full if one.name is None else f"{full}.{one.name}"
        return f"{scope.module.name}.{node.id}"

    def wrapper(self, scope: Scope, node: ast.expr) -> Wrapper:
        """A decorator, with what its source shows about the arguments."""
        call = node if isinstance(node, ast.Call) else None
        func = node.func if isinstance(node, ast.Call) else node
        found = self.expression(scope, func)
        keeps = False
        if isinstance(found, Defined) and not found.wrappers:
            keeps = makes_keepers(found.node) if call else keeps_arguments(found.node)
        return Wrapper(self.dotted(scope, func), call, f"@{shorten(node)}", keeps)

    def order(self, cls: Class) -> tuple[Class | Unknown, ...]:
        """The method resolution order (C3), with an ``Unknown`` for each base that cannot be read."""
        if cls not in self._orders:
            self._orders[cls] = (cls, Unknown(f"{cls.qualname} is among its own bases"))  # while it is being read
            self._orders[cls] = self._linear(cls)
        return self._orders[cls]

    def _linear(self, cls: Class) -> tuple[Class | Unknown, ...]:
        bases = [self._base(cls, node) for node in cls.node.bases if self.dotted(cls.scope, node) not in EMPTY_BASES]
        rows = [list(self.order(base)) if isinstance(base, Class) else [base] for base in bases] + [list(bases)]
        merged: list[Class | Unknown] = [cls]
        while rows := [row for row in rows if row]:
            head = next((row[0] for row in rows if not any(row[0] in other[1:] for other in rows)), None)
            if head is None:
                return (cls, Unknown(f"the bases of {cls.qualname} cannot be put in order"))
            merged.append(head)
            rows = [[one for one in row if one is not head] for row in rows]
        return tuple(merged)

    def _base(self, cls: Class, node: ast.expr) -> Class | Unknown:
        found = self.expression(cls.scope, node)
        if isinstance(found, Class):
            return found
        why = {
            NotFound: getattr(found, "message", ""),
            Unknown: getattr(found, "why", ""),
            Several: getattr(found, "why", ""),
        }.get(type(found), "") or "it is no class that can be read"
        return Unknown(f"the base {shorten(node)} of {cls.qualname} is not known: {why}")


def _several(name: str, things: Sequence[Thing]) -> Thing:
    if len(things) == 1:
        return things[0]
    return Several(tuple(things), f"{name} is bound in several branches")


def _unreadable(module: Module, full: str, loaded: Unread | NotFound | Module, line: int) -> Unknown:
    why = loaded.why if isinstance(loaded, Unread) else loaded.message if isinstance(loaded, NotFound) else ""
    return Unknown(f"{module.shown} takes it from {full}" + (f" (line {line})" if line else "") + f", and {why}")
