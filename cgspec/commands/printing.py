"""What the verbs share: the arguments of a spec, showing findings, writing files."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from cgspec.checking import Checked
from cgspec.errors import SpecError, UsageError
from cgspec.views import diagnostics
from cgspec.views.taming import printable

Function = TypeVar("Function", bound=Callable[..., Any])


def spec_options(function: Function) -> Function:
    """What every command that reads one spec takes."""
    for decorate in (
        click.option("--allow-import", multiple=True, metavar="PATTERN", help="Modules that the spec may import too."),
        click.option("--variant", metavar="NAME", help="Apply a variant of the spec."),
        click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
        click.argument("spec", metavar="SPEC"),
    ):
        function = decorate(function)
    return function


def paints(stream: Any) -> bool:
    """Whether a stream is a terminal that wants colour."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def say(text: str) -> None:
    """Prints text for people on stdout."""
    click.echo(printable(text))


def require(checked: Checked) -> None:
    """Shows what was found, on stderr.

    Raises:
        SpecError: there are errors among it.
    """
    shown = diagnostics.text(checked.findings, colour=paints(sys.stderr))
    if checked.errors:
        raise SpecError(checked.findings, shown)
    if any(finding.severity == "warning" for finding in checked.findings):
        click.echo(shown, err=True)


def write(path: pathlib.Path, data: bytes) -> None:
    """Writes a file, and makes the folders above it.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
