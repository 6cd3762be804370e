"""What a local Ray of cgspec's own starts, what the driver does meanwhile, and that nothing of it is left."""

from __future__ import annotations

import os
import sys

import pytest
import ray
from engines_running import ROOT, one, options, started
from graphs import Drawing
from ray._private import node, services, worker

from cgspec import raynames
from cgspec.engines.ahead import Ahead


def test_a_local_ray_is_what_the_run_needs_and_is_gone_after_it() -> None:
    drawing = Drawing().input("x").actor("a", "plain.py:Counter").actor("b", "plain.py:Counter")
    drawing.task("p", "a.echo", {"x": "inputs.x"}).task("q", "b.echo", {"x": "p"})
    originals = node.Node.start_api_server, services.start_ray_process
    with started(drawing.graph("q"), options()) as engine:
        assert (node.Node.start_api_server, services.start_ray_process) == originals
        assert set(worker._global_node.all_processes) == {"gcs_server", "raylet"}
        below = raynames.started_by(raynames.raylet_pid() or 0)
        commands = {process.pid: " ".join(process.cmdline()) for process in below}
        workers = [pid for pid, command in commands.items() if command.startswith("ray::")]
        others = sorted(command for pid, command in commands.items() if pid not in workers)
        assert len(workers) == 3  # two actors, and Ray's own that reads for the driver
        assert others[1:] == ["cat"] and "runtime_env" in others[0]
        assert one(engine, 5) == [5]
        assert ray.get(_environment_of_a_task.remote()) == "7"  # the agent that was not waited for does its work
    assert [commands[process.pid] for process in below if raynames.lives(process)] == []


@ray.remote(num_cpus=0, runtime_env={"env_vars": {"CGSPEC_NESTED": "7"}})
def _environment_of_a_task() -> str | None:
    return os.environ.get("CGSPEC_NESTED")


COMMAND = [
    "raylet",
    "--session_dir=/nowhere",
    "--node_id=00",
    "--maximum_startup_concurrency=2",
    "--runtime_env_agent_port=0",
    "--num_prestart_python_workers=64",
    "--dashboard_agent_command=python agent.py --a=b",
    "--runtime_env_agent_command=python main.py --runtime-env-agent-port=0 --c=d",
    "--head",
]


def test_a_ray_that_has_moved_a_name_starts_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(raynames.BY_PIPE, "0")  # what stands in for the agent would not learn of the raylet's end
    assert raynames.little_raylet(COMMAND, 64, port=None)[3:] == [
        f"--maximum_startup_concurrency={2 * (os.cpu_count() or 1)}",
        *COMMAND[4:],
    ]
    monkeypatch.delattr("ray._private.node.Node.start_monitor")
    monkeypatch.delattr("ray._private.services.start_ray_process")
    with raynames.start_little(1, port=None):
        assert not hasattr(node.Node, "start_monitor") and not hasattr(services, "start_ray_process")
    other = ["gcs_server", "--log_dir=x", "--head"]
    assert raynames.little_raylet(other, 3, port=1) == other


def test_the_agent_of_environments_is_told_its_port_and_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(raynames.BY_PIPE, "0")
    monkeypatch.setattr("shutil.which", lambda name: None)
    changed = raynames.little_raylet(COMMAND, 1, port=4711)
    assert changed[4] == "--runtime_env_agent_port=4711"
    assert changed[7] == "--runtime_env_agent_command=python main.py --runtime-env-agent-port=4711 --c=d"


def test_torch_is_imported_ahead_where_a_class_file_imports_it() -> None:
    plain = Drawing().input("x").actor("a", "plain.py:Counter").task("t", "a.inc", {"x": "inputs.x"})
    tensors = Drawing().input("x").actor("a", "tensors.py:Maker").task("t", "a.make", {"x": "inputs.x"})
    ahead, none = Ahead(), Ahead()
    none.start(plain.graph("t"), ROOT)
    none.wait()
    ahead.start(tensors.graph("t"), ROOT)
    ahead.wait()
    assert none.thread is None and ahead.thread is not None and hasattr(sys.modules["torch"], "Tensor")
