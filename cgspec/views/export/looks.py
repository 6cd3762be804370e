"""The part of the script that looks at results: the expectations as asserts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cgspec.expectations import Read, output_place
from cgspec.graph import Graph
from cgspec.spec import ExpectSpec
from cgspec.values import Expr, Literal, Marked, Value
from cgspec.views.export.code import Coder, joined, plain
from cgspec.views.export.names import in_words

SAME = '''
def same(expected, found):
    """Equality; tensors by shape, dtype and value, wherever they are."""
    if isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor):
        return expected.dtype == found.dtype and torch.equal(expected.cpu(), found.cpu())
    if isinstance(expected, (list, tuple)) and isinstance(found, type(expected)):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(same(expected[key], found[key]) for key in expected)
    equal = expected == found
    return bool(equal.all() if hasattr(equal, "all") else equal)
'''
FINITE = '''
def finite(value):
    """No NaN and no infinity, in whatever is nested."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return all(map(finite, value))
    return bool(torch.isfinite(torch.as_tensor(value)).all())
'''
ALL_EQUAL = '''
def all_equal(value):
    """Every element is the first one."""
    if hasattr(value, "reshape"):
        value = value.reshape(-1)
        return bool((value == value[:1]).all())
    return all(same(value[0], item) for item in value)
'''
_ASSERT_CLOSE = "torch.testing.assert_close"
HELPERS = {"same": SAME, "finite": FINITE, "all_equal": ALL_EQUAL}


class Looks:
    """The asserts.

    Attributes:
        lines: of the iterations, and (``last``) of the last one.
        needs: helpers that they use.
        untold: what the script does not judge, in words.
    """

    def __init__(self, graph: Graph, entries: Sequence[ExpectSpec], read: Read, coder: Coder) -> None:
        self.graph, self.read, self.coder = graph, read, coder
        self.output = [access(graph, "outputs", place) for place in range(len(graph.outputs))]
        self.lines: list[str] = []
        self.last: list[str] = []
        self.needs: set[str] = set()
        self.untold: list[str] = []
        for number, entry in enumerate(entries):
            if entry.output is not None:
                self._look(entry, number)
            elif entry.task is not None:
                self.untold.append(f"expect: {in_words(str(entry.task))} {in_words(entry.metric or 'finite')}")

    def _look(self, entry: ExpectSpec, number: int) -> None:
        assert entry.output is not None
        subject = self.output[output_place(self.graph, entry.output)]
        if entry.item is not None:
            subject += f"[{plain(entry.item)}]"
        tests = self._tests(entry, subject, ("expect", number))
        asserts = [line for test in tests for line in _asserted(test, subject)]
        if entry.at == "first":
            asserts = ["if i == 0:", *(f"    {line}" for line in asserts)]
        (self.last if entry.at == "last" else self.lines).extend(asserts)

    def _tests(self, entry: ExpectSpec, subject: str, path: tuple[str | int, ...]) -> Iterator[str]:
        for name, make in _CONDITIONS.items():
            said = getattr(entry, name)
            if name in entry.model_fields_set and (said is not None or name == "equals"):
                yield make(self, said, subject, (*path, name))

    def value(self, said: Any, path: tuple[str | int, ...]) -> Value:
        return self.read(said, path)

    def helper(self, *names: str) -> None:
        self.needs.update(names)
        self.coder.needs.add("torch")


def access(graph: Graph, outputs: str, place: int) -> str:
    """The expression of one output of an iteration, from that of all."""
    name = graph.outputs[place][0]
    return outputs if graph.output_form == "single" else f"{outputs}[{plain(name)}]"


def _asserted(test: str, subject: str) -> list[str]:
    if not test.startswith(_ASSERT_CLOSE):
        return [f"assert {test}, (i, {subject})"]
    arguments = test.removeprefix(f"{_ASSERT_CLOSE}(").removesuffix(")")
    return [f"{_ASSERT_CLOSE}(", f"    {arguments}", ")"] if len(test) > 100 else [test]


def _is_plain(value: Value) -> bool:
    """Whether it is certainly no tensor, so that ``==`` will do."""
    if isinstance(value, Marked):
        return value.key in ("$dtype", "$count", "$env")
    return isinstance(value, Literal) or (isinstance(value, Expr) and all(map(_is_plain, value.known.values())))


def _equals(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    value = looks.value(said, path)
    return _equal(looks, subject, looks.coder.of(value), plainly=_is_plain(value))


def _equal(looks: Looks, subject: str, expected: str, *, plainly: bool) -> str:
    if plainly:
        sign = "is" if expected in ("None", "True", "False") else "=="
        return joined(f"subject {sign} expected", subject=subject, expected=expected)
    looks.helper("same")
    return f"same({expected}, {subject})"


def _equals_input(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    name = str(said).removeprefix("inputs.")
    places = [n for n, given in enumerate(looks.graph.inputs) if given.name == name]
    plainly = bool(places) and _is_plain(looks.graph.inputs[places[0]].value)
    if not places:
        members = [n for n, given in enumerate(looks.graph.inputs) if given.family == name]
        return _equal(looks, subject, f"[{', '.join(f'sent[{place}]' for place in members)}]", plainly=False)
    return _equal(looks, subject, f"sent[{places[0]}]", plainly=plainly)


def _close(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    value = looks.value(said.to, (*path, "to"))
    expected = looks.coder.of(value)
    if isinstance(value, Literal) and isinstance(value.data, int | float):
        limit = f"{said.atol!r} + {said.rtol!r} * abs(expected)"
        return joined(f"abs(subject - expected) <= {limit}", subject=subject, expected=expected)
    looks.coder.needs.add("torch")
    options = f"rtol={said.rtol!r}, atol={said.atol!r}, check_dtype=False, check_device=False"
    return f"{_ASSERT_CLOSE}({subject}, {expected}, {options})"


def _finite(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    looks.helper("finite")
    return f"finite({subject})"


def _shape(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    value = looks.value(said, path)
    shape = plain(tuple(value.data)) if isinstance(value, Literal) else f"tuple({looks.coder.of(value)})"
    return f"tuple({subject}.shape) == {shape}"


_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "long": "int64"}


def _dtype(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    value = looks.value(said, path)
    found = f'str({subject}.dtype).removeprefix("torch.")'
    if isinstance(value, Literal):
        return f"{found} == {plain(_ALIASES.get(value.data, value.data))}"
    return f'{found} == str({looks.coder.of(value)}).removeprefix("torch.")'


def _length(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    return joined(f"len({subject}) == expected", expected=looks.coder.of(looks.value(said, path)))


def _all_equal(looks: Looks, said: Any, subject: str, path: tuple[str | int, ...]) -> str:
    looks.helper("all_equal", "same")
    return f"all_equal({subject})"


_CONDITIONS: dict[str, Callable[[Looks, Any, str, tuple[str | int, ...]], str]] = {
    "equals": _equals,
    "equals_input": _equals_input,
    "close": _close,
    "finite": _finite,
    "shape": _shape,
    "dtype": _dtype,
    "length": _length,
    "all_equal": _all_equal,
}
