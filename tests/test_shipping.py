"""What is added to an actor's environment, and what becomes of Ray's words about nodes; shipping itself: test_nodes."""

from __future__ import annotations

import pathlib
import re

import pytest

import cgspec
from cgspec.engines.actors import UNLOADED, _not_loaded
from cgspec.engines.cluster import _no_ray
from cgspec.engines.shipping import Shipment, unpacked

SHIPPED = Shipment("gcs://_ray_pkg_b.zip", ("gcs://_ray_pkg_a.zip", "gcs://_ray_pkg_b.zip"))


def test_packages_come_before_the_users_own_modules_and_replace_none() -> None:
    packages = list(SHIPPED.packages)
    assert SHIPPED.added_to({}, {}) == {"py_modules": packages}
    assert SHIPPED.added_to({"env_vars": {"A": "1"}}, {"py_modules": ["gcs://job.zip"], "pip": ["x"]}) == {
        "env_vars": {"A": "1"},
        "py_modules": [*packages, "gcs://job.zip"],
    }
    own = {"py_modules": ["gcs://own.zip"]}
    assert SHIPPED.added_to(own, {"py_modules": ["gcs://job.zip"]}) == {"py_modules": [*packages, "gcs://own.zip"]}
    assert own == {"py_modules": ["gcs://own.zip"]}


def test_nothing_is_added_for_a_local_ray_or_a_container() -> None:
    assert Shipment().added_to({}, {}) == {}
    assert SHIPPED.added_to({"image_uri": "mine:1"}, {}) == {"image_uri": "mine:1"}
    assert SHIPPED.added_to({}, {"container": {"image": "mine:1"}}) == {}


def test_a_package_is_found_where_ray_puts_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_ray_pkg_b" / "specs").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "_ray_pkg_b")
    assert unpacked("gcs://_ray_pkg_b.zip") == tmp_path / "_ray_pkg_b" / "specs"
    assert unpacked("gcs://_ray_pkg_c.zip") is None


PAGE = f"""The actor died because of an error raised in its creation task, ray::Host.__init__() (pid=7, ip=10.0.0.2, \
actor_id=b9, repr=<cgspec.engines.host.TemporaryActor object at 0x7f>)
RuntimeError: The actor with name Host {UNLOADED}. This may be because needed library dependencies are not installed:

ray::Host.__init__() (pid=7, ip=10.0.0.2, actor_id=b9)
ModuleNotFoundError: No module named 'cgspec'
"""


def test_a_node_without_cgspec_is_named() -> None:
    said = _not_loaded(PAGE)
    assert said.startswith(f"cgspec {cgspec.__version__} is not on its node 10.0.0.2: ")
    assert "ModuleNotFoundError: No module named 'cgspec'" in said


def test_other_versions_of_ray_and_no_ray_at_all_are_told_apart() -> None:
    there, here = "    Ray: 2.60.0\n    Python: 3.11.7\n", "    Ray: 2.50.0\n    Python: 3.12.1\n"
    said = f"Version mismatch: The cluster was started with:\n{there}This process on 10.0.0.1 was started with:\n{here}"
    assert _no_ray("head:6379", said) == (
        "the Ray at head:6379 runs Ray 2.60.0 and Python 3.11.7, and here is Ray 2.50.0 and Python 3.12.1: "
        "all nodes need the same"
    )
    assert re.match("there is no Ray at auto: Could not find any", _no_ray("auto", "Could not find any\nrunning"))
    assert _no_ray("local", "No space left on device") == "Ray did not start: No space left on device"
