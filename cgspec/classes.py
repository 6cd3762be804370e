"""The texts after ``class:`` and ``$call:`` as references to what they name; nothing is opened or imported."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

USER_PACKAGE = "cgspec_user"
"""The synthetic package under which files below the spec's root are imported."""

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")


@dataclass(frozen=True, slots=True)
class ClassRef:
    """Where a user's class or function lives.

    Attributes:
        module: the name that it is imported under (``cgspec_user.dir.model`` for a file below the spec's root).
        qualname: its name in the module.
        file: the file relative to the root, with ``/``; None for an installed package.
    """

    module: str
    qualname: str
    file: str | None

    def __str__(self) -> str:
        return f"{self.file or self.module}:{self.qualname}"


class BadReference(ValueError):
    """The text names nothing.

    Attributes:
        code: ``bad-class`` or ``untrusted-class``.
        fix: what to write instead.
    """

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix


def parse(text: str, noun: str = "Class") -> ClassRef:
    """``dir/model.py:Stage`` or ``package.module:Stage`` as a reference.

    Args:
        noun: ``Class`` or ``function``, for the message.

    Raises:
        BadReference: it has neither form, or the file is outside the spec's folder.
    """
    where, colon, qualname = text.partition(":")
    fix = f"write file.py:{noun} or package.module:{noun}"
    if not colon or not _DOTTED.match(qualname):
        raise BadReference("bad-class", f"{text[:80]!r} names no {noun.lower()}", fix)
    if where.endswith(".py") or "/" in where or "\\" in where:
        return ClassRef(_module_of(text, where, fix), qualname, posixpath.normpath(where))
    if not _DOTTED.match(where):
        raise BadReference("bad-class", f"{where[:80]!r} is neither a .py file nor a module's name", fix)
    return ClassRef(where, qualname, None)


def _module_of(text: str, where: str, fix: str) -> str:
    """The module name of a file below the root."""
    path = posixpath.normpath(where)
    if path.startswith(("../", "/")) or "\\" in where or "\0" in where:
        message = f"{where[:80]} is outside the spec's folder"
        raise BadReference("untrusted-class", message, "move it below the spec's folder, or name an installed module")
    if not path.endswith(".py"):
        raise BadReference("bad-class", f"{where[:80]!r} is no .py file", fix)
    parts = path[: -len(".py")].split("/")
    if any("." in part or not part for part in parts):
        raise BadReference(
            "bad-class", f"{path} cannot be imported: a name in it has a dot", "rename the file or folder"
        )
    return ".".join([USER_PACKAGE, *parts])
