"""Reads raw YAML data into ``values``, collecting a finding for whatever cannot be one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from typing import Literal as Choice

from cgspec import expressions, values
from cgspec.diagnostics import Finding, Path, nearest, suggest
from cgspec.making import Maker
from cgspec.values import DTYPES, MAKERS, SPECIAL, CannotMake, FunctionRef, Literal, Value
from cgspec.weights import weight

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
RESERVED = frozenset({"inputs", "index", "size", "device", "i"})
"""Names that vars, axes, actors, tasks and inputs cannot have."""

MAX_DOLLARS = 1000
"""Dollar signs in one text."""
MAX_FILLED = 1_000_000
"""What all vars may come to where they are used, lists and maps written out."""

_DOLLAR = re.compile(r"\$\$|\$\{([^{}]*)\}|\$")
KEYS = (*MAKERS, *SPECIAL, "$each")
"""Every ``$key`` that a map may have as a value."""


@dataclass(frozen=True, slots=True)
class Lost(Value):
    """What could not be read: nothing more is said of what it is part of."""

    uses: frozenset[str] = frozenset({"lost"})

    def make(self, scope: values.Scope) -> Any:
        raise CannotMake("this value could not be read")


LOST = Lost()

_SHORT_DTYPES = {"fp": "float", "f": "float", "bf": "bfloat", "i": "int", "u": "uint", "fp8": "float8_e4m3fn"}


def offer_dtype(name: str) -> str:
    """A sentence that offers the dtype that was most likely meant (``fp16``: ``float16``)."""
    letters = name.rstrip("0123456789")
    long = _SHORT_DTYPES.get(name, _SHORT_DTYPES.get(letters, "") + name[len(letters) :])
    return f"did you mean {long}?" if long in DTYPES else suggest(name, DTYPES, noun="dtypes")


class ValueReader:
    """Parses values in the light of the spec's vars.

    Attributes:
        variables: the vars, already parsed.
        later: names of vars that are known, but not yet read; None where nothing is known of the vars.
        faulty: names of vars that could not be read.
        function: turns the text of ``$call`` and the path where it stands into a reference, or raises CannotMake.
        findings: what was wrong so far.
    """

    def __init__(self, variables: Mapping[str, Value], function: Callable[[str, Path], FunctionRef]) -> None:
        self.variables = dict(variables)
        self.function = function
        self.later: tuple[str, ...] | None = ()
        self.faulty: set[str] = set()
        self.findings: list[Finding] = []
        self._fill = 0

    def read(self, data: Any, path: Path) -> Value:
        """The value that ``data`` says; a faulty part is lost, and a finding."""
        if isinstance(data, str):
            return self._text(data, path) if "$" in data else Literal(data)
        if isinstance(data, list):
            return values.join_items([self.read(item, (*path, n)) for n, item in enumerate(data)])
        if isinstance(data, dict):
            marks = [key for key in data if isinstance(key, str) and key.startswith("$") and not key.startswith("$$")]
            if marks:
                return self._guarded(lambda: self._marked(marks[0], data, path), path)
            entries = [(_unescape(key), self.read(value, (*path, key))) for key, value in data.items()]
            return values.join_entries(entries)
        return Literal(data)

    def constant(self, data: Any, path: Path) -> Any:
        """Plain data for a place that allows nothing else, with vars filled in; ``LOST`` where it is none."""
        value = self.read(data, path)
        if isinstance(value, Literal):
            return value.data
        if "lost" not in value.uses:
            shown = ", ".join(sorted(value.uses)) or "a value"
            fix = "write it out, or use a var; what changes from iteration to iteration is an input"
            self.report("not-constant", f"a constant is needed here, and this uses {shown}", path, fix=fix)
        return LOST

    def report(
        self,
        code: str,
        message: str,
        path: Path,
        *,
        span: tuple[int, int] | None = None,
        fix: str = "",
        on: Choice["key", "value"] = "value",
    ) -> None:
        self.findings.append(Finding(code, message, path, span=span, fix=fix, on=on))

    def _guarded(self, read: Callable[[], Value], path: Path) -> Value:
        try:
            return read()
        except CannotMake as error:
            self.report("bad-value", str(error), path)
            return LOST

    def _text(self, text: str, path: Path) -> Value:
        if text[0] == "$" and text[1:2] not in ("$", "{"):
            return self._guarded(lambda: self._name(text[1:], path, (0, len(text))), path)
        if text.count("$") > MAX_DOLLARS:
            self.report("bad-value", f"a text has at most {MAX_DOLLARS} dollar signs", path)
            return LOST
        return self._guarded(lambda: values.join_text(list(self._parts(text, path))), path)

    def _parts(self, text: str, path: Path) -> Iterator[Value]:
        end = 0
        for match in _DOLLAR.finditer(text):
            yield Literal(text[end : match.start()])
            end = match.end()
            if match.group() == "$$":
                yield Literal("$")
            elif match.group(1) is not None:
                yield self._name(match.group(1).strip(), path, match.span())
            else:
                fix = "write ${name} for a var, or $$ for a dollar sign"
                message = "a single `$` inside text stands for nothing"
                self.report("unknown-var", message, path, span=match.span(), fix=fix)
        yield Literal(text[end:])

    def _name(self, name: str, path: Path, span: tuple[int, int]) -> Value:
        """What ``$name`` stands for."""
        if name in self.variables:
            return self._filled(name, path)
        if name == "device":
            return values.Device()
        if name == "i" or (name.startswith(("index.", "size.")) and NAME.match(name.partition(".")[2])):
            return values.join_expr(expressions.parse(name), {})
        if self._is_known_fault(name, path, span):
            return LOST
        offer = suggest(name, self.variables, noun="vars")
        fix = "" if NAME.match(name) else "write $$ for a dollar sign"
        self.report("unknown-var", f"there is no var {name}; {offer}", path, span=span, fix=fix)
        return LOST

    def _filled(self, name: str, path: Path) -> Value:
        """A var where it is used; vars of vars must not grow without end, which is said once."""
        value = self.variables[name]
        if not isinstance(value, Literal) or isinstance(value.data, (list, dict, str)):
            if self._fill > MAX_FILLED:
                return LOST
            self._fill += weight(value, MAX_FILLED)
            if self._fill > MAX_FILLED:
                fix = "use fewer or shorter vars within vars"
                self.report("bad-value", f"the vars become more than {MAX_FILLED} values here", path, fix=fix)
                return LOST
        return value

    def _is_known_fault(self, name: str, path: Path, span: tuple[int, int]) -> bool:
        """Whether a name is that of a var which cannot be used here; says so where that is not said already."""
        if self.later is None or name in self.faulty:
            return True
        if name in self.later:
            message = f"{name} is a var that comes after this one"
            fix = f"write {name} above {path[1]}: a var may use the vars above it"
            if name == path[1]:
                message, fix = f"the var {name} uses itself", "write its value"
            self.report("unknown-var", message, path, span=span, fix=fix)
        return name in self.later

    def _marked(self, key: str, data: dict[Any, Any], path: Path) -> Value:
        if key == "$expr":
            return self._expr(data, path)
        if key == "$call":
            return self._call(data, path)
        if key == "$feedback":
            return self._feedback(data, path)
        if key == "$each":
            fix = "write NAME: {$each: value, axes: {mb: 4}} under inputs"
            self.report("misplaced-value", "$each stands only directly under an input's name", path, fix=fix)
            return LOST
        maker = MAKERS.get(key)
        if maker is None:
            offer = suggest(key, KEYS, noun="values")
            self.report("unknown-value", f"{key} is no value that cgspec makes; {offer}", (*path, key), on="key")
            return LOST
        return self._made(key, maker, data, path)

    def _made(self, key: str, maker: Maker, data: dict[Any, Any], path: Path) -> Value:
        inner, inner_path = data, path
        if maker.nested:
            self._check_keys(key, data, (key,), (), path, inside=(*maker.required, *maker.optional))
            inner, inner_path = data[key], (*path, key)
            if inner is None and not maker.required:
                inner = {}
            if not isinstance(inner, dict):
                needed = ", ".join((*maker.required, *maker.optional))
                self.report("wrong-type", f"{key} takes a map with {needed}", inner_path)
                return LOST
            complete = self._check_keys(key, inner, maker.required, maker.optional, inner_path)
        else:
            complete = self._check_keys(key, inner, (key,), maker.optional, inner_path)
        arguments = {str(name): self.read(value, (*inner_path, name)) for name, value in inner.items()}
        if not complete or not self._check_arguments(key, arguments, inner_path):
            return LOST
        uses = frozenset().union(maker.uses, *(value.uses for value in arguments.values()))
        return values.Marked(key, arguments, uses)

    def _check_arguments(self, key: str, arguments: Mapping[str, Value], path: Path) -> bool:
        """Whether the literal arguments have the types that the maker needs."""
        good = True
        for name, value in arguments.items():
            wanted = ARGUMENT_TYPES.get((key, name))
            if wanted is None or not isinstance(value, Literal):
                continue
            noun, fits = wanted
            if not fits(value.data):
                good = False
                if noun == "a dtype":
                    said = str(value.data)
                    self.report("unknown-dtype", f"there is no dtype {said}; {offer_dtype(said)}", (*path, name))
                else:
                    owner = f"{name} of {key}" if name != key else key
                    self.report("wrong-type", f"{owner} is {noun}, not {value.data!r}", (*path, name))
        return good

    def _check_keys(
        self,
        key: str,
        data: dict[Any, Any],
        required: tuple[str, ...],
        optional: tuple[str, ...],
        path: Path,
        inside: tuple[str, ...] = (),
    ) -> bool:
        known = (*required, *optional)
        choices = [name for name in known if name != key] or [key]
        for name in data:
            if name not in known:
                message = f"{key} takes no {name}; {suggest(str(name), choices, noun='it takes')}"
                if name in inside:
                    message = f"{name} belongs inside the map of {key}, not beside it"
                self.report("unknown-key", message, (*path, name), on="key")
        meant = {nearest(str(name), known) for name in data if name not in known}
        missing = [name for name in required if name not in data]
        if any(name not in meant for name in missing):
            example = ", ".join(f"{name}: .." for name in required)
            self.report("missing-key", f"{key} needs {' and '.join(missing)}", path, fix=f"write {{{example}}}")
        return not missing

    def _expr(self, data: dict[Any, Any], path: Path) -> Value:
        self._check_keys("$expr", data, ("$expr",), (), path)
        text, inner = data["$expr"], (*path, "$expr")
        if isinstance(text, (int, float)) and not isinstance(text, bool):
            text = str(text)
        if not isinstance(text, str):
            self.report("wrong-type", "$expr takes text", inner)
            return LOST
        try:
            expression = expressions.parse(text)
        except expressions.ExpressionError as error:
            fix = "an expression is arithmetic on numbers, text, tuples, vars and i; {$call: ..} calls a function"
            self.report("bad-expression", f"`{text[:60]}` is no expression: {error}", inner, span=error.span, fix=fix)
            return LOST
        known = {name: self._filled(name, path) for name in expression.names if name in self.variables}
        unknown = [name for name in expression.names if name not in known and not _deferred(name)]
        for name in unknown:
            if self._is_known_fault(name, inner, expression.names[name]):
                continue
            offer = suggest(name, [*self.variables, "i"], noun="names")
            message = f"{name} is not known in an expression; {offer}"
            self.report("unknown-var", message, inner, span=expression.names[name])
        return LOST if unknown else self._guarded(lambda: values.join_expr(expression, known), inner)

    def _call(self, data: dict[Any, Any], path: Path) -> Value:
        self._check_keys("$call", data, ("$call",), ("args",), path)
        if not isinstance(data["$call"], str):
            self.report("wrong-type", "$call takes `file.py:function` or `package.module:function`", (*path, "$call"))
            return LOST
        arguments = self.read(data.get("args") or {}, (*path, "args"))
        if isinstance(data.get("args", {}), (str, int, float)):
            self.report("wrong-type", "args of $call is a map (by name) or a list (by position)", (*path, "args"))
            return LOST
        return values.Call(self.function(data["$call"], (*path, "$call")), arguments, arguments.uses | {"call"})

    def _feedback(self, data: dict[Any, Any], path: Path) -> Value:
        complete = self._check_keys("$feedback", data, ("$feedback", "first"), ("lag",), path)
        lag = self.constant(data.get("lag", 1), (*path, "lag"))
        if not isinstance(data["$feedback"], str):
            self.report("wrong-type", "$feedback takes the name of an output", (*path, "$feedback"))
            complete = False
        if lag is LOST:
            complete = False
        elif not isinstance(lag, int) or isinstance(lag, bool) or lag < 1:
            self.report("wrong-type", f"lag is a whole number of iterations, at least 1, not {lag!r}", (*path, "lag"))
            complete = False
        if not complete:
            return LOST
        first = self.read(data["first"], (*path, "first"))
        return values.Feedback(data["$feedback"], lag, first, first.uses | {"i", "feedback"})


def _deferred(name: str) -> bool:
    return name in ("i", "device") or name in DTYPES or name.startswith(("index.", "size."))


def _unescape(key: Any) -> Any:
    return key.replace("$$", "$") if isinstance(key, str) and "$$" in key else key


def _whole(data: Any) -> bool:
    return isinstance(data, int) and not isinstance(data, bool)


def _number(data: Any) -> bool:
    return isinstance(data, (int, float)) and not isinstance(data, bool)


def _shape(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and all(_whole(size) and 0 <= size < 2**40 for size in data)


_SHAPE = ("a list of whole numbers", _shape)
_DTYPE = ("a dtype", lambda data: isinstance(data, str) and data in DTYPES)
_NUMBER = ("a number", lambda data: _number(data))
_BOOL = ("true or false", lambda data: isinstance(data, bool))

ARGUMENT_TYPES: dict[tuple[str, str], tuple[str, Callable[[Any], bool]]] = {
    ("$dtype", "$dtype"): _DTYPE,
    ("$tensor", "shape"): _SHAPE,
    ("$tensor", "dtype"): _DTYPE,
    ("$tensor", "fill"): ("a number", lambda data: _number(data) or isinstance(data, bool)),
    ("$random", "shape"): _SHAPE,
    ("$random", "dtype"): _DTYPE,
    ("$random", "seed"): ("a whole number", lambda data: _whole(data) and 0 <= data < 2**63),
    ("$env", "$env"): ("a name", lambda data: isinstance(data, str) and bool(data)),
    ("$count", "from"): _NUMBER,
    ("$count", "step"): _NUMBER,
    ("$values", "$values"): ("a list with at least one value", lambda data: isinstance(data, list) and bool(data)),
    ("$values", "cycle"): _BOOL,
}
"""(``$key``, argument) → what it is, and whether plain data fits."""
