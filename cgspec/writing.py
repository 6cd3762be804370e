"""Plain data as YAML that a strict reader of YAML 1.2 reads back as the same."""

from __future__ import annotations

import re
from typing import Any

import yaml

_NUMBER_LIKE = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+")


class _Dumper(yaml.SafeDumper):
    """Writes what a reader of YAML 1.2 reads back: text that looks like a number there is quoted."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = '"' if _NUMBER_LIKE.fullmatch(text) or "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_float_short(self, number: float) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:float", _float_text(number))


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(float, _Dumper.represent_float_short)


def _float_text(number: float) -> str:
    """The shortest text that reads back the same, with a dot: without one PyYAML would add a tag."""
    special = {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}
    text = special.get(repr(number), repr(number))
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else text


def as_yaml(data: Any) -> str:
    """Raw spec data as YAML that says the same."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
