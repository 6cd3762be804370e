"""Keeps secrets out of what a run leaves: values of ``$env``, and texts under keys that look secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

HIDDEN = "<redacted>"
SECRET_WORDS = frozenset(
    [
        "token",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "key",
        "apikey",
        "accesskey",
        "privatekey",
        "authtoken",
        "bearer",
        "cookie",
    ]
)
"""A key is secret if one of its words (``HF_TOKEN``, ``api-key``, ``dbPassword``) is one of these."""
STRONG_WORDS = SECRET_WORDS - {"token", "key"}
"""Words under which a number is hidden too: ``key: 3`` and ``token: 5`` are ordinary arguments."""
REFERENCE_KEYS = frozenset(
    ["in", "outputs", "call", "class", "allreduce", "allgather", "reducescatter", "members", "axes", "axis", "sweep"]
)
"""Keys of a spec whose contents are names, never values."""
SHORTEST = 4
"""Shorter secrets are hidden where they stand, but not searched for elsewhere: ``1`` would hide half a record."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENTRY = re.compile(
    r"""(?P<key>["']?(?P<name>[A-Za-z_][\w.-]*)["']?\s*:\s+)(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#,{}\[\]&*!|>][^#,{}\[\]\n]*)"""
)


def looks_secret(key: object, words: frozenset[str] = SECRET_WORDS) -> bool:
    """Whether a key's value should not be shown."""
    return isinstance(key, str) and any(word.lower() in words for word in _WORD.findall(key))


class Redactor:
    """Hides the secrets of one spec.

    Args:
        resolved: the spec's raw data after include, variants and overrides.
        overrides: dotted paths and values of the command line.
    """

    def __init__(self, resolved: Any, overrides: dict[str, Any] | None = None) -> None:
        found = {*_secrets(resolved), *_secrets(_by_last_key(overrides or {}))}
        self._known = sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._known))) if self._known else None

    @property
    def knows_any(self) -> bool:
        """Whether there is any secret to look for."""
        return self._pattern is not None

    def text(self, text: str) -> str:
        """Text without the secrets that are known."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def data(self, data: Any) -> Any:
        """JSON data without the secrets that are known, in keys and values."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {self.text(key) if isinstance(key, str) else key: self.data(value) for key, value in data.items()}
        return [self.data(item) for item in data] if isinstance(data, (list, tuple)) else data

    def yaml(self, text: str) -> str:
        """A spec's text, with what stands under secret keys hidden as well, however short it is."""

        def hide(match: re.Match[str]) -> str:
            return match["key"] + f'"{HIDDEN}"' if _hides(match["name"], _scalar(match["value"])) else match[0]

        return self.text(_ENTRY.sub(hide, text))

    def spec(self, data: Any) -> Any:
        """Raw spec data in which a secret became ``{$env: NAME}``: valid, and it says what it needs."""
        return self._spec(data, "")

    def _spec(self, data: Any, key: object) -> Any:
        if isinstance(data, dict):
            return {name: value if name in REFERENCE_KEYS else self._spec(value, name) for name, value in data.items()}
        if isinstance(data, list):
            return [self._spec(item, key) for item in data]
        if _hides(key, data):
            return {"$env": re.sub(r"\W", "_", str(key)).upper()}
        return self.text(data) if isinstance(data, str) else data

    def overrides(self, overrides: dict[str, Any]) -> dict[str, Any]:
        """Overrides of the command line, to be shown."""
        return {
            path: HIDDEN if _hides(path.split(".")[-1], value) else self.data(value)
            for path, value in overrides.items()
        }


def _hides(key: object, value: object) -> bool:
    if isinstance(value, str):
        return bool(value) and not value.startswith("$") and looks_secret(key)
    return value is not None and not isinstance(value, (bool, dict, list)) and looks_secret(key, STRONG_WORDS)


def _scalar(text: str) -> object:
    """What a scalar's source stands for, as far as it matters here."""
    text = text.strip()
    if text[:1] in ("'", '"'):
        return text[1:-1]
    try:
        return float(text)
    except ValueError:
        return None if text in ("null", "~", "true", "false") else text


def _by_last_key(overrides: dict[str, Any]) -> list[dict[str, Any]]:
    return [{path.split(".")[-1]: value} for path, value in overrides.items()]


def _secrets(data: Any, key: object = "") -> Iterator[str]:
    """Every secret that the data holds or names."""
    if isinstance(data, dict):
        if isinstance(name := data.get("$env"), str):
            yield from _env(name, data.get("default"))
        for inner, value in data.items():
            if inner not in REFERENCE_KEYS:
                yield from _secrets(value, inner)
    elif isinstance(data, list):
        yield from _each(data, key)
    elif _hides(key, data):
        yield str(data)


def _each(items: Iterable[Any], key: object) -> Iterator[str]:
    for item in items:
        yield from _secrets(item, key)


def _env(name: str, default: object) -> Iterator[str]:
    value = os.environ.get(name)
    if value and value != default:
        yield value
