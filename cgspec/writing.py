"""Plain data as YAML that a strict reader of YAML 1.2 reads back as the same."""

from __future__ import annotations

import re
from typing import Any

import yaml

_NUMBER_LIKE = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+")
_BREAK = re.compile("[\n\x85\u2028\u2029]")
"""What PyYAML takes for a line's end, so that in single quotes it reads as a space."""


class _Dumper(yaml.SafeDumper):
    """Writes what a reader of YAML 1.2 reads back: text that looks like a number there is quoted."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = '"' if _NUMBER_LIKE.fullmatch(text) or _BREAK.search(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_float_short(self, number: float) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:float", _float_text(number))


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(float, _Dumper.represent_float_short)


_SPECIAL = {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}


def _float_text(number: float) -> str:
    """The shortest text that reads back the same, with a dot: without one PyYAML would add a tag."""
    text = _SPECIAL.get(repr(number), repr(number))
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else text


_WORD = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_ ./-]*[A-Za-z0-9_./-])?\Z")
"""Text that can stand without quotes anywhere, but for the words of ``_TAKEN``."""
_TAKEN = frozenset({"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE"})
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_flow(data: Any) -> str:
    """Raw spec data in one line of flow YAML that is read back as the same."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return str(data).lower()
    if isinstance(data, float):
        return _SPECIAL.get(repr(data), repr(data))
    if isinstance(data, str):
        return data if _WORD.match(data) and data not in _TAKEN else quoted(data)
    if isinstance(data, list):
        return f"[{', '.join(map(as_flow, data))}]"
    if isinstance(data, dict):
        return "{" + ", ".join(f"{as_flow(key)}: {as_flow(value)}" for key, value in data.items()) + "}"
    assert isinstance(data, int), data
    return str(data)


def quoted(text: str) -> str:
    """Text in double quotes; what is no printable character is escaped."""
    return '"' + "".join(_ESCAPES.get(char) or _character(char) for char in text) + '"'


def _character(char: str) -> str:
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def as_yaml(data: Any) -> str:
    """Raw spec data as YAML that says the same."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
