"""How each task is bound: as the user's method, or, where Ray refuses that, as a small method of a subclass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cgspec.classes import ClassRef
from cgspec.graph import Graph, Pack, Ref, Task, TaskRef
from cgspec.signatures import Signature
from cgspec.values import Value
from cgspec.views.export.code import call, plain
from cgspec.views.export.imports import Imports
from cgspec.views.export.names import Names
from cgspec.views.export.sources import Sources

Form = tuple["str", tuple["Form", ...]]
"""What an argument is put together from: ``one`` value, or a ``list`` or ``tuple`` of several."""

ONE: Form = ("one", ())


@dataclass(frozen=True)
class Shape:
    """How an adapter calls the user's method.

    Attributes:
        positional, named: the arguments that flow.
        constants: whether there are constants, all given by name.
        trigger: whether it is handed a value that it ignores.
        returns: ``as-is``, ``tuple`` (made of what may be a list), ``only`` (the one value of a tuple), ``nothing``.
    """

    method: str
    positional: tuple[Form, ...]
    named: tuple[tuple[str, Form], ...]
    constants: tuple[str, ...]
    trigger: bool
    returns: Literal["as-is", "tuple", "only", "nothing"]


@dataclass(frozen=True)
class Bound:
    """One ``bind``: the method, and its arguments, each a reference, a constant, or (None) the trigger."""

    method: str
    positional: tuple[Ref | Value | None, ...]
    named: Mapping[str, Value]


@dataclass
class Adapter:
    """The subclass of one class.

    Attributes:
        methods: shape to the name of its method.
        hands_on: whether it has a method that returns what it is given.
    """

    name: str
    methods: dict[Shape, str] = field(default_factory=dict)
    hands_on: str | None = None


class Calls:
    """The binds of a graph, and the adapters that they need."""

    def __init__(self, graph: Graph, sources: Sources, imports: Imports) -> None:
        self.graph = graph
        self.sources = sources
        self.imports = imports
        self.adapters: dict[ClassRef, Adapter] = {}

    def bound(self, task: Task) -> Bound:
        """How the task is bound."""
        ref = self.graph.actors[task.actor].class_ref
        signature = self.sources.method(ref, task.method or "")
        returns = self._returns(task, signature)
        if returns == "as-is" and (found := self._plain(task, signature)) is not None:
            return found
        return self._adapted(task, ref, signature, returns)

    def hand_on(self, actor: int) -> str:
        """The method that returns what it is given."""
        ref = self.graph.actors[actor].class_ref
        adapter = self._adapter(ref)
        adapter.hands_on = adapter.hands_on or self._method_name(ref, adapter, "hand_on")
        return adapter.hands_on

    def _returns(self, task: Task, signature: Signature | None) -> Literal["as-is", "tuple", "only", "nothing"]:
        if task.returns is None:
            return "as-is"
        if not task.returns:
            return "as-is" if self.sources.returns_nothing(signature) else "nothing"
        if len(task.returns) == 1:
            return "only"
        return "as-is" if self.sources.returns_tuple(signature) else "tuple"

    def _plain(self, task: Task, signature: Signature | None) -> Bound | None:
        """The bind of the user's own method, with the nodes by position; None where that is not possible."""
        if signature is None or not task.args or any(_form(self.graph, a.value) != ONE for a in task.args):
            return None
        placed = [p.name for p in signature.parameters if p.kind in ("positional-only", "positional")]
        open_ended = any(p.kind == "var-positional" for p in signature.parameters)
        slots: dict[int, Ref | Value] = {}
        for argument in task.args:
            if isinstance(argument.name, str) and argument.name not in placed:
                return None
            place = placed.index(argument.name) if isinstance(argument.name, str) else argument.name
            assert not isinstance(argument.value, Pack)
            slots[place] = argument.value
        constants = dict(task.consts)
        for place, name in enumerate(placed[: max(slots)]):
            if place not in slots and name in constants:
                slots[place] = constants.pop(name)
        if sorted(slots) != list(range(len(slots))) or (len(slots) > len(placed) and not open_ended):
            return None
        return Bound(signature.name, tuple(slots[place] for place in sorted(slots)), constants)

    def _adapted(
        self,
        task: Task,
        ref: ClassRef,
        signature: Signature | None,
        returns: Literal["as-is", "tuple", "only", "nothing"],
    ) -> Bound:
        positional = sorted((a for a in task.args if isinstance(a.name, int)), key=lambda a: a.name)
        named = [a for a in task.args if isinstance(a.name, str)]
        only = [p.name for p in signature.parameters if p.kind == "positional-only"] if signature else []
        for name in only[len(positional) :]:
            positional += [a for a in named if a.name == name]
            named = [a for a in named if a.name != name]
        shape = Shape(
            task.method or "",
            tuple(_form(self.graph, a.value) for a in positional),
            tuple((str(a.name), _form(self.graph, a.value)) for a in named),
            tuple(task.consts),
            not task.args,
            returns,
        )
        adapter = self._adapter(ref)
        if shape not in adapter.methods:
            adapter.methods[shape] = self._method_name(ref, adapter, shape.method)
        refs: list[Ref | None] = [each for a in (*positional, *named) for each in _flat(self.graph, a.value)]
        return Bound(adapter.methods[shape], tuple(refs or [None]), task.consts)

    def _adapter(self, ref: ClassRef) -> Adapter:
        if ref not in self.adapters:
            name = ref.qualname.rpartition(".")[2]
            self.adapters[ref] = Adapter(self.imports.names.give(f"{name}ForGraph"))
        return self.adapters[ref]

    def _method_name(self, ref: ClassRef, adapter: Adapter, method: str) -> str:
        name = wanted = re.sub(r"\W", "_", f"{method.strip('_')}_in_graph")
        number = 1
        while name in adapter.methods.values() or self.sources.has(ref, name):
            number += 1
            name = f"{wanted}_{number}"
        return name


def _form(graph: Graph, value: Ref | Pack) -> Form:
    if isinstance(value, Pack):
        return ("list", tuple(_form(graph, item) for item in value.items))
    returns = _whole(graph, value)
    return ("tuple", (ONE,) * len(returns)) if returns else ONE


def _whole(graph: Graph, ref: Ref) -> tuple[str, ...]:
    """The returns of a multi-return that is read whole."""
    return (graph.tasks[ref.task].returns or ()) if isinstance(ref, TaskRef) and ref.ret is None else ()


def singles(graph: Graph, ref: Ref) -> list[Ref]:
    """The values behind a reference: all returns of a multi-return that is read whole."""
    if isinstance(ref, TaskRef) and (returns := _whole(graph, ref)):
        return [TaskRef(ref.task, place) for place in range(len(returns))]
    return [ref]


def _flat(graph: Graph, value: Ref | Pack) -> list[Ref]:
    items = value.items if isinstance(value, Pack) else (value,)
    return [single for item in items for single in singles(graph, item)]


def text_of(adapter: Adapter, base: str) -> str:
    """The subclass."""
    methods = [_method(name, shape) for shape, name in adapter.methods.items()]
    if adapter.hands_on is not None:
        methods.append(_HAND_ON.format(name=adapter.hands_on))
    doc = '    """What Ray\'s graphs need beside the class itself: see each method."""\n'
    return f"class {adapter.name}({base}):\n{doc}\n" + "\n\n".join(methods)


_HAND_ON = """    def {name}(self, value):
        # One call has one transport for all its returns and readers: this one hands a value on with its own.
        return value"""


def _method(name: str, shape: Shape) -> str:
    names = Names(["self", *shape.constants])
    parameters: list[str] = ["_"] if shape.trigger else []
    positional = [_argument(form, names, "value", parameters) for form in shape.positional]
    named = {key: _argument(form, names, key, parameters) for key, form in shape.named}
    spread = ["**constants"] if shape.constants else []
    method = f"self.{shape.method}" if shape.method.isidentifier() else f"getattr(self, {plain(shape.method)})"
    called = call(method, positional, named, spread)
    head = f"    def {name}({', '.join(['self', *parameters, *spread])}):"
    return "\n".join([head, *(f"        # {reason}" for reason in _reasons(shape)), *_body(called, shape.returns)])


def _argument(form: Form, names: Names, wanted: str, parameters: list[str]) -> str:
    """The expression of an argument; adds the parameters that it is made from."""
    kind, parts = form
    if kind == "one":
        parameters.append(names.give(wanted))
        return parameters[-1]
    items = ", ".join(_argument(part, names, f"{wanted}_{number}", parameters) for number, part in enumerate(parts))
    return f"[{items}]" if kind == "list" else f"({items},)" if len(parts) == 1 else f"({items})"


def _body(called: str, returns: str) -> list[str]:
    if returns == "only":
        return [f"        (only,) = {called}", "        return only"]
    wrapped: Mapping[str, Callable[[str], str]] = {
        "as-is": lambda code: f"return {code}",
        "tuple": lambda code: f"return tuple({code})",
        "nothing": lambda code: code,
    }
    return [f"        {wrapped[returns](called)}"]


def _reasons(shape: Shape) -> Iterator[str]:
    """Why Ray does not take the method as it is."""
    forms = [*shape.positional, *(form for _, form in shape.named)]
    if shape.trigger:
        yield "Ray refuses a task that reads nothing."
    if any(kind != "one" for kind, _ in forms):
        yield "Ray refuses nodes inside a list or tuple: they come one by one."
    elif forms and shape.returns == "as-is":
        yield "Ray passes nodes by position only."
    if shape.returns in ("tuple", "only"):
        yield "Ray takes several returns from a tuple only." if shape.returns == "tuple" else "One return is no tuple."
    if shape.returns == "nothing":
        yield "Called for its effect: what it returns is not sent anywhere."
