"""A stand-in for Ray: runs exported scripts in this process, in bind order, and refuses what Ray's graphs refuse."""

from __future__ import annotations

import contextlib
import io
import itertools
import pathlib
import runpy
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

_ORDER = itertools.count()


class Node:
    """Something bound: ``compute`` makes its value from the values so far."""

    def __init__(self, compute: Callable[[dict[Node, Any], tuple[Any, ...]], Any], reads: Sequence[Node] = ()) -> None:
        self.compute, self.reads, self.order = compute, reads, next(_ORDER)
        self.transport: str | None = None
        self.actor: Any = None
        self.awaited = True

    def with_tensor_transport(self, kind: str, **options: Any) -> Node:
        self.transport = kind
        return self

    def experimental_compile(self, **options: Any) -> Compiled:
        return Compiled(self, [self])


class InputNode(Node):
    current: InputNode

    def __init__(self) -> None:
        super().__init__(lambda values, sent: sent[0])
        self.whole, self.keyed, self.nodes = False, False, []
        InputNode.current = self

    def __enter__(self) -> InputNode:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __getitem__(self, place: int) -> Node:
        self.keyed = True
        return Node(lambda values, sent: sent[place], [self])


class MultiOutputNode(Node):
    def __init__(self, nodes: list[Node]) -> None:
        assert len(set(nodes)) == len(nodes), "the driver would spin for ever"
        super().__init__(lambda values, sent: None, nodes)

    def experimental_compile(self, **options: Any) -> Compiled:
        return Compiled(self, list(self.reads))


class Ref:
    def __init__(self, value: Any) -> None:
        self.value = value


class Compiled:
    def __init__(self, root: Node, outputs: list[Node]) -> None:
        self.root, self.outputs = root, outputs
        given = InputNode.current
        bound = [node for node in Handle.bound if node.order > given.order]
        read = {each for node in bound for each in node.reads} | set(outputs)
        for node in outputs:
            assert node.actor is not None, "an input is no output"
            if node.transport not in (None, "shm"):
                raise ValueError("the driver cannot read what an accelerator carries")
        if leaves := [node for node in bound if node not in read and node.awaited]:
            raise ValueError(f"leaf nodes: {leaves}")
        if not any(given in node.reads or any(given in each.reads for each in node.reads) for node in bound):
            raise ValueError("nothing reads the input")
        self.given = given
        self.order = sorted(bound, key=lambda node: node.order)

    def execute(self, *sent: Any) -> Any:
        values: dict[Node, Any] = {}
        for node in self.order:
            for each in node.reads:
                if each not in values:
                    values[each] = each.compute(values, sent)
            values[node] = node.compute(values, sent)
        refs = [Ref(values[node]) for node in self.outputs]
        return refs if isinstance(self.root, MultiOutputNode) else refs[0]

    def teardown(self) -> None:
        pass


class Handle:
    bound: ClassVar[list[Node]] = []

    def __init__(self, user: Any) -> None:
        self._user = user

    def __getattr__(self, name: str) -> Method:
        if not callable(getattr(type(self._user), name, None)):
            raise AttributeError(f"actors have methods of their class only, not {name}")
        return Method(self, name, 1)


class Method:
    def __init__(self, handle: Handle, name: str, returns: int) -> None:
        self.handle, self.name, self.returns = handle, name, returns

    def options(self, num_returns: int = 1) -> Method:
        return Method(self.handle, self.name, num_returns)

    def remote(self, *args: Any, **kwargs: Any) -> Ref:
        return Ref(getattr(self.handle._user, self.name)(*args, **kwargs))

    def bind(self, *args: Any, **kwargs: Any) -> Any:
        _refuse(args, kwargs)
        reads = [arg for arg in args if isinstance(arg, Node)]
        given = InputNode.current
        given.whole = given.whole or given in reads
        if given.whole and given.keyed:
            raise ValueError("an input is read whole or by key, never both")

        def compute(values: dict[Node, Any], sent: tuple[Any, ...]) -> Any:
            made = [values[arg] if isinstance(arg, Node) else arg for arg in args]
            result = getattr(self.handle._user, self.name)(*made, **kwargs)
            if self.returns > 1 and (type(result) is not tuple or len(result) != self.returns):
                raise ValueError(f"{self.name} returned {result!r}, {self.returns} returns were said")
            return result

        node = self._added(Node(compute, reads))
        if self.returns == 1:
            return node
        node.awaited = False
        return tuple(self._part(node, place) for place in range(self.returns))

    def _part(self, whole: Node, place: int) -> Node:
        return self._added(Node(lambda values, sent: values[whole][place], [whole]))

    def _added(self, node: Node) -> Node:
        node.actor = self.handle
        Handle.bound.append(node)
        return node


def _refuse(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if any(isinstance(value, Node) for value in kwargs.values()):
        raise ValueError("nodes are positional only")
    for value in [*args, *kwargs.values()]:
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        if any(isinstance(item, Node) for item in inside):
            raise ValueError("a node inside a list, tuple or map")
    if not any(isinstance(arg, Node) for arg in args):
        raise ValueError("a task needs at least one node")


class RemoteClass:
    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.__ray_metadata__ = types.SimpleNamespace(modified_class=cls)

    def options(self, **options: Any) -> RemoteClass:
        return self

    def remote(self, *args: Any, **kwargs: Any) -> Handle:
        return Handle(self.cls(*args, **kwargs))


class Collective:
    """One of the collectives, on numbers or tensors."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def bind(self, operands: list[Any], op: str = "SUM") -> list[Any]:
        columns = operands if isinstance(operands[0], list) else [operands]
        assert all(len({node.actor for node in column}) == len(column) > 1 for column in columns), "groups are larger"
        results = [[self._member(column, rank, op) for column in columns] for rank in range(len(columns[0]))]
        return [row if len(row) > 1 else row[0] for row in results]

    def _member(self, column: list[Node], rank: int, op: str) -> Node:
        node = Node(lambda values, sent: _reduced([values[each] for each in column], op), column)
        node.actor = column[rank].actor
        Handle.bound.append(node)
        return node


def _reduced(values: list[Any], op: str) -> Any:
    assert op == "SUM", f"{op} is not needed here"
    return sum(values[1:], values[0])


def _get(refs: Any, timeout: float | None = None) -> Any:
    return [ref.value for ref in refs] if isinstance(refs, list) else refs.value


class TaskError(Exception):
    """Never raised here."""


def _modules() -> dict[str, types.ModuleType]:
    contents: dict[str, dict[str, Any]] = {
        "ray": {
            "remote": lambda cls: RemoteClass(cls),
            "init": lambda **options: None,
            "shutdown": lambda: None,
            "get": _get,
            "cloudpickle": types.SimpleNamespace(register_pickle_by_value=lambda module: None),
        },
        "ray.dag": {"InputNode": InputNode, "MultiOutputNode": MultiOutputNode, "DAGContext": None},
        "ray.exceptions": {"RayTaskError": TaskError},
        "ray.experimental": {},
        "ray.experimental.collective": {kind: Collective(kind) for kind in ("allreduce", "allgather", "reducescatter")},
        "ray.experimental.util": {},
        "ray.experimental.util.types": {"ReduceOp": types.SimpleNamespace(SUM="SUM", MAX="MAX")},
    }
    made = {name: types.ModuleType(name) for name in contents}
    for name, module in made.items():
        module.__dict__.update(contents[name])
    return made


@contextlib.contextmanager
def _instead() -> Iterator[None]:
    """With this in Ray's place, and the user's modules forgotten afterwards."""
    before, path = dict(sys.modules), list(sys.path)
    for name in [name for name in sys.modules if name == "ray" or name.startswith("ray.")]:
        del sys.modules[name]
    sys.modules.update(_modules())
    try:
        yield
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)
        sys.path[:] = path


def run_script(file: pathlib.Path) -> str:
    """What the script prints."""
    printed = io.StringIO()
    Handle.bound.clear()
    with _instead(), contextlib.redirect_stdout(printed):
        runpy.run_path(str(file), run_name="__main__")
    return printed.getvalue()
