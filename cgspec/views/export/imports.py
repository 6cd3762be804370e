"""How the script gets the user's classes and functions: import lines, and files whose names cannot be imported."""

from __future__ import annotations

import keyword
import sys
from dataclasses import dataclass, field

from cgspec.classes import ClassRef
from cgspec.views.export.code import plain
from cgspec.views.export.names import Names

_NEVER = frozenset({*sys.stdlib_module_names, "ray", "torch", "numpy", "cgspec"})
"""Modules that a file of the same name must not hide."""

LOADER = '''
def load(file):
    """The module in a file that has no name to be imported by; actors get its classes by value."""
    spec = importlib.util.spec_from_file_location("_".join(Path(file).with_suffix("").parts), ROOT / file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    ray.cloudpickle.register_pickle_by_value(module)
    return module
'''


@dataclass
class Imports:
    """The user's names in the script.

    Attributes:
        lines: the import lines of the user's files; ``installed`` those of installed modules.
        loads: the lines that load the other files.
        from_files: whether anything comes from a file below the root.
    """

    names: Names
    lines: set[str] = field(default_factory=set)
    installed: set[str] = field(default_factory=set)
    loads: dict[str, str] = field(default_factory=dict)
    from_files: bool = False
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def name(self, ref: ClassRef) -> str:
        """The expression for a class or function; sees to it that it is there."""
        top, _, inner = ref.qualname.partition(".")
        self.from_files = self.from_files or ref.file is not None
        key = (ref.file or ref.module, top)
        if key not in self._known:
            self._known[key] = self._imported(ref, top)
        return self._known[key] + (f".{inner}" if inner else "")

    def _imported(self, ref: ClassRef, top: str) -> str:
        module = _module_of(ref)
        if module is None:
            return f"{self._loaded(ref.file or '')}.{top}"
        name = self.names.give(top)
        lines = self.installed if ref.file is None else self.lines
        lines.add(f"from {module} import {top}" + (f" as {name}" if name != top else ""))
        return name

    def _loaded(self, file: str) -> str:
        if file not in self.loads:
            self.loads[file] = self.names.give(file.removesuffix(".py"))
        return self.loads[file]

    def loading(self) -> list[str]:
        """The lines that load files."""
        return [f"{name} = load({plain(file)})" for file, name in self.loads.items()]


def _module_of(ref: ClassRef) -> str | None:
    """The module's name, or None where an import statement cannot say it."""
    if ref.file is None:
        return ref.module
    parts = ref.file.removesuffix("/__init__.py").removesuffix(".py").split("/")
    good = all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
    return ".".join(parts) if good and parts[0] not in _NEVER else None
