"""Finds and parses the modules that a spec names, files below its root and installed packages, importing nothing.

``importlib.util.find_spec("a.b")`` imports ``a``; here each level is looked for in the folders of the level above.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import pathlib
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cgspec.diagnostics import nearest, suggest
from cgspec.signatures import NotFound
from cgspec.signatures.bindings import STAR, Hidden, Imported, Names, bind, hidden

USER = "cgspec_user"
"""The synthetic package that files below the spec's root are imported under."""

MOST_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class Location:
    """Where a module is: its source file if it has one, and the folders of its submodules (none: not a package).

    ``why`` says, where there is no file, what the module is instead.
    """

    name: str
    file: pathlib.Path | None
    folders: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, eq=False)
class Module:
    """A parsed module; ``shown`` is what people call it: ``model.py`` or ``torch.nn``."""

    name: str
    shown: str
    file: pathlib.Path
    folders: tuple[str, ...]
    body: tuple[ast.stmt, ...] = field(repr=False)

    @cached_property
    def names(self) -> Names:
        return bind(self.body)

    @cached_property
    def stars(self) -> tuple[Imported, ...]:
        found = self.names[STAR].candidates if STAR in self.names else ()
        return tuple(one for one in found if isinstance(one, Imported))

    @cached_property
    def stars_differ(self) -> bool:
        """Whether branches decide which of the imports by ``*`` holds."""
        return len(self.stars) > 1 and len(self.stars) != len(self.names[STAR].candidates)

    @cached_property
    def hidden(self) -> Hidden:
        return hidden(self.body)

    def absolute(self, module: str, level: int) -> str | None:
        """The full name of what ``from <level dots><module> import`` names here; None beyond the top."""
        if not level:
            return module
        parts = self.name.split(".")
        kept = len(parts) - level + (1 if self.folders else 0)
        return ".".join([*parts[:kept], *([module] if module else [])]) if kept > 0 else None


@dataclass(frozen=True, slots=True)
class Unread:
    """A module that exists but cannot be read as source; ``why`` is a sentence."""

    name: str
    why: str


Loaded = Module | Unread | NotFound


class Modules:
    """Finds and parses modules as a program whose ``sys.path`` ends with ``root`` would; remembers all it has read."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = pathlib.Path(os.path.abspath(root))
        self._locations: dict[str, Location | None] = {}
        self._files: dict[tuple[str, str], Loaded] = {}
        importlib.machinery.PathFinder.invalidate_caches()

    def locate(self, name: str) -> Location | None:
        """Where the module is, or None where there is no such module."""
        if name not in self._locations:
            self._locations[name] = self._locate(name)
        return self._locations[name]

    def _locate(self, name: str) -> Location | None:
        parent, _, last = name.rpartition(".")
        if not all(name.split(".")) or "\0" in name or "/" in name:
            return None
        if name == USER:
            return Location(name, None, (str(self.root),), f"{name} is the spec's folder")
        if not parent:
            return _top(name, [*sys.path, str(self.root)])
        above = self.locate(parent)
        return _described(name, _search(last, above.folders)) if above and above.folders else None

    def named(self, name: str) -> Loaded:
        """The module of that dotted name."""
        found = self.locate(name)
        if found is None:
            return self._absent(name)
        if found.file is None:
            return Unread(name, found.why)
        return self._read(found.file, name, self._shown(found.file, name), found.folders)

    def below_root(self, file: str, name: str) -> Loaded:
        """The module in ``file``, relative to the root, that is imported as ``name``."""
        path = self.root / file
        missing = self._missing_file(file, path)
        if missing is not None:
            return missing
        return self._read(path, name, file, (str(path.parent),) if path.name == "__init__.py" else ())

    def _shown(self, file: pathlib.Path, name: str) -> str:
        in_tree = name.partition(".")[0] == USER or str(file).startswith(str(self.root) + os.sep)
        return file.relative_to(self.root).as_posix() if in_tree else name

    def _missing_file(self, file: str, path: pathlib.Path) -> NotFound | None:
        try:
            if path.is_file():
                return None
            kind = "a folder" if path.is_dir() else "no ordinary file" if path.exists() else ""
        except (OSError, ValueError) as error:
            return NotFound("unreadable", f"{file!r} cannot be read: {_plain(error)}")
        if kind:
            return NotFound("unreadable", f"{file} is {kind}, and a class is read from a Python file")
        folder, where = path.parent, "beside the spec" if "/" not in file else "below the spec's folder"
        if not folder.is_dir():
            above = _listing(folder.parent, ".") if folder.parent.is_dir() else ()
            hint = suggest(folder.name, above, noun="folders")
            message = f"there is no {file} below the spec's folder: no folder {folder.name}; {hint}"
            return NotFound("file", message, above)
        inside = _listing(folder, ".py")
        stems = {name.removesuffix(".py"): name for name in inside}
        near = nearest(path.name.removesuffix(".py"), stems)
        hint = suggest(stems[near] if near else "", inside, noun="Python files there")
        return NotFound("file", f"there is no {file} {where}; {hint}", inside)

    def _absent(self, name: str) -> NotFound | Unread:
        parent, _, last = name.rpartition(".")
        above = self.locate(parent) if parent else None
        if parent and above is None:
            return self._absent(parent)
        folders = above.folders if above else (*sys.path, str(self.root))
        if above and not folders:
            loaded = self.named(parent)
            if not isinstance(loaded, Module) or last in loaded.names:
                return Unread(name, f"{name} is no file, {parent} may make it as it runs")
            return NotFound("module", f"{parent} is a module, not a package, so there is no module {name}")
        choices = tuple(sorted({one.name for one in pkgutil.iter_modules(folders) if not one.name.startswith("_")}))
        hint = suggest(last, choices, noun="modules there") if above else _top_hint(last, choices)
        what = f"{parent} has no module {last}" if above else f"there is no module {name}, neither installed nor here"
        return NotFound("module", what + hint if not above else f"{what}; {hint}", choices if above else ())

    def _read(self, path: pathlib.Path, name: str, shown: str, folders: tuple[str, ...]) -> Loaded:
        key = (str(path), name)
        if key not in self._files:
            self._files[key] = _parsed(path, name, shown, folders)
        return self._files[key]


def _top_hint(name: str, choices: Sequence[str]) -> str:
    hint = suggest(name, choices)
    return f"; {hint}" if hint.startswith("did") else ""


def _listing(folder: pathlib.Path, suffix: str) -> tuple[str, ...]:
    """The Python files in a folder, or for ``.`` its folders, in order."""
    try:
        found = sorted(
            entry.name
            for entry in os.scandir(folder)
            if (entry.is_dir() if suffix == "." else entry.name.endswith(suffix))
        )
    except OSError:
        return ()
    return tuple(name for name in found if not name.startswith((".", "__pycache__")))


def _top(name: str, folders: list[str]) -> Location | None:
    if name in sys.builtin_module_names:
        return Location(name, None, (), f"{name} is part of the interpreter")
    found = _search(name, folders)
    if found is None or found.loader is None:
        found = _editable(name) or found
    return _described(name, found)


def _search(last: str, folders: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
    """Searched by its last name only: with a dotted one, PathFinder would ask ``sys.modules`` for the parent."""
    try:
        return importlib.machinery.PathFinder.find_spec(last, list(folders))
    except (OSError, ValueError, ImportError, KeyError, AttributeError):
        return None


def _editable(name: str) -> importlib.machinery.ModuleSpec | None:
    """Asks the finders that setuptools installs for editable packages; they look names up in a table."""
    for finder in sys.meta_path:
        if getattr(finder, "__module__", "").startswith("__editable__"):
            found = finder.find_spec(name, None)
            if found is not None:
                return found
    return None


def _described(name: str, spec: importlib.machinery.ModuleSpec | None) -> Location | None:
    if spec is None:
        return None
    folders = tuple(map(str, spec.submodule_search_locations or ()))
    if isinstance(spec.loader, importlib.machinery.SourceFileLoader) and spec.origin:
        return Location(name, pathlib.Path(spec.origin), folders)
    if isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
        return Location(name, None, folders, f"{name} is compiled (written in C or the like)")
    namespace = spec.loader is None or "Namespace" in type(spec.loader).__name__
    return Location(
        name,
        None,
        folders,
        f"{name} is a folder without __init__.py" if namespace else f"{name} is installed without its source",
    )


def _parsed(path: pathlib.Path, name: str, shown: str, folders: tuple[str, ...]) -> Loaded:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            return Unread(name, f"{shown} has {size / 1e6:.0f} MB, and cgspec reads up to {MOST_BYTES // 10**6} MB")
        tree = _tree(path.read_bytes())
    except OSError as error:
        return NotFound("unreadable", f"{shown} cannot be read: {_plain(error)}")
    except SyntaxError as error:
        line = error.lineno or 0
        where = f" in line {line}" if line else ""
        return NotFound("syntax", f"{shown} does not parse as Python{where}: {error.msg}", (), str(path), line)
    except ValueError as error:
        return NotFound("syntax", f"{shown} does not parse as Python: {error}", (), str(path))
    except (RecursionError, MemoryError):
        return Unread(name, f"{shown} is nested too deeply to be read")
    return Module(name, shown, path, folders, tuple(tree.body))


def _tree(text: bytes) -> ast.Module:
    with warnings.catch_warnings():  # a bad escape in somebody's string is not our business
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _plain(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
