"""From the syntax tree of a function, its decorators and its place in a class to a ``Signature``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cgspec.signatures import Parameter, ParameterKind, Signature, SignatureKind

Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_KEEPERS = """
    torch.no_grad torch.enable_grad torch.inference_mode torch.set_grad_enabled torch.autograd.no_grad
    torch.autograd.grad_mode.no_grad torch.autograd.grad_mode.inference_mode torch.compile torch.compiler.disable
    torch._dynamo.disable torch._disable_dynamo torch.autocast torch.amp.autocast torch.cuda.amp.autocast
    torch.amp.custom_fwd torch.amp.custom_bwd torch.jit.ignore torch.jit.unused torch.jit.export
    torch.cuda.nvtx.range torch.profiler.record_function torch.autograd.profiler.record_function nvtx.annotate
    functools.lru_cache functools.cache functools.wraps contextlib.contextmanager contextlib.asynccontextmanager
    abc.abstractmethod typing.override typing.final typing.no_type_check typing.deprecated typing.runtime_checkable
    typing_extensions.override typing_extensions.final typing_extensions.deprecated warnings.deprecated
    ray.method ray.remote functools.total_ordering typing_extensions.runtime_checkable atexit.register
    numba.jit numba.njit beartype.beartype typeguard.typechecked jaxtyping.jaxtyped
"""
KEEP_THE_SIGNATURE = frozenset(_KEEPERS.split())
"""Decorators after which a call takes what the decorated function takes."""

PROPERTIES = ("property", "functools.cached_property", "abc.abstractproperty", "types.DynamicClassAttribute")

PARTIALS = frozenset(["functools.partial", "functools.partialmethod"])

Binding = Literal["instance", "class", "none"]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A decorator or a call around a function: its full name as far as imports tell, and the call if it is one.

    ``keeps`` says that its source shows that it hands every argument on.
    """

    name: str
    call: ast.Call | None
    shown: str
    keeps: bool = False


def signature_of(node: Node, wrappers: Sequence[Wrapper], *, name: str, file: str, in_class: bool) -> Signature | str:
    """The signature as a caller sees it; for a property the word for it.

    Args:
        wrappers: from the innermost to the outermost.
        in_class: whether it is found in a class body and called on an object.
    """
    bound: Binding = _implicit(name) if in_class else "none"
    parameters, partials, num_returns, doubt = tuple(parameters_of(node.args)), [], None, ""
    for wrapper in wrappers:
        if wrapper.name in PROPERTIES or wrapper.shown.endswith((".setter", ".getter", ".deleter")):
            return "a property"
        if wrapper.name in ("staticmethod", "classmethod"):
            bound = "none" if wrapper.name == "staticmethod" else "class"
        elif wrapper.name in PARTIALS and wrapper.call is not None:
            bound = "none" if in_class and wrapper.name == "functools.partial" else bound
            partials.append(wrapper.call)
        elif wrapper.name == "typing.overload" or not (wrapper.keeps or wrapper.name in KEEP_THE_SIGNATURE):
            doubt = doubt or f"{name} is wrapped by {wrapper.shown}, which may change what it takes"
        num_returns = num_returns or _num_returns(wrapper)
    made = Signature(name, parameters, None, num_returns, _kind(node), not doubt, doubt, False, file, node.lineno)
    made = made if bound == "none" else _bind(made)
    for call in partials:
        made = partially(made, call)
    return made


def _implicit(name: str) -> Binding:
    return "class" if name in ("__new__", "__init_subclass__", "__class_getitem__") else "instance"


def parameters_of(arguments: ast.arguments) -> Iterator[Parameter]:
    """The parameters of a ``def`` or ``lambda``, in order, with their defaults as text."""
    placed = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [*[None] * (len(placed) - len(arguments.defaults)), *arguments.defaults]
    for number, (one, default) in enumerate(zip(placed, defaults, strict=True)):
        kind: ParameterKind = "positional-only" if number < len(arguments.posonlyargs) else "positional"
        yield Parameter(one.arg, kind, shorten(default))
    if arguments.vararg:
        yield Parameter(arguments.vararg.arg, "var-positional")
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield Parameter(one.arg, "keyword-only", shorten(default))
    if arguments.kwarg:
        yield Parameter(arguments.kwarg.arg, "var-keyword")


def shorten(default: ast.expr | None, most: int = 40) -> str | None:
    """An expression's source on one line, cut where it is long; None for none."""
    if default is None:
        return None
    text = " ".join(ast.unparse(default).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _bind(made: Signature) -> Signature:
    """Drops the parameter that Python fills in with the object or the class."""
    first = made.parameters[0] if made.parameters else None
    if first is not None and first.kind in ("positional-only", "positional"):
        return replace(made, parameters=made.parameters[1:], receiver=first)
    return made if first is not None and first.kind == "var-positional" else replace(made, lacks_receiver=True)


def partially(made: Signature, call: ast.Call) -> Signature:
    """The signature of ``functools.partial(made, *args, **kwargs)``, as ``inspect`` gives it."""
    given = call.args[1:]
    if any(isinstance(one, ast.Starred) for one in given) or any(word.arg is None for word in call.keywords):
        return replace(made, readable=False, why=f"{made.name} is a partial with unpacked arguments")
    words = {word.arg: shorten(word.value) for word in call.keywords}
    left, named = len(given), False
    parameters: list[Parameter] = []
    for parameter in made.parameters:
        if parameter.kind in ("positional-only", "positional") and left:
            left -= 1
        elif parameter.name in words and not parameter.kind.startswith("var-"):
            named = True
            parameters.append(Parameter(parameter.name, "keyword-only", words[parameter.name]))
        elif not (named and parameter.kind == "var-positional"):
            moved = named and parameter.kind == "positional"
            parameters.append(replace(parameter, kind="keyword-only") if moved else parameter)
    return replace(made, parameters=tuple(parameters))


def _num_returns(wrapper: Wrapper) -> int | None:
    if wrapper.name not in ("ray.method", "ray.remote") or wrapper.call is None:
        return None
    for word in wrapper.call.keywords:
        if word.arg == "num_returns" and isinstance(word.value, ast.Constant) and type(word.value.value) is int:
            return word.value.value
    return None


def _kind(node: Node) -> SignatureKind:
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(node))
    if isinstance(node, ast.AsyncFunctionDef):
        return "async generator" if yields else "async"
    return "generator" if yields else "function"


def own_nodes(node: Node) -> Iterator[ast.AST]:
    """Every node of a function's body, without those of the functions and classes inside it."""
    waiting: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(one))


def keeps_arguments(decorator: Node) -> bool:
    """Whether a decorator's source shows that what it returns takes exactly what the decorated function takes.

    It returns the function itself, or an inner function of ``*args, **kwargs`` that hands both on and nothing else.
    """
    if isinstance(decorator, (ast.Lambda, ast.AsyncFunctionDef)):
        return False
    inner = {one.name: one for one in decorator.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    first = next(parameters_of(decorator.args), None)
    returned = [one.value for one in own_nodes(decorator) if isinstance(one, ast.Return)]
    if first is None or not returned:
        return False
    names = [value.id if isinstance(value, ast.Name) else "" for value in returned]
    return all(name == first.name or (name in inner and _hands_on(inner[name], first.name)) for name in names)


def makes_keepers(factory: Node) -> bool:
    """Whether a decorator factory's source shows that each decorator that it returns ``keeps_arguments``."""
    if isinstance(factory, (ast.Lambda, ast.AsyncFunctionDef)):
        return False
    inner = {one.name: one for one in factory.body if isinstance(one, ast.FunctionDef)}
    returned = [one.value for one in own_nodes(factory) if isinstance(one, ast.Return)]
    return bool(returned) and all(
        isinstance(value, ast.Name) and value.id in inner and keeps_arguments(inner[value.id]) for value in returned
    )


def _hands_on(inner: ast.FunctionDef | ast.AsyncFunctionDef, function: str) -> bool:
    """Whether ``inner`` calls ``function`` with its own parameters, as they are, and touches it in no other way."""
    parameters = list(parameters_of(inner.args))
    if [p.kind for p in parameters][-2:] != ["var-positional", "var-keyword"] or len(parameters) > 3:
        return False
    wanted = f"({', '.join(map(str, parameters))})"
    calls = [one for one in own_nodes(inner) if isinstance(one, ast.Call) and ast.unparse(one.func) == function]
    kept = {one.name for one in parameters}
    changed = any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in kept for one in own_nodes(inner)
    )
    return bool(calls) and not changed and all(ast.unparse(one) == function + wanted for one in calls)
