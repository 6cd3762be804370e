"""Reads classes and functions that a spec names from their source, without importing or executing anything.

What cannot be known without importing is marked (``complete``, ``readable``), so that a caller gives a note and never
a false alarm; what is certainly absent is a ``NotFound``. No input raises.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgspec.diagnostics import nearest, suggest
from cgspec.signatures import ClassInfo, NotFound, Signature, fields
from cgspec.signatures.bindings import patched
from cgspec.signatures.callables import KEEP_THE_SIGNATURE, signature_of
from cgspec.signatures.members import Member, annotated, mangled, rewrites, set_on_self, sets_attributes, unreadable
from cgspec.signatures.modules import Module, Modules, Unread
from cgspec.signatures.resolution import Class, Constant, Defined, Resolver, Scope, Several, Thing, Unknown

if TYPE_CHECKING:
    from cgspec.graph import ClassRef

BENIGN_GETATTR = frozenset(["torch.nn.modules.module.Module"])
"""Their ``__getattr__`` finds only what was set on the object, which is read from the assignments to ``self``."""

BENIGN_METACLASSES = ("abc.ABCMeta", "type", "builtins.type")


@dataclass
class _Members:
    """What one class body defines itself; ``doubt`` says why there may be more."""

    found: dict[str, Member] = field(default_factory=dict)
    on_object: dict[str, Member] = field(default_factory=dict)
    doubt: str = ""


class SourceReader:
    """Reads what is below ``root`` and what is installed; everything is read once."""

    def __init__(self, root: pathlib.Path) -> None:
        self.modules = Modules(root)
        self._resolver = Resolver(self.modules)
        self._classes: dict[tuple[str, str, str | None], ClassInfo | NotFound] = {}
        self._functions: dict[tuple[str, str, str | None], Signature | NotFound] = {}
        self._infos: dict[Class, ClassInfo] = {}
        self._own: dict[Class, _Members] = {}

    def read_class(self, ref: ClassRef) -> ClassInfo | NotFound:
        """The class that ``ref`` names, inherited methods included, or why there is none."""
        key = (ref.module, ref.qualname, ref.file)
        if key not in self._classes:
            try:
                self._classes[key] = self._class_of(ref, self._find(ref, "class"))
            except RecursionError:
                self._classes[key] = _incomplete(ref.qualname, f"{ref} is nested too deeply to be read")
        return self._classes[key]

    def read_function(self, ref: ClassRef) -> Signature | NotFound:
        """What the function (or class) that ``ref`` names takes when it is called, or why there is none."""
        key = (ref.module, ref.qualname, ref.file)
        if key not in self._functions:
            try:
                self._functions[key] = self._function_of(ref, self._find(ref, "function"))
            except RecursionError:
                self._functions[key] = unreadable(ref.qualname, f"{ref} is nested too deeply to be read")
        return self._functions[key]

    def _find(self, ref: ClassRef, noun: str) -> Thing:
        modules = self.modules
        loaded = modules.below_root(ref.file, ref.module) if ref.file is not None else modules.named(ref.module)
        if isinstance(loaded, NotFound):
            return loaded
        if isinstance(loaded, Unread):
            return self._without_source(loaded)
        thing: Thing = loaded
        for number, part in enumerate(ref.qualname.split(".")):
            if number and isinstance(thing, Module):
                owner = ".".join(ref.qualname.split(".")[:number])
                message = f"{owner} is a module that {loaded.shown} imports; a {noun} is named by its own module"
                return NotFound("name", message, (), str(loaded.file))
            found = self._resolver.name(loaded, part) if not number else self._resolver.member(thing, part)
            if found is None:
                return self._absent(loaded, thing, part, noun)
            thing = found
        return thing

    def _without_source(self, loaded: Unread) -> Thing:
        exists = self.modules.locate(loaded.name)
        if exists is not None and exists.file is None:
            return NotFound("no-source", f"{loaded.name} has no source to read: {loaded.why}")
        return Unknown(loaded.why)

    def _absent(self, module: Module, owner: Thing, part: str, noun: str) -> NotFound:
        names = self._resolver.body(owner) if isinstance(owner, Class) else module.names
        kind = ast.ClassDef if noun == "class" else (ast.FunctionDef, ast.AsyncFunctionDef)
        choices = tuple(name for name, bound in names.items() if any(isinstance(c, kind) for c in bound.candidates))
        if not isinstance(owner, Class) and nearest(part, choices) is None:
            visible = tuple(name for name in self._resolver.visible(module) if not name.startswith("_"))
            choices = visible if nearest(part, visible) or not choices else choices
        where = f"{owner.qualname} in {module.shown}" if isinstance(owner, Class) else module.shown
        plural = "classes" if noun == "class" else "functions"
        hint = suggest(part, choices, noun=f"its {plural}") if choices else f"it defines no {plural}"
        return NotFound("name", f"{where} has no {noun} {part}; {hint}", choices, str(module.file))

    def _class_of(self, ref: ClassRef, thing: Thing) -> ClassInfo | NotFound:
        if isinstance(thing, Class):
            return self._info(thing)
        if isinstance(thing, NotFound):
            return thing
        if isinstance(thing, Unknown):
            return _incomplete(ref.qualname, f"{ref} cannot be read without importing it: {thing.why}")
        if isinstance(thing, Several):
            return _merged(ref.qualname, [self._class_of(ref, one) for one in thing.things], thing.why)
        made = self._signature(thing, ref.qualname, in_class=False) if isinstance(thing, Defined) else None
        if isinstance(made, Signature) and not made.readable:
            return _incomplete(ref.qualname, f"{ref} cannot be read without importing it: {made.why}")
        what = thing.what if isinstance(thing, Constant) else "a module" if isinstance(thing, Module) else "a function"
        return NotFound("not-a-class", f"{ref} is {what}, not a class", (), "", _line(thing))

    def _function_of(self, ref: ClassRef, thing: Thing) -> Signature | NotFound:
        if isinstance(thing, Class):
            return self._info(thing).init
        if isinstance(thing, NotFound):
            return thing
        if isinstance(thing, Defined):
            made = self._signature(thing, ref.qualname.split(".")[-1], in_class=False)
            return made if isinstance(made, Signature) else NotFound("not-a-function", f"{ref} is {made}")
        if isinstance(thing, (Unknown, Several)):
            return unreadable(ref.qualname, f"{ref} cannot be read without importing it: {thing.why}")
        what = thing.what if isinstance(thing, Constant) else "a module"
        return NotFound("not-a-function", f"{ref} is {what}, not a function")

    def _signature(self, thing: Defined, name: str, *, in_class: bool) -> Member:
        wrappers = [self._resolver.wrapper(thing.scope, node) for node in thing.wrappers]
        file = str(thing.scope.module.file)
        if not in_class and thing.scope.inside and any(w.name == "classmethod" for w in wrappers):
            in_class = True
        made = signature_of(thing.node, wrappers, name=name, file=file, in_class=in_class)
        if isinstance(made, str) or thing.scope.inside is None:
            return made
        owner = thing.scope.inside.node.name
        return replace(made, parameters=tuple(replace(p, name=mangled(owner, p.name)) for p in made.parameters))

    def _info(self, cls: Class) -> ClassInfo:
        if cls not in self._infos:
            self._infos[cls] = self._made(cls)
        return self._infos[cls]

    def _made(self, cls: Class) -> ClassInfo:
        members: dict[str, Member] = {}
        on_object: dict[str, Member] = {}
        doubts: list[str] = []
        for one in self._resolver.order(cls):
            if isinstance(one, Unknown):
                doubts.append(one.why)
                continue
            own = self._members(one)
            hidden = next((d for d in doubts if d.startswith("the base")), "")
            for name, member in own.found.items():
                members.setdefault(name, _doubted(member, hidden))
            on_object.update({name: member for name, member in own.on_object.items() if name not in on_object})
            doubts += [own.doubt] if own.doubt else []
        for name, member in on_object.items():
            members[name] = member if name not in members else _doubted(members[name], _set_on_object(name))
        methods = {name: one for name, one in members.items() if isinstance(one, Signature)}
        optional = frozenset(name for name, one in methods.items() if name.startswith("_") or not one.line)
        attributes = {name: one for name, one in members.items() if isinstance(one, str)}
        return ClassInfo(
            cls.qualname,
            methods,
            self._constructor(cls),
            attributes,
            not doubts,
            "; ".join(doubts[:1]),
            str(cls.scope.module.file),
            cls.node.lineno,
            optional,
        )

    def _members(self, cls: Class) -> _Members:
        if cls not in self._own:
            self._own[cls] = self._read_body(cls)
        return self._own[cls]

    def _read_body(self, cls: Class) -> _Members:
        own = _Members(doubt=self._doubt(cls))
        benign = f"{cls.scope.module.name}.{cls.qualname}" in BENIGN_GETATTR
        scope = Scope(cls.scope.module, cls)
        for name, bound in self._resolver.body(cls).items():
            made = [self._member(name, self._resolver.binding(scope, one)) for one in bound.candidates]
            if made:
                own.found[mangled(cls.node.name, name)] = _agreed(name, made)
        for attribute, line in patched(cls.scope.module.body, cls.node.name):
            if attribute is None:
                own.doubt = own.doubt or f"{cls.qualname} is changed after it is made (line {line})"
            else:
                own.found[attribute] = unreadable(attribute, f"{attribute} is set on {cls.qualname} in line {line}")
        for node in cls.node.body:
            if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name):
                own.on_object[node.target.id] = annotated(node.target.id, ast.unparse(node.annotation))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                doubt = set_on_self(node, own.on_object)
                own.doubt = own.doubt or (f"{cls.qualname}.{node.name} {doubt}" if doubt and not benign else "")
        return own

    def _member(self, name: str, thing: Thing | None) -> Member:
        if isinstance(thing, Defined):
            made = self._signature(thing, name, in_class=True)
            return made if isinstance(made, Signature) else f"{made} (line {thing.node.lineno})"
        if isinstance(thing, Constant):
            return thing.what
        if isinstance(thing, Class):
            return unreadable(name, f"{name} is a class inside the class")
        if isinstance(thing, Module):
            return "a module"
        return unreadable(name, getattr(thing, "why", "") or f"{name} is known only when it runs")

    def _doubt(self, cls: Class) -> str:
        """Why a class may have more methods than its body and its bases show, or the empty string."""
        name, body = cls.qualname, self._resolver.body(cls)
        for word in ("__getattr__", "__getattribute__"):
            if word in body and f"{cls.scope.module.name}.{name}" not in BENIGN_GETATTR:
                return f"{name} makes attributes in {word}"
        if self._metaclass(cls):
            return f"the metaclass of {name} may add methods"
        unknown = next((d for d in cls.node.decorator_list if not self._is_transparent(cls, d)), None)
        if unknown is not None:
            return f"{name} is decorated with @{ast.unparse(unknown)}, which may add methods"
        for node in cls.node.body:
            runs = not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            hook = getattr(node, "name", "") == "__init_subclass__"
            if (runs and rewrites(node)) or (hook and sets_attributes(node)):
                return f"{name} makes attributes as it runs (line {node.lineno})"
        return ""

    def _is_transparent(self, cls: Class, node: ast.expr) -> bool:
        if self._resolver.dotted(cls.scope, node) in (*fields.DECORATORS, *KEEP_THE_SIGNATURE):
            return True
        found = self._resolver.expression(cls.scope, node)
        return (
            isinstance(found, Defined)
            and not sets_attributes(found.node)
            and self._resolver.wrapper(cls.scope, node).keeps
        )

    def _metaclass(self, cls: Class) -> bool:
        names = [
            self._resolver.dotted(cls.scope, word.value) if word.arg else ""
            for word in cls.node.keywords
            if word.arg in (None, "metaclass")
        ]
        return any(name not in BENIGN_METACLASSES for name in names)

    def _constructor(self, cls: Class) -> Signature:
        """What ``cls(...)`` takes, as ``type.__call__`` has it: ``__new__`` and ``__init__`` both get the arguments."""
        name = cls.node.name
        made: Signature | None = None
        file, new = str(cls.scope.module.file), False
        order = self._resolver.order(cls)
        for number, one in enumerate(order):
            if isinstance(one, Unknown):
                return made if made and not new else unreadable(name, one.why)
            if self._metaclass(one):
                return unreadable(name, f"the metaclass of {one.qualname} may change what {name} takes")
            if any(not self._is_transparent(one, d) for d in one.node.decorator_list):
                return made or unreadable(name, self._doubt(one))
            new = new or "__new__" in self._resolver.body(one)
            made = made or self._own_init(name, one, order[number:])
        if new and made is not None:
            return unreadable(name, f"{name} has both __new__ and __init__")
        if new:
            return _constructs(name, self._inherited(cls, "__new__"))
        return made or Signature(name, file=file, line=cls.node.lineno)

    def _inherited(self, cls: Class, name: str) -> Member:
        found = (self._members(one).found.get(name) for one in self._resolver.order(cls) if isinstance(one, Class))
        return next((member for member in found if member is not None), "unknown")

    def _own_init(self, name: str, cls: Class, order: tuple[Class | Unknown, ...]) -> Signature | None:
        found = self._members(cls).found.get("__init__")
        if found is not None:
            return _constructs(name, found)
        layers = list(self._layers(order))
        if not layers or layers[0].node is not cls.node or layers[0].option("init") is False:
            return None
        if any(isinstance(one, Unknown) for one in order):
            return unreadable(name, f"a base of the dataclass {name} cannot be read")
        return fields.constructor(name, layers[::-1], str(cls.scope.module.file))

    def _layers(self, order: tuple[Class | Unknown, ...]) -> Iterator[fields.Layer]:
        for cls in order:
            for node in cls.node.decorator_list if isinstance(cls, Class) else ():
                if isinstance(cls, Class) and self._resolver.dotted(cls.scope, node) in fields.DECORATORS:
                    yield fields.Layer(cls.node, node if isinstance(node, ast.Call) else None)


def _incomplete(name: str, why: str) -> ClassInfo:
    return ClassInfo(name, {}, unreadable(name.split(".")[-1], why), {}, False, why)


def _doubted(member: Member, why: str) -> Member:
    if not why or not isinstance(member, Signature) or not member.readable:
        return member
    return replace(member, readable=False, why=why)


def _constructs(name: str, member: Member) -> Signature:
    if isinstance(member, str):
        return unreadable(name, f"the constructor of {name} is {member}")
    return replace(member, name=name, receiver=None)


def _set_on_object(name: str) -> str:
    return f"{name} is also set on the object itself"


def _agreed(name: str, made: list[Member]) -> Member:
    """The member that all branches agree on; else an unreadable one."""
    if all(isinstance(one, str) for one in made) or len({str(one) for one in made}) == 1:
        return made[0]
    first = next(one for one in made if isinstance(one, Signature))
    return replace(first, readable=False, why=f"{name} is bound in several branches")


def _merged(name: str, found: list[ClassInfo | NotFound], why: str) -> ClassInfo | NotFound:
    """What holds of a class that is one of several, depending on a branch."""
    infos = [one for one in found if isinstance(one, ClassInfo)]
    if not infos:
        return found[0]
    methods = {
        name: _agreed(name, [one.methods[name] for one in infos if name in one.methods])
        for info in infos
        for name in info.methods
    }
    same = len({tuple(sorted(one.methods)) for one in infos}) == 1 and len(infos) == len(found)
    complete = same and all(one.complete for one in infos)
    init = _agreed(infos[0].init.name, [one.init for one in infos])
    return replace(
        infos[0],
        name=name,
        methods={k: v for k, v in methods.items() if isinstance(v, Signature)},
        init=init if isinstance(init, Signature) else infos[0].init,
        attributes={},
        complete=complete,
        why_incomplete="" if complete else why,
    )


def _line(thing: Thing) -> int:
    return thing.node.lineno if isinstance(thing, (Class, Defined)) else 0
