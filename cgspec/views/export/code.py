"""Python expressions for the values of a spec; put together as syntax trees, so that no text of the user's is code."""

from __future__ import annotations

import ast
import io
import keyword
import math
import tokenize
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cgspec.classes import ClassRef
from cgspec.values import DTYPES, Call, Device, Entries, Expr, Feedback, Items, Literal, Marked, Text, Value


def joined(template: str, **parts: str) -> str:
    """The template with its names replaced by expressions, with the parentheses that they need."""
    trees = {name: _tree(code) for name, code in parts.items()}
    return _shown(_Replacer(trees).visit(_tree(template)))


def _shown(tree: ast.AST) -> str:
    """The expression's text, with double quotes where that needs no backslash."""
    code = ast.unparse(tree)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(code).readline)) if "'" in code else []):
        if token.type == tokenize.STRING:
            code = code[: token.start[1]] + plain(ast.literal_eval(token.string)) + code[token.end[1] :]
    return code


def _tree(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


class _Replacer(ast.NodeTransformer):
    """Replaces dotted names."""

    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.parts.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self.parts.get(ast.unparse(node)) or self.generic_visit(node)


def plain(data: Any) -> str:
    """The expression of plain data."""
    if isinstance(data, float) and not math.isfinite(data):
        return f'float("{data}")'
    if isinstance(data, list):
        return f"[{', '.join(map(plain, data))}]"
    if isinstance(data, tuple):
        return f"({', '.join(map(plain, data))}{',' if len(data) == 1 else ''})"
    if isinstance(data, dict):
        return "{" + ", ".join(f"{plain(key)}: {plain(item)}" for key, item in data.items()) + "}"
    if isinstance(data, str) and '"' not in (shown := repr(data)):
        return f'"{shown[1:-1]}"' if shown.startswith("'") else shown
    return repr(data)


def call(function: str, positional: Sequence[str], named: Mapping[str, str], last: Sequence[str] = ()) -> str:
    """A call; names that are no identifiers go through ``**``."""
    simple = [f"{name}={code}" for name, code in named.items() if _is_keyword_argument(name)]
    rest = {name: code for name, code in named.items() if not _is_keyword_argument(name)}
    spread = ["**{" + ", ".join(f"{plain(name)}: {code}" for name, code in rest.items()) + "}"] if rest else []
    return f"{function}({', '.join([*positional, *simple, *spread, *last])})"


def _is_keyword_argument(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


class Coder:
    """Writes values as expressions.

    Attributes:
        function: the name of a user's function in the script.
        earlier: the expression of an output, by its name, of the iteration whose number is given.
        needs: modules that the expressions use: ``os``, ``torch``.
    """

    def __init__(self, function: Callable[[ClassRef], str], earlier: Callable[[str, str], str]) -> None:
        self.function = function
        self.earlier = earlier
        self.needs: set[str] = set()

    def of(self, value: Value, *, device: str = "cpu") -> str:
        """The expression; ``i`` in it is the iteration."""
        if "torch" in value.uses:
            self.needs.add("torch")
        if isinstance(value, Literal):
            return plain(value.data)
        if isinstance(value, Items):
            return f"[{', '.join(self.of(item, device=device) for item in value.items)}]"
        if isinstance(value, Entries):
            pairs = (f"{plain(key)}: {self.of(item, device=device)}" for key, item in value.entries)
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, Device):
            return plain(device)
        return self._computed(value, device)

    def _computed(self, value: Value, device: str) -> str:
        if isinstance(value, Expr):
            return self._expression(value, device)
        if isinstance(value, Text):
            parts = [part for part in value.parts if not (isinstance(part, Literal) and part.data == "")]
            return " + ".join(self._text(part, device) for part in parts)
        if isinstance(value, Call):
            return self._call(value, device)
        if isinstance(value, Feedback):
            return self._feedback(value, device)
        assert isinstance(value, Marked), f"a new kind of value: {type(value).__name__}"
        return _MARKED[value.key](self, value, device)

    def _text(self, part: Value, device: str) -> str:
        code = self.of(part, device=device)
        return code if isinstance(part, Literal) and isinstance(part.data, str) else f"str({code})"

    def _expression(self, value: Expr, device: str) -> str:
        tree = _Tuples().visit(_tree(value.expression.text.strip()))
        known = {name: _tree(self.of(part, device=device)) for name, part in value.known.items()}
        known["device"] = _tree(plain(device)) if "device" not in known else known["device"]
        dtypes = {name: _tree(f"torch.{name}") for name in DTYPES if name not in known}
        used = {name: tree for name, tree in {**dtypes, **known}.items() if name in value.expression.names}
        return _shown(_Replacer(used).visit(tree))

    def _call(self, value: Call, device: str) -> str:
        name, arguments = self.function(value.function), value.arguments
        if isinstance(arguments, Literal) and isinstance(arguments.data, list | tuple):
            return call(name, [plain(item) for item in arguments.data], {})
        if isinstance(arguments, Literal):
            return call(name, [], {key: plain(item) for key, item in arguments.data.items()})
        if isinstance(arguments, Entries):
            return call(name, [], {key: self.of(item, device=device) for key, item in arguments.entries})
        if isinstance(arguments, Items):
            return call(name, [self.of(item, device=device) for item in arguments.items], {})
        return call(name, [f"*{self.of(arguments, device=device)}"], {})

    def _feedback(self, value: Feedback, device: str) -> str:
        earlier = self.earlier(value.output, f"i - {value.lag}")
        return joined(f"earlier if i >= {value.lag} else first", earlier=earlier, first=self.of(value.first))

    def dtype(self, value: Value, device: str) -> str:
        """The expression of a dtype that is named, or is one already."""
        self.needs.add("torch")
        if isinstance(value, Literal) and value.data in DTYPES:
            return f"torch.{value.data}"
        code = self.of(value, device=device)
        return code if "torch" in value.uses else joined("getattr(torch, code)", code=code)

    def shape(self, value: Value, device: str) -> str:
        if isinstance(value, Literal):
            return plain(tuple(value.data))
        code = self.of(value, device=device)
        return f"({code[1:-1]},)" if isinstance(value, Items) else code

    def argument(self, value: Marked, name: str, default: Any, device: str) -> str:
        return self.of(value.arguments[name], device=device) if name in value.arguments else plain(default)


class _Tuples(ast.NodeTransformer):
    """A list in an expression is a tuple."""

    def visit_List(self, node: ast.List) -> ast.AST:
        return self.generic_visit(ast.Tuple(node.elts, ast.Load()))


def _dtype(coder: Coder, value: Marked, device: str) -> str:
    return coder.dtype(value.arguments["$dtype"], device)


def _tensor(coder: Coder, value: Marked, device: str) -> str:
    shape, dtype = coder.shape(value.arguments["shape"], device), coder.dtype(value.arguments["dtype"], device)
    fill = coder.argument(value, "fill", 0, device)
    return f"torch.full({shape}, {fill}, dtype={dtype})"


_GENERATOR = "generator=torch.Generator().manual_seed(seed)"
_RANDOM = f"""(
    torch.randn(shape, {_GENERATOR}, dtype=dtype) if dtype.is_complex
    else torch.randn(shape, {_GENERATOR}).to(dtype) if dtype.is_floating_point
    else torch.randint(0, 2 if dtype == torch.bool else 100, shape, {_GENERATOR}).to(dtype)
)"""
"""Where the dtype is known only when the script runs."""


def _random(coder: Coder, value: Marked, device: str) -> str:
    """As ``values`` makes it: standard normal, or 0 or 1 for bool, or in [0, 100)."""
    shape, dtype = coder.shape(value.arguments["shape"], device), coder.dtype(value.arguments["dtype"], device)
    seed = coder.argument(value, "seed", 0, device)
    generator = f"generator=torch.Generator().manual_seed({seed})"
    normal = f"torch.randn({shape}, {generator}, dtype={{}})"
    whole = f"torch.randint(0, {{}}, {shape}, {generator}).to({dtype})"
    name = dtype.removeprefix("torch.")
    if name not in DTYPES:
        parts = {"shape": shape, "dtype": dtype, "seed": seed}
        return joined(_RANDOM, **parts)
    if name.startswith("complex") or name in ("float32", "float"):
        return normal.format(dtype)
    if name.startswith(("float", "bfloat", "half", "double")):
        return f"{normal.format('torch.float32')}.to({dtype})"
    return whole.format(2 if name == "bool" else 100)


def _env(coder: Coder, value: Marked, device: str) -> str:
    coder.needs.add("os")
    name = coder.of(value.arguments["$env"], device=device)
    if "default" in value.arguments:
        return f"os.environ.get({name}, {coder.argument(value, 'default', None, device)})"
    return f"os.environ[{name}]"


def _count(coder: Coder, value: Marked, device: str) -> str:
    start, step = coder.argument(value, "from", 0, device), coder.argument(value, "step", 1, device)
    scaled = "i" if step == "1" else "step * i"
    template = scaled if start == "0" else f"start + {scaled}"
    return joined(template, start=start, step=step)


def _values(coder: Coder, value: Marked, device: str) -> str:
    values, cycle = coder.of(value.arguments["$values"], device=device), coder.argument(value, "cycle", False, device)
    if cycle == "False":
        return joined("values[i]", values=values)
    given = value.arguments["$values"]
    count = str(len(given.data)) if isinstance(given, Literal) else f"len({values})"
    return joined("values[i % count]", values=values, count=count)


_MARKED: dict[str, Callable[[Coder, Marked, str], str]] = {
    "$dtype": _dtype,
    "$tensor": _tensor,
    "$random": _random,
    "$env": _env,
    "$count": _count,
    "$values": _values,
}
