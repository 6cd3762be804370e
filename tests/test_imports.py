"""The import map: who may import whom, and that nothing which checks, draws or shows loads ray, torch or numpy."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest

from cgspec.cli import cli

PACKAGE = pathlib.Path(__file__).parent.parent / "cgspec"
HEAVY = {"ray", "torch", "numpy"}
RUNNING = ("cgspec.worker", "cgspec.profilers", "cgspec.running", "cgspec.starting", "cgspec.cli")
"""What executes something, with the modules below; ``cgspec.engines`` itself is an interface, its modules are not."""
LIVE = ("cgspec.views.progress", "cgspec.views.sweeps")
"""Views of what is still running."""
VOCABULARY = ("errors", "diagnostics", "classes", "quantities", "expressions", "making", "values", "graph", "places")


def name_of(path: pathlib.Path) -> str:
    parts = ["cgspec", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if "starter" not in path.parts}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def statements(node: ast.AST, *, lazy: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that are executed: with the module, or (``lazy``) also within its functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif not is_type_checking(child) and (lazy or not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))):
            yield from statements(child, lazy=lazy)


def imported(name: str, *, lazy: bool = False) -> set[str]:
    """The modules that a module imports by name; of cgspec's own, the modules themselves."""
    found: set[str] = set()
    for statement in statements(ast.parse(MODULES[name].read_text(encoding="utf-8")), lazy=lazy):
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        else:
            assert statement.level == 0, f"{name} imports relatively"
            for alias in statement.names:
                inner = f"{statement.module}.{alias.name}"
                found.add(inner if inner in MODULES else str(statement.module))
    return found


def reached(start: Iterable[str]) -> set[str]:
    """Every module that is loaded with some, packages of theirs included."""
    seen: set[str] = set()
    left = list(start)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in MODULES:
            left += [*imported(name), *(name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1))]
    return seen


def runs(name: str) -> bool:
    return below(name, RUNNING) or name.startswith("cgspec.engines.")


def below(name: str, tops: Iterable[str]) -> bool:
    return any(name == top or name.startswith(top + ".") for top in tops)


def test_ray_is_imported_with_a_module_only_in_engines_and_raynames() -> None:
    found = {name for name in MODULES if any(below(item, ["ray"]) for item in imported(name))}
    assert {name for name in found if not below(name, ["cgspec.engines", "cgspec.raynames"])} == set()


@pytest.mark.parametrize(
    "start", ["cgspec", "cgspec.checking", "cgspec.cli", "cgspec.worker", "cgspec.recorder", "cgspec.usercode"]
)
def test_what_checks_and_what_lives_in_an_actor_loads_nothing_heavy(start: str) -> None:
    assert {item.partition(".")[0] for item in reached([start])} & HEAVY == set()


@pytest.mark.parametrize("view", [name for name in MODULES if below(name, ["cgspec.views"]) and name not in LIVE])
def test_views_load_nothing_heavy_and_read_graph_and_record_only(view: str) -> None:
    assert {item.partition(".")[0] for item in reached([view])} & HEAVY == set()
    assert {item for item in reached([view]) if runs(item)} == set()


def test_the_front_end_knows_nothing_of_execution() -> None:
    others = ["cgspec.engines", "cgspec.phases", "cgspec.record", "cgspec.views"]
    assert {item for item in reached(["cgspec.checking"]) if runs(item) or below(item, others)} == set()


def test_the_vocabulary_knows_nothing_of_the_front_end() -> None:
    known = reached(f"cgspec.{name}" for name in VOCABULARY)
    assert {item for item in known if item in MODULES} == {"cgspec", *(f"cgspec.{name}" for name in VOCABULARY)}


def test_engines_worker_and_profilers_know_nothing_of_the_run() -> None:
    above = ["cgspec.running", "cgspec.sweep", "cgspec.cli", "cgspec.views", "cgspec.checking"]
    lower = [
        name
        for name in MODULES
        if below(name, ["cgspec.engines", "cgspec.profilers", "cgspec.worker", "cgspec.recorder"])
    ]
    assert {(name, item) for name in lower for item in imported(name, lazy=True) if below(item, above)} == set()


def test_nobody_imports_the_command_line() -> None:
    found = {name for name in MODULES if any(below(item, ["cgspec.cli"]) for item in imported(name, lazy=True))}
    assert found <= {"cgspec.__main__"}


def test_no_module_imports_itself_in_a_circle() -> None:
    edges = {name: {item for item in imported(name) if item in MODULES and item != name} for name in MODULES}
    left = dict(edges)
    while ready := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in ready:
            del left[name]
    assert left == {}


COMMANDS = {"check": [], "viz": ["-o", "-", "--format", "dot"], "plan": [], "show": [], "export": []}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name in cli.commands])
def test_a_command_that_runs_nothing_loads_nothing_heavy(command: str) -> None:
    spec = PACKAGE.parent / "tests" / "examples" / "fan.yaml"
    arguments = [sys.executable, "-X", "importtime", "-m", "cgspec", command, str(spec), *COMMANDS[command]]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = {line.split("|")[-1].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "cgspec" in loaded
    assert loaded & HEAVY == set()
