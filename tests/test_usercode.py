"""User code is imported by one name everywhere, roots do not mix, and tracebacks show the user's frames."""

from __future__ import annotations

import pathlib
import pickle
import sys
from collections.abc import Iterator

import pytest

from cgspec import usercode
from cgspec.graph import ClassRef
from cgspec.values import FunctionRef


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    usercode.uninstall()


def write(root: pathlib.Path, **files: str) -> pathlib.Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    return root


def ref(module: str, name: str, file: str | None = None) -> ClassRef:
    return ClassRef(f"cgspec_user.{module}", name, file or module.replace(".", "/") + ".py")


def test_files_of_one_name_in_two_folders_do_not_collide(tmp_path: pathlib.Path) -> None:
    usercode.install(write(tmp_path, a__model="class M:\n    k = 1\n", b__model="class M:\n    k = 2\n"))
    assert (usercode.load(ref("a.model", "M")).k, usercode.load(ref("b.model", "M")).k) == (1, 2)


def test_relative_and_absolute_imports_of_siblings_work(tmp_path: pathlib.Path) -> None:
    model = "from . import layers\nimport shared\nclass M:\n    k = (layers.K, shared.K)\n"
    usercode.install(write(tmp_path, a__model=model, a__layers="K = 3\n", shared="K = 4\n"))
    assert usercode.load(ref("a.model", "M")).k == (3, 4)


def test_values_pickle_by_reference(tmp_path: pathlib.Path) -> None:
    usercode.install(write(tmp_path, model="class M:\n    pass\n"))
    model = usercode.load(ref("model", "M"))
    assert b"cgspec_user.model" in pickle.dumps(model()) and type(pickle.loads(pickle.dumps(model()))) is model


def test_two_roots_one_after_the_other_do_not_mix(tmp_path: pathlib.Path) -> None:
    first = write(tmp_path / "1", model="import beside\nclass M:\n    k = beside.K\n", beside="K = 1\n")
    second = write(tmp_path / "2", model="import beside\nclass M:\n    k = beside.K\n", beside="K = 2\n")
    for root, k in ((first, 1), (second, 2), (first, 1)):
        usercode.install(root)
        assert usercode.load(ref("model", "M")).k == k
    assert str(second) not in sys.path and sys.path.count(str(first)) == 1


def test_the_root_never_hides_an_installed_module(tmp_path: pathlib.Path) -> None:
    usercode.install(write(tmp_path, json="K = 1\n", model="import json\nclass M:\n    k = json.dumps(1)\n"))
    assert sys.path[-1] == str(tmp_path) and usercode.load(ref("model", "M")).k == "1"


@pytest.mark.parametrize("stem", ["my-model", "2nd", "model.v2"])
def test_stems_that_are_no_identifiers_work(tmp_path: pathlib.Path, stem: str) -> None:
    (tmp_path / f"{stem}.py").write_text("class M:\n    k = 5\n")
    usercode.install(tmp_path)
    model = usercode.load(ref(stem, "M", f"{stem}.py"))
    assert model.k == 5 and type(pickle.loads(pickle.dumps(model()))) is model


def test_functions_nested_classes_and_installed_modules_load(tmp_path: pathlib.Path) -> None:
    usercode.install(write(tmp_path, data="def batch(n):\n    return n + 1\nclass A:\n    class B:\n        k = 6\n"))
    assert usercode.load(FunctionRef("cgspec_user.data", "batch", "data.py"))(1) == 2
    assert usercode.load(ref("data", "A.B")).k == 6
    assert usercode.load(ClassRef("fractions", "Fraction", None))(1, 2) == 0.5


def test_a_ray_actor_class_is_unwrapped(tmp_path: pathlib.Path) -> None:
    usercode.install(write(tmp_path, model="import ray\n@ray.remote(num_cpus=1)\nclass M:\n    k = 7\n"))
    model = usercode.load(ref("model", "M"))
    assert model().k == 7 and model.__name__ == "M" and not hasattr(model, "remote")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all\n", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("class M(\n", "SyntaxError"),
        ("raise SystemExit(2)\n", "SystemExit: 2"),
        ("class N:\n    pass\n", "model.py has no M"),
    ],
)
def test_what_cannot_be_loaded_is_said(tmp_path: pathlib.Path, text: str, said: str) -> None:
    usercode.install(write(tmp_path, model=text))
    with pytest.raises(usercode.CannotLoad, match=said) as caught:
        usercode.load(ref("model", "M"))
    assert "usercode.py" not in caught.value.trace and "importlib" not in caught.value.trace
    assert pickle.loads(pickle.dumps(caught.value)).trace == caught.value.trace


def test_a_missing_file_is_said(tmp_path: pathlib.Path) -> None:
    usercode.install(tmp_path)
    with pytest.raises(usercode.CannotLoad, match=r"model\.py cannot be imported"):
        usercode.load(ref("model", "M"))


def test_the_trace_keeps_causes_and_the_users_own_frames(tmp_path: pathlib.Path) -> None:
    f = "def f():\n    try:\n        g()\n    except KeyError as e:\n        raise ValueError('x') from e\n"
    usercode.install(write(tmp_path, model=f + "def g():\n    {}[1]\n"))
    function = usercode.load(FunctionRef("cgspec_user.model", "f", "model.py"))
    with pytest.raises(ValueError) as caught:
        function()
    what, trace = usercode.describe(caught.value)
    assert what == "ValueError: x" and "in g" in trace and "KeyError: 1" in trace and "direct cause" in trace
