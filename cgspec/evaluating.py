"""Makes a value of the spec, in the driver or in an actor, and says what kept it from being made."""

from __future__ import annotations

from typing import Any

from cgspec import usercode
from cgspec.values import CannotMake, Scope, Value


class Unmade(Exception):
    """A value that cannot be made; the message is a sentence for the user.

    Attributes:
        kind: as in ``errors.Failure``: ``input`` where the spec asks for what there is not, ``import`` or ``raised``
            where the user's function is to blame.
        trace: the user's own frames, or the empty string.
    """

    def __init__(self, kind: str, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.kind, self.trace = kind, trace


def evaluate(value: Value, what: str, scope: Scope) -> Any:
    """The Python object.

    Args:
        what: what it is, for the sentence.

    Raises:
        Unmade: it cannot be made.
    """
    when = "" if scope.i is None else f" for iteration {scope.i}"
    try:
        return value.make(scope)
    except CannotMake as error:
        raise Unmade("input", f"{what} cannot be made{when}: {error}") from None
    except usercode.CannotLoad as error:
        raise Unmade("import", f"{what} cannot be made: {error}", error.trace) from None
    except (Exception, SystemExit) as error:
        said, trace = usercode.describe(error)
        raise Unmade("raised", f"making {what}{when} raised {said}", trace) from None
