"""Imports the user's code the same way in driver, actors and the local engine, and shows only the user's frames.

``dir/model.py`` below the spec's root is the module ``cgspec_user.dir.model`` everywhere, so that two files of one name
never collide and values pickle by reference on both sides. The root is appended to ``sys.path``, never prepended.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import traceback
import types
from typing import Any

from cgspec import raynames
from cgspec.graph import ClassRef
from cgspec.values import FunctionRef

PACKAGE = "cgspec_user"
LONGEST = 2000
"""Characters of a message that are shown."""
_IMPORTLIB = os.path.dirname(os.path.abspath(importlib.__file__)) + os.sep
_CGSPEC = os.path.dirname(os.path.abspath(__file__)) + os.sep


class CannotLoad(Exception):
    """The user's code cannot be imported.

    Attributes:
        trace: the user's own frames, or the empty string.
    """

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace

    def __reduce__(self) -> tuple[type[CannotLoad], tuple[str, str]]:
        return type(self), (str(self), self.trace)


class _Root:
    """The root that is installed in this process, and what to take back when another one comes.

    Attributes:
        shown: what it is called to the user, whose copy it may be.
    """

    path: str | None = None
    shown: str | None = None
    appended = False
    before: frozenset[str] = frozenset()


def install(root: pathlib.Path, *, shown: str | None = None) -> None:
    """Makes files below ``root`` importable; what came from another root before is forgotten.

    Args:
        shown: the folder that tracebacks name instead, where ``root`` is a copy of it.
    """
    path = str(root.resolve())
    _Root.shown = shown
    if _Root.path == path and PACKAGE in sys.modules:
        return
    uninstall()
    _Root.before = frozenset(sys.modules)
    package = types.ModuleType(PACKAGE, "The user's code, rooted at the spec's folder.")
    package.__path__ = [path]
    package.__spec__ = importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
    package.__spec__.submodule_search_locations = package.__path__
    sys.modules[PACKAGE] = package
    _Root.path, _Root.appended = path, path not in sys.path
    if _Root.appended:
        sys.path.append(path)
    importlib.invalidate_caches()


def uninstall() -> None:
    """Forgets the root and every module that came from it."""
    if _Root.path is None:
        return
    below = _Root.path + os.sep
    for name, module in list(sys.modules.items()):
        own = name == PACKAGE or name.startswith(PACKAGE + ".")
        file = getattr(module, "__file__", None) or ""
        if own or (name not in _Root.before and file.startswith(below) and not file.startswith(_CGSPEC)):
            del sys.modules[name]
    if _Root.appended and _Root.path in sys.path:
        sys.path.remove(_Root.path)
    _Root.path, _Root.appended = None, False


def load(ref: ClassRef | FunctionRef) -> Any:
    """The user's class or function; a Ray actor class is unwrapped to the plain class.

    Raises:
        CannotLoad: its module cannot be imported, or has no such name.
    """
    found: Any = _module(ref)
    for part in ref.qualname.split("."):
        if not hasattr(found, part):
            raise CannotLoad(f"{ref.file or ref.module} has no {ref.qualname}")
        found = getattr(found, part)
    return raynames.plain_class(found)


def _module(ref: ClassRef | FunctionRef) -> types.ModuleType:
    try:
        return importlib.import_module(ref.module) if _plain(ref) else _by_file(ref)
    except (Exception, SystemExit) as error:
        what, trace = describe(error)
        raise CannotLoad(f"{ref.file or ref.module} cannot be imported: {what}", trace) from None


def _plain(ref: ClassRef | FunctionRef) -> bool:
    """Whether the module's name leads to the file by itself; ``model.v2.py`` does not."""
    return ref.file is None or "." not in ref.file.removesuffix(".py")


def _by_file(ref: ClassRef | FunctionRef) -> types.ModuleType:
    if ref.module in sys.modules:
        return sys.modules[ref.module]
    file = os.path.join(_Root.path or "", ref.file or "")
    spec = importlib.util.spec_from_file_location(ref.module, file)
    if spec is None or spec.loader is None or not os.path.isfile(file):
        raise ImportError(f"there is no file {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[ref.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(ref.module, None)
        raise
    return module


def describe(error: BaseException) -> tuple[str, str]:
    """What was raised, as ``Type: message``, and the traceback cut to the user's frames."""
    name = type(error).__qualname__
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} … ({len(text)} characters)"
    return (f"{name}: {text}" if text else name), _trace(error)


def _trace(error: BaseException) -> str:
    try:
        shown = traceback.TracebackException.from_exception(error)
        return _renamed("".join(_cut(shown).format()).rstrip())
    except Exception:
        return ""


def _renamed(text: str) -> str:
    """With the user's own folder in place of its copy."""
    if _Root.path is None or _Root.shown is None:
        return text
    return text.replace(_Root.path + os.sep, _Root.shown + os.sep)


def _cut(shown: traceback.TracebackException) -> traceback.TracebackException:
    for link in (shown.__cause__, shown.__context__):
        if link is not None:
            _cut(link)
    kept = [frame for frame in shown.stack if is_users(frame.filename)]
    shown.stack = traceback.StackSummary.from_list(kept)
    return shown


def stack_of(frame: types.FrameType) -> tuple[str, ...]:
    """What a running thread does in the user's code, outermost first, as ``file:line in function: code``."""
    frames = list(traceback.extract_stack(frame))
    ours = [place for place, summary in enumerate(frames) if summary.filename.startswith(_CGSPEC)]
    return tuple(_line(summary) for summary in frames[ours[-1] + 1 if ours else 0 :] if is_users(summary.filename))


def _line(frame: traceback.FrameSummary) -> str:
    return f"{_renamed(frame.filename)}:{frame.lineno} in {frame.name}" + (f": {frame.line}" if frame.line else "")


def is_users(filename: str) -> bool:
    """Whether a frame is the user's or a library's that he called: not cgspec's, Ray's or the import system's."""
    if filename.startswith((_CGSPEC, _IMPORTLIB, "<frozen ")):
        return False
    ray = getattr(sys.modules.get("ray"), "__file__", None)
    return not (ray and filename.startswith(os.path.dirname(ray) + os.sep))
