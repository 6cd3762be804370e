"""Says which classes and functions a spec may import: a YAML edit alone must not be able to reach ``subprocess``.

Allowed are files below the spec's root, modules of the same project, cgspec's own, and what ``--allow-import`` or
``[tool.cgspec] allow-import`` in the project's ``pyproject.toml`` allows. Nothing is imported to find out.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from cgspec.signatures.modules import Location, Modules

if TYPE_CHECKING:
    from cgspec.graph import ClassRef

_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Trust:
    """What one spec may import.

    Attributes:
        root: the spec's root, symlinks resolved.
        project: the nearest folder at or above it with ``pyproject.toml`` or ``.git``; None where there is none.
        patterns: of module names, as ``fnmatch`` reads them.
        declared: whether the root is one that the spec says (``root: ..``): then nothing that is installed, and
            nothing of Python itself, counts as below it.
        problem: why the project's ``pyproject.toml`` could not be used, or the empty string.
    """

    root: pathlib.Path
    project: pathlib.Path | None = None
    patterns: tuple[str, ...] = ()
    problem: str = ""
    declared: bool = False
    _modules: Modules | None = field(default=None, repr=False, compare=False)
    _answers: dict[ClassRef, str | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def for_root(cls, root: pathlib.Path, extra_patterns: Sequence[str] = (), *, declared: bool = False) -> Trust:
        """The trust of a spec whose root is ``root``; a bad ``pyproject.toml`` is a ``problem``, never an exception."""
        real = pathlib.Path(os.path.realpath(root))
        project = _project(real)
        patterns, problem = _configured(project / "pyproject.toml") if project else ((), "")
        return cls(real, project, (*extra_patterns, *patterns), problem, declared, Modules(real))

    def refuses(self, ref: ClassRef) -> str | None:
        """The reason why ``ref`` may not be imported, as a sentence; None where it may."""
        if ref not in self._answers:
            self._answers[ref] = self._refuses(ref)
        return self._answers[ref]

    def _refuses(self, ref: ClassRef) -> str | None:
        if any(part.startswith("__") and part.endswith("__") for part in ref.qualname.split(".")):
            return f"{ref} names {ref.qualname}, and names with two underscores on each side are Python's own"
        return self._refuses_file(ref.file) if ref.file is not None else self._refuses_module(ref.module)

    def _refuses_file(self, file: str) -> str | None:
        try:
            real = pathlib.Path(os.path.realpath(self.root / file))
        except (OSError, ValueError):
            return f"{file!r} is no path that can be followed"
        if not real.is_relative_to(self.root):
            how = "is" if os.path.isabs(file) or ".." in pathlib.PurePosixPath(file).parts else "leads by a symlink"
            return f"{file} {how} outside the spec's folder {self.root}, and only files below it are imported"
        if _is_installed(real, self._home(self.root)):
            return f"{file} belongs to an installed package, not to the spec's own files"
        return None

    def _refuses_module(self, module: str) -> str | None:
        if module.partition(".")[0] == "cgspec" or any(fnmatchcase(module, pattern) for pattern in self.patterns):
            return None
        found = (self._modules or Modules(self.root)).locate(module)
        places = _places(found) if found is not None else []
        if places and all(self._is_ours(place) for place in places):
            return None
        return f"{module} {self._where(module, found)}, so a spec may not import it; {self._remedy(module)}"

    def _is_ours(self, place: pathlib.Path) -> bool:
        homes = [home for home in (self.root, self.project) if home is not None]
        return any(place.is_relative_to(home) and not _is_installed(place, self._home(home)) for home in homes)

    def _home(self, folder: pathlib.Path) -> pathlib.Path:
        """The folder up to which a path is looked at for signs of an installed package."""
        return pathlib.Path(folder.anchor) if self.declared else folder

    def _where(self, module: str, found: Location | None) -> str:
        if found is None:
            return "is not found in this project"
        if module.partition(".")[0] in sys.stdlib_module_names:
            return "belongs to Python itself"
        return "is outside this project" if self.project else "is not below the spec's folder"

    def _remedy(self, module: str) -> str:
        told = f"if it is meant to, say --allow-import {module}"
        if self.project is None:
            return told
        if self.problem:
            return f"{told} ({self.problem})"
        return f'{told}, or allow-import = ["{module}"] under [tool.cgspec] in {self.project / "pyproject.toml"}'


def _places(found: Location) -> list[pathlib.Path]:
    """Where a module's code is, symlinks followed: its file, or each folder of a package without one."""
    named = [str(found.file)] if found.file is not None else list(found.folders)
    return [pathlib.Path(os.path.realpath(one)) for one in named]


def _is_installed(path: pathlib.Path, home: pathlib.Path) -> bool:
    """Whether ``path`` is in an environment or a folder of installed packages somewhere below ``home``."""
    folder = path.parent
    while folder != home and folder != folder.parent:
        if folder.name in _INSTALLED or os.path.exists(folder / "pyvenv.cfg") or _is_standard(folder):
            return True
        folder = folder.parent
    return False


def _is_standard(folder: pathlib.Path) -> bool:
    return str(folder) == os.path.dirname(os.path.realpath(os.__file__))


def _project(root: pathlib.Path) -> pathlib.Path | None:
    for folder in (root, *root.parents):
        if os.path.isfile(folder / "pyproject.toml") or os.path.exists(folder / ".git"):
            return folder
    return None


def _configured(file: pathlib.Path) -> tuple[tuple[str, ...], str]:
    """The patterns in ``file``, and why there are none where it is not as it should be."""
    if not os.path.isfile(file):
        return (), ""
    try:
        table: Any = _toml(file.read_text(encoding="utf-8"))
    except ImportError:
        return (), f"{file} was not read: install tomli"
    except (OSError, ValueError, RecursionError) as error:
        return (), f"{file} cannot be read: {' '.join(str(error).split())}"
    for key in ("tool", "cgspec"):
        table = table.get(key, {})
        if not isinstance(table, dict):
            return (), f"{file}: {key} is no table"
    found = table.get("allow-import", [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return (), f'{file}: allow-import of [tool.cgspec] is no list of strings, as ["package.*"] is one'
    return tuple(found), ""


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    table: dict[str, Any] = tomllib.loads(text)
    return table
