"""A small spec beside its classes, for the tests of ``check``: mistakes are made in it by replacing text."""

from __future__ import annotations

import pathlib

from click.testing import CliRunner, Result

from cgspec.checking import Checked, check
from cgspec.cli import cli

MODEL = """
class Stage:
    def __init__(self, size=4):
        self.size = size

    def forward(self, x, scale=1):
        return x

    def add(self, x, y):
        return x + y

    def several(self, *values, last=None):
        return values

    def named(self, *, x):
        return x

    def split(self, x):
        return x, x

    def constant(self, value=1):
        return value

    def reset(self):
        return None
"""

SPEC = """\
cgspec: 1
actors:
  a: {class: model.py:Stage}
  b: {class: model.py:Stage}
inputs: {x: 1}
tasks:
  t: {call: a.forward, in: {x: inputs.x}}
  u: {call: b.forward, in: {x: t}}
outputs: u
"""


def of(text: str | bytes, name: str = "spec.yaml", **options: object) -> Checked:
    raw = text if isinstance(text, bytes) else text.encode()
    pathlib.Path(name).write_bytes(raw)
    return check(name, **options)  # type: ignore[arg-type]


def spec(*changes: tuple[str, str], more: str = "") -> str:
    """The clean spec with some of its text replaced, each of which must be there."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text + more


def codes(checked: Checked) -> list[str]:
    return [finding.code for finding in checked.findings]


def place(checked: Checked, number: int = 0) -> str:
    return str(checked.findings[number].place)


def marked(checked: Checked, number: int = 0) -> str:
    """The characters over the caret."""
    found = checked.findings[number].place
    assert found is not None
    return found.excerpt[found.column - 1 : found.end_column - 1]


def run(*arguments: str, **options: object) -> Result:
    return CliRunner().invoke(cli, ["check", *arguments], standalone_mode=False, **options)  # type: ignore[arg-type]
