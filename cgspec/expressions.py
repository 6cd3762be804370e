"""Arithmetic of ``$expr``: a whitelisted syntax tree with bounds on size, compiled to closures, never ``eval``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

MAX_TEXT = 2000
MAX_NODES = 400
MAX_DEPTH = 40
MAX_BITS = 4096
MAX_LENGTH = 100_000
MAX_PARTS = 4096
MAX_DIGITS = 300

Resolve = Callable[[str], object]
Step = Callable[[Resolve], object]


class ExpressionError(ValueError):
    """An expression that cannot be read or computed.

    Attributes:
        span: the characters of the expression that are to blame, where they are known.
    """

    def __init__(self, message: str, span: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A parsed expression.

    Attributes:
        text: as written.
        names: every name it reads, dotted names whole (``i``, ``index.mb``, ``rows``), with where they stand.
    """

    text: str
    names: dict[str, tuple[int, int]]
    step: Step

    def __reduce__(self) -> tuple[Callable[[str], Expression], tuple[str]]:
        return parse, (self.text,)

    def evaluate(self, resolve: Resolve) -> object:
        """Computes the value.

        Args:
            resolve: gives the value of a dotted name.

        Raises:
            ExpressionError: the computation is not possible (a division by zero, a wrong type, a result too large).
        """
        try:
            return self.step(resolve)
        except ExpressionError:
            raise
        except RecursionError:
            raise ExpressionError("it is nested too deep") from None
        except (ArithmeticError, TypeError, ValueError, IndexError, KeyError) as error:
            raise ExpressionError(f"{error}") from None


def parse(text: str) -> Expression:
    """Reads an expression.

    Raises:
        ExpressionError: it is no expression, or uses what is not allowed in one.
    """
    if len(text) > MAX_TEXT:
        raise ExpressionError(f"it has {len(text)} characters, at most {MAX_TEXT} are allowed")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"it cannot be read: {getattr(error, 'msg', None) or error}") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ExpressionError(f"it has more than {MAX_NODES} parts")
    builder = _Builder(len(text) - len(text.lstrip()))
    step = builder.build(tree, 0)
    return Expression(text, builder.names, step)


def weight(data: object, most: int) -> int:
    """How much plain data holds when it is written out, what is shared counted each time; no more than ``most`` + 1."""
    count = 0
    stack = [data]
    while stack and count <= most:
        item = stack.pop()
        count += 1
        if isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, str):
            count += len(item) // 64
    return min(count, most + 1)


def _check_size(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > MAX_BITS:
        raise ExpressionError("a number in it becomes too large")
    if isinstance(value, str) and len(value) > MAX_LENGTH:
        raise ExpressionError("a value in it becomes too long")
    if isinstance(value, tuple) and weight(value, MAX_PARTS) > MAX_PARTS:
        raise ExpressionError("a value in it becomes too long")
    return value


def _power(base: Any, exponent: Any) -> object:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and exponent > 0 and base.bit_length() * exponent > MAX_BITS:
        raise ExpressionError("a number in it becomes too large")
    return operator.pow(base, exponent)


def _multiply(left: Any, right: Any) -> object:
    for sequence, count in ((left, right), (right, left)):
        if isinstance(sequence, (str, tuple)) and isinstance(count, int) and len(sequence) * count > MAX_LENGTH:
            raise ExpressionError("a value in it becomes too long")
    return operator.mul(left, right)


def _round(number: Any, digits: Any = None) -> object:
    if isinstance(digits, int) and abs(digits) > MAX_DIGITS:
        raise ExpressionError(f"a number is rounded to at most {MAX_DIGITS} digits")
    return round(number, digits)


def _modulo(left: Any, right: Any) -> object:
    if isinstance(left, str):
        raise ExpressionError("% is for numbers; text is made with ${name}")
    return operator.mod(left, right)


BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _power,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS: dict[str, Callable[..., object]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "round": _round,
    "int": int,
    "float": float,
    "len": len,
}


class _Builder:
    """Turns a syntax tree into closures and collects the names."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.names: dict[str, tuple[int, int]] = {}

    def span(self, node: ast.expr) -> tuple[int, int]:
        return node.col_offset + self.offset, (node.end_col_offset or node.col_offset + 1) + self.offset

    def build(self, node: ast.expr, depth: int) -> Step:
        if depth > MAX_DEPTH:
            raise ExpressionError("it is nested too deep", self.span(node))
        handler = self.HANDLERS.get(type(node))
        if handler is None:
            raise ExpressionError(f"{_noun(node)} is not allowed in it", self.span(node))
        return handler(self, node, depth + 1)

    def constant(self, node: ast.Constant, depth: int) -> Step:
        value = node.value
        if value is not None and not isinstance(value, (int, float, str)):
            raise ExpressionError(f"{type(value).__name__} constants are not allowed in it", self.span(node))
        _check_size(value)
        return lambda resolve: value

    def name(self, node: ast.Name | ast.Attribute, depth: int) -> Step:
        dotted = _dotted(node)
        if dotted is None:
            raise ExpressionError("an attribute of a value is not allowed in it", self.span(node))
        self.names.setdefault(dotted, self.span(node))
        return lambda resolve: resolve(dotted)

    def sequence(self, node: ast.Tuple | ast.List, depth: int) -> Step:
        steps = [self.build(item, depth) for item in node.elts]
        return lambda resolve: _check_size(tuple(step(resolve) for step in steps))

    def binary(self, node: ast.BinOp, depth: int) -> Step:
        function = BINARY.get(type(node.op))
        if function is None:
            raise ExpressionError(f"{_noun(node.op)} is not allowed in it", self.span(node))
        left, right = self.build(node.left, depth), self.build(node.right, depth)
        return lambda resolve: _check_size(function(left(resolve), right(resolve)))

    def unary(self, node: ast.UnaryOp, depth: int) -> Step:
        function = UNARY.get(type(node.op))
        if function is None:
            raise ExpressionError(f"{_noun(node.op)} is not allowed in it", self.span(node))
        operand = self.build(node.operand, depth)
        return lambda resolve: function(operand(resolve))

    def boolean(self, node: ast.BoolOp, depth: int) -> Step:
        steps = [self.build(value, depth) for value in node.values]
        stop_at = isinstance(node.op, ast.Or)

        def evaluate(resolve: Resolve) -> object:
            value: object = not stop_at
            for step in steps:
                value = step(resolve)
                if bool(value) is stop_at:
                    break
            return value

        return evaluate

    def compare(self, node: ast.Compare, depth: int) -> Step:
        functions = [COMPARE.get(type(op)) for op in node.ops]
        steps = [self.build(item, depth) for item in (node.left, *node.comparators)]
        if None in functions:
            raise ExpressionError("`in` and `is` are not allowed in it", self.span(node))

        def evaluate(resolve: Resolve) -> object:
            values = [step(resolve) for step in steps]
            pairs = zip(functions, values, values[1:], strict=False)
            return all(function(left, right) for function, left, right in pairs if function)

        return evaluate

    def choice(self, node: ast.IfExp, depth: int) -> Step:
        test, body, other = (self.build(part, depth) for part in (node.test, node.body, node.orelse))
        return lambda resolve: body(resolve) if test(resolve) else other(resolve)

    def subscript(self, node: ast.Subscript, depth: int) -> Step:
        if isinstance(node.slice, ast.Slice):
            raise ExpressionError("a slice is not allowed in it", self.span(node))
        value, index = self.build(node.value, depth), self.build(node.slice, depth)

        def pick(resolve: Resolve) -> object:
            sequence: Any = value(resolve)
            return sequence[index(resolve)]

        return pick

    def call(self, node: ast.Call, depth: int) -> Step:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        function = FUNCTIONS.get(name or "")
        if function is None or node.keywords:
            allowed = ", ".join(FUNCTIONS)
            raise ExpressionError(f"only {allowed} can be called in it, with positional arguments", self.span(node))
        steps = [self.build(item, depth) for item in node.args]
        return lambda resolve: _check_size(function(*(step(resolve) for step in steps)))

    HANDLERS: ClassVar[dict[type[ast.expr], Callable[..., Step]]] = {
        ast.Constant: constant,
        ast.Name: name,
        ast.Attribute: name,
        ast.Tuple: sequence,
        ast.List: sequence,
        ast.BinOp: binary,
        ast.UnaryOp: unary,
        ast.BoolOp: boolean,
        ast.Compare: compare,
        ast.IfExp: choice,
        ast.Subscript: subscript,
        ast.Call: call,
    }


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _noun(node: ast.AST) -> str:
    return f"a {type(node).__name__} expression"
