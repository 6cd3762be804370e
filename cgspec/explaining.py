"""What ``cgspec explain`` says: one Markdown file for each code, with a wrong and a right spec."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from cgspec.diagnostics import suggest
from cgspec.errors import UsageError


@dataclass(frozen=True)
class Explanation:
    """One code; ``text`` is Markdown, its first line ``# code: summary``."""

    code: str
    summary: str
    text: str


def every() -> tuple[Explanation, ...]:
    """All explanations, by code."""
    folder = resources.files("cgspec") / "explanations"
    files = sorted((item for item in folder.iterdir() if item.name.endswith(".md")), key=lambda item: item.name)
    return tuple(_read(item.name.removesuffix(".md"), item.read_text(encoding="utf-8")) for item in files)


def explain(code: str) -> Explanation:
    """The explanation of a code.

    Raises:
        UsageError: there is no such code.
    """
    known = {item.code: item for item in every()}
    if code not in known:
        raise UsageError(f"there is no code {code}; {suggest(code, known, noun='codes')}")
    return known[code]


def _read(code: str, text: str) -> Explanation:
    head = text.partition("\n")[0]
    return Explanation(code, head.partition(": ")[2], text.rstrip())
