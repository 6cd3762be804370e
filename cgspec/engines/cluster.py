"""Starts and ends Ray: a local one of its own by default, else the one that the user named."""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import os
import re
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray

from cgspec import raynames
from cgspec.engines import Options
from cgspec.errors import Failure, NotAble
from cgspec.graph import Actor, Graph
from cgspec.interrupts import held
from cgspec.profilers import nsight

HOLD = 20.0
"""Seconds that a first Ctrl-C waits for Ray to be up, at the most: half a start leaves processes, and may crash."""


class Cluster:
    """Ray, for as long as an engine lives.

    Attributes:
        local: whether the spec wants a Ray of its own.
        started: whether Ray was started here and ends with the engine; one that is there already is used as it is.
        notes: what the user should know, e.g. that an inherited address was not followed.
    """

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = graph
        self.options = options
        self.local = options.cluster.address == "local"
        self.started = False
        self.notes: list[str] = []
        self._environ: dict[str, str | None] = {}
        self._undo: Callable[[], None] = lambda: None
        self._levels: dict[str, int] = {}
        self._port: socket.socket | None = None

    def check(self) -> None:
        """What can be known before Ray takes its seconds to start.

        Raises:
            NotAble: there are not the GPUs that the graph asks for, or no ``nsys``.
        """
        check_gpus(self.graph, self.options)
        nsight.require_nsys(self.options)

    def start(self) -> None:
        """Starts or joins Ray.

        Raises:
            NotAble: there is no such cluster, or Ray does not start.
        """
        self._hush()
        if ray.is_initialized():
            return
        if self.local and os.environ.get("RAY_ADDRESS"):
            address = os.environ["RAY_ADDRESS"]
            self.notes.append(f"RAY_ADDRESS={address} is not followed; cluster.address says local")
        self._set_environ()
        self.started = True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._init()
        except (ConnectionError, RuntimeError, ValueError) as error:
            message = _no_ray(self.options.cluster.address, str(error).strip() or type(error).__name__)
            raise NotAble(Failure("not-able", message, phase="startup", path=("cluster",))) from None

    def spans_nodes(self) -> bool:
        """Whether actors may live on other nodes than the driver's."""
        if not self.local:
            return True
        return not self.started and sum(node["Alive"] for node in ray.nodes()) > 1  # type: ignore[no-untyped-call]

    def _init(self) -> None:
        cluster = self.options.cluster
        wanted: dict[str, Any] = {"address": cluster.address, "log_to_driver": False, "logging_level": logging.ERROR}
        if cluster.runtime_env:
            wanted["runtime_env"] = copy.deepcopy(cluster.runtime_env)  # Ray takes ``excludes`` out of what it is given
        if self.local:
            needed = math.ceil(sum(actor.num_cpus for actor in self.graph.actors))
            wanted["num_cpus"] = cluster.num_cpus or max(os.cpu_count() or 1, needed)
            wanted["num_gpus"] = cluster.num_gpus
            wanted["include_dashboard"] = False
            wanted["resources"] = _custom_resources(self.graph)
        with held(HOLD), self._little() if self.local else contextlib.nullcontext():
            ray.init(**wanted)

    def _little(self) -> contextlib.AbstractContextManager[None]:
        """What Ray starts for this graph; a worker with an environment of its own cannot be started ahead."""
        alike = [actor for n, actor in enumerate(self.graph.actors) if not self._has_environment(n, actor)]
        workers = len(alike) + (self.options.engine.kind == "compiled")  # Ray's own actor, which reads for the driver
        if self.options.cluster.runtime_env:
            return raynames.start_little(0, port=None)
        if len(alike) < len(self.graph.actors):
            return raynames.start_little(workers, port=None)
        self._port = raynames.hold_port()
        return raynames.start_little(workers, port=self._port.getsockname()[1])

    def _has_environment(self, number: int, actor: Actor) -> bool:
        return bool(actor.env) or "runtime_env" in actor.options or nsight.is_watched(self.options, number)

    def _set_environ(self) -> None:
        """Ray's own profiler switches mean the same as cgspec's profilers, which are used instead."""
        wanted: dict[str, str | None] = dict.fromkeys(raynames.SWITCHES)
        wanted["RAY_USAGE_STATS_ENABLED"] = os.environ.get("RAY_USAGE_STATS_ENABLED", "0")
        if self.local and nsight.nsight_profile(self.options) is not None:
            wanted |= {raynames.CLEANUP: "0", "PATH": nsight.python_on_path()}
        self._environ = {name: os.environ.get(name) for name in (*wanted, raynames.BREAKPOINT)}
        _update_environ(wanted)

    def _hush(self) -> None:
        for name in raynames.NOISY:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            logger.setLevel(logging.CRITICAL + 1)
        self._undo = raynames.redirect_raylet(self._note_raylet)

    def _note_raylet(self, text: str) -> None:
        """What Ray says of its own accord is kept beside the actors' logs."""
        if self.options.log_dir is not None:
            self.options.log_dir.mkdir(parents=True, exist_ok=True)
            with open(self.options.log_dir / "ray.log", "a") as file:
                file.write(text + "\n")

    def stop(self) -> None:
        """Ends what ``start`` started."""
        if self.started and ray.is_initialized():
            raylet, session = raynames.raylet_pid(), raynames.session_folder()
            left = raynames.started_by(raylet) if raylet is not None else []
            ray.shutdown()
            raynames.see_off(left)
            if raylet is not None:  # it was one of its own
                raynames.remove_semaphores(raylet)
                raynames.remove_session(session)
        if self._port is not None:
            self._port.close()
        _update_environ(self._environ)
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
        self._undo()
        self._environ.clear()
        self._levels.clear()


def _no_ray(address: str, said: str) -> str:
    """Why Ray cannot be used, from what it says."""
    versions = re.findall(r"^\s*(Ray|Python): (\S+)$", said, re.MULTILINE)
    if said.startswith("Version mismatch") and len(versions) == 4:
        there, here = (
            " and ".join(f"{name} {version}" for name, version in each) for each in (versions[:2], versions[2:])
        )
        return f"the Ray at {address} runs {there}, and here is {here}: all nodes need the same"
    what = "Ray did not start" if address == "local" else f"there is no Ray at {address}"
    return f"{what}: {said.splitlines()[0]}"


def _update_environ(variables: Mapping[str, str | None]) -> None:
    for name, text in variables.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text


def _custom_resources(graph: Graph) -> dict[str, float]:
    """A local Ray has every custom resource that its actors ask for: on one machine they mean nothing."""
    found: dict[str, float] = {}
    for actor in graph.actors:
        for name, amount in actor.resources.items():
            found[name] = found.get(name, 0) + amount
    return found


def check_gpus(graph: Graph, options: Options) -> None:
    """A graph that needs more GPUs than this machine has is refused before Ray takes its seconds to start.

    Raises:
        NotAble: with what was asked and what is there.
    """
    asked = sum(actor.num_gpus for actor in graph.actors)
    if options.rehearse or not asked or options.cluster.address != "local":
        return
    there = options.cluster.num_gpus
    if there is None:
        there = int(resources().get("GPU", 0)) if ray.is_initialized() else raynames.count_gpus()
    if asked > there:
        names = ", ".join(f"{actor.name} ({actor.num_gpus:g})" for actor in graph.actors if actor.num_gpus)
        message = f"the actors ask for {asked:g} GPUs ({names}), and this machine has {there}"
        advice = "; --rehearse runs the same graph on CPUs"
        path = next(actor.path for actor in graph.actors if actor.num_gpus)
        raise NotAble(Failure("not-able", message + advice, phase="startup", path=path))


def resources(*, free: bool = False) -> dict[str, float]:
    """What Ray has in all, or what is free, by its resource names."""
    found: dict[str, float] = ray.available_resources() if free else ray.cluster_resources()  # type: ignore[no-untyped-call]
    return found


@contextlib.contextmanager
def defaults(**values: object) -> Iterator[None]:
    """Sets Ray's graph context in the driver for a while: it belongs to the whole process."""
    from ray.dag import DAGContext

    context = DAGContext.get_current()
    before = {name: getattr(context, name) for name in values}
    for name, value in values.items():
        setattr(context, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(context, name, value)
