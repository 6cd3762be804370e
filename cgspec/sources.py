"""The user's files that a run is made of: which of them there are, as they are when it begins."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from cgspec.graph import ClassRef, Graph
from cgspec.signatures.modules import Module, Modules
from cgspec.values import Call, Entries, Expr, Feedback, FunctionRef, Items, Marked, Text, Value

LARGEST = 2**20
"""Bytes of a file up to which it is kept."""
MOST = 500
"""Files that are kept."""
Named = ClassRef | FunctionRef


def parts(value: Value) -> Sequence[Value]:
    """The values that a value is made of."""
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Text):
        return value.parts
    if isinstance(value, Entries):
        return [part for _, part in value.entries]
    if isinstance(value, Marked):
        return [*value.arguments.values()]
    if isinstance(value, Expr):
        return [*value.known.values()]
    return [value.first] if isinstance(value, Feedback) else [value.arguments] if isinstance(value, Call) else []


def _named(graph: Graph) -> list[Named]:
    """Whatever the graph names that is code."""
    found: list[Named] = [actor.class_ref for actor in graph.actors]
    for value in _values(graph):
        found.extend(_functions(value))
    return found


def kept_files(graph: Graph, root: Path) -> list[str]:
    """The files below the spec's root whose classes and functions the graph names, and those below it that they import.

    Imports are read, wherever they stand, and found as Python finds them; nothing is imported, so that what a program
    imports by a name that it makes itself is not seen. Hidden folders and installed packages are left out.
    """
    modules, named = Modules(root), _named(graph)
    found = {ref.file for ref in named if ref.file is not None}
    left = [
        modules.named(ref.module) if ref.file is None else modules.below_root(ref.file, ref.module) for ref in named
    ]
    seen: set[Path] = set()
    while left and len(found) < MOST:
        module = left.pop()
        if not isinstance(module, Module) or module.file in seen:
            continue
        seen.add(module.file)
        if (name := _below(module.file, modules.root)) is not None:
            found.add(name)
            left += [modules.named(imported) for imported in _imports(module) if _is_own(modules, imported)]
    return sorted(found)


def _is_own(modules: Modules, name: str) -> bool:
    place = modules.locate(name)
    return place is not None and place.file is not None and _below(place.file, modules.root) is not None


def _below(file: Path, root: Path) -> str | None:
    """A file's name below the root, where it is the user's own."""
    if not file.is_relative_to(root):
        return None
    relative = file.relative_to(root)
    other = any(part.startswith(".") or part == "site-packages" for part in relative.parts)
    return None if other else relative.as_posix()


def _imports(module: Module) -> Iterator[str]:
    """The names of all modules that a module may import, packages on the way included."""
    for statement in module.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from _on_the_way(alias.name)
            elif isinstance(node, ast.ImportFrom) and (base := module.absolute(node.module or "", node.level)):
                yield from _on_the_way(base)
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _on_the_way(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: count + 1]) for count in range(len(parts)))


def _values(graph: Graph) -> Iterator[Value]:
    for given in graph.inputs:
        yield given.value
    for actor in graph.actors:
        yield from (*actor.args, *actor.kwargs.values())
    for task in graph.tasks:
        yield from task.consts.values()


def _functions(value: Value) -> Iterator[Named]:
    if isinstance(value, Call):
        yield value.function
    for part in parts(value):
        yield from _functions(part)


def read_files(graph: Graph, root: Path) -> Iterator[tuple[str, str]]:
    """(name below the root, text) of every one of ``kept_files`` that can be read and is not too large."""
    for name in kept_files(graph, root):
        try:
            content = (root / name).read_bytes()
        except OSError:
            continue
        if len(content) <= LARGEST:
            yield name, content.decode("utf-8", "backslashreplace")
