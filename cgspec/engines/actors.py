"""The actors of a run: created all at once, asked by ordinary calls beside the graph, found dead or alive, ended."""

from __future__ import annotations

import contextlib
import pathlib
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import (
    ActorUnavailableError,
    GetTimeoutError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RuntimeEnvSetupError,
)

import cgspec
from cgspec import usercode
from cgspec.engines import Bounds, Options, Position
from cgspec.engines.ahead import Ahead
from cgspec.engines.couriers import Couriers, Log
from cgspec.engines.failures import actor_error, environment, made
from cgspec.engines.host import Home, Host
from cgspec.engines.placement import Places, resources_of
from cgspec.engines.process_groups import families, variables
from cgspec.engines.shipping import ONLY_SHIPPED, Shipment
from cgspec.errors import ActorDied, Failure, NotAble, RunError, Stalled
from cgspec.graph import Graph
from cgspec.invocation import Failed
from cgspec.profilers.nsight import nsight_env
from cgspec.quantities import show_duration
from cgspec.steps import Layout
from cgspec.worker import Job, WorkerPhase

UNLOADED = "failed to import on the worker"
"""What Ray says of an actor whose class cannot be read in its process."""
ANSWER = 2.0
"""Seconds in which a live actor answers an ordinary call, whatever its graph's thread does."""
QUESTIONS = 20
"""How often another node is asked for the time, before and after a phase: the quickest answer says the most."""
DEATHS = (RayActorError, OutOfMemoryError)
"""What Ray says of an actor whose process has ended, or was ended because the machine ran low on memory."""
POLL = 0.2
"""Seconds between looks at who has answered."""
UNBORN = "its constructor did not return"
BESIDE = "beside"
"""The concurrency group that says where an actor is, whatever its other threads do."""


class Actors:
    """All actors of one graph.

    Attributes:
        handles: Ray's handles, by actor.
        homes: where each lives; None before it has said so.
        shipment: what was shipped for them.
        also: what their class is declared with.
        ahead: what the driver imports before the user's code does.
        run: a word that tells their files on a cluster from those of other runs.
    """

    def __init__(self, graph: Graph, options: Options, couriers: Couriers) -> None:
        self.graph = graph
        self.options = options
        self.couriers = couriers
        self.run = uuid.uuid4().hex[:8]
        self.handles: list[Any] = []
        self.homes: list[Home | None] = [None] * len(graph.actors)
        self.shipment = Shipment()
        self.also: dict[str, Any] = {"concurrency_groups": {BESIDE: 1}}
        self.ahead = Ahead()
        self.phase = "startup"
        self.driver = ""

    def create(self, places: Places) -> None:
        """Asks Ray for all of them; nothing is waited for."""
        self.driver = ray.get_runtime_context().get_node_id()
        host = ray.remote(**self.also)(Host)
        for number in range(len(self.graph.actors)):
            try:
                self.handles.append(host.options(**self._ray_options(number, places)).remote(self._log(number)))
            except (ValueError, TypeError) as error:
                raise self._not_able(number, f"Ray refuses its options: {_last_line(error)}") from None

    def _ray_options(self, number: int, places: Places) -> dict[str, object]:
        actor = self.graph.actors[number]
        wanted = resources_of(actor, rehearse=self.options.rehearse)
        options: dict[str, object] = {
            "num_cpus": wanted.pop("CPU", 0),
            "num_gpus": wanted.pop("GPU", 0),
            "scheduling_strategy": places.strategy(number),
            "max_restarts": 0,
        }
        if "memory" in wanted:
            options["memory"] = wanted.pop("memory")
        own = made(self.graph, number, "options", actor.options, self.device(number))
        own_env = own.pop("runtime_env", None)
        runtime_env: dict[str, object] = dict(own_env) if isinstance(own_env, Mapping) else {}
        own_variables = environment(self.graph, number, self.device(number))
        if own_variables:
            given = runtime_env.get("env_vars")
            runtime_env["env_vars"] = {**(given if isinstance(given, Mapping) else {}), **own_variables}
        nsight = nsight_env(self.options, number, self.run, gpu=self.device(number) == "cuda")
        if nsight is not None:
            runtime_env.update(nsight)
        runtime_env = self.shipment.added_to(runtime_env, ray.get_runtime_context().runtime_env)
        if runtime_env:
            options["runtime_env"] = runtime_env
        return {**options, "resources": wanted, **own}

    def device(self, number: int) -> str:
        return "cuda" if self.graph.actors[number].num_gpus and not self.options.rehearse else "cpu"

    def log(self, number: int) -> str | None:
        folder = self.options.log_dir
        return None if folder is None else str(pathlib.Path(folder).resolve() / f"{self.graph.actors[number].name}.log")

    def _log(self, number: int) -> Log | None:
        path = self.log(number)
        return Log(path, self.driver) if path is not None else None

    def construct(self, layout: Layout) -> None:
        """Constructs all objects at once.

        Raises:
            TaskRaised: a constructor or an import failed.
            ActorDied, Stalled, NotAble: an actor did not come up.
        """
        homes = [handle.ask.remote("home") for handle in self.handles]
        timeouts = self.options.engine.timeouts
        came: dict[int, Any] = dict(enumerate(homes))
        if families(self.graph):
            self._collect(came, timeouts.place, "its process did not come up", self._set_home)
            came = {}
            self._form_groups()
        jobs = self._jobs(layout)
        born = [handle.ask.remote("born", job) for handle, job in zip(self.handles, jobs, strict=True)]
        self._import_here()
        self._collect(came, timeouts.place, "its process did not come up", self._set_home)
        self._collect(dict(enumerate(born)), timeouts.start, UNBORN, self._check_born)

    def _form_groups(self) -> None:
        """Tells the members of process groups their ranks, and where they meet; then their constructors may run."""
        within = self.options.engine.timeouts.place
        firsts = {members[0]: () for members in families(self.graph).values()}
        ports = self.ask("free_port", firsts, within=within)
        nodes = [home.node_id if home else "" for home in self.homes]
        addresses = [home.address if home else "" for home in self.homes]
        told = variables(self.graph, nodes, addresses, ports)
        self.ask("set_environment", {number: (found,) for number, found in told.items()}, within=within)

    def _jobs(self, layout: Layout) -> list[Job]:
        root = str(self.options.root.resolve())
        return [
            Job(root, actor, layout.steps[n], self.device(n), self.shipment.root)
            for n, actor in enumerate(self.graph.actors)
        ]

    def take_over(self, graph: Graph, options: Options, layout: Layout, *, fresh: bool) -> None:
        """Gives the live actors the steps of another graph.

        Raises:
            TaskRaised: a constructor failed.
        """
        self.graph, self.options, self.phase = graph, options, "startup"
        self._import_here()
        arguments = {number: (job, fresh, self._log(number)) for number, job in enumerate(self._jobs(layout))}
        answers = self.ask("taken_over", arguments, within=options.engine.timeouts.start, what=UNBORN)
        self._follow_other_logs()
        for number, born in answers.items():
            self._check_born(number, born)

    def _follow_other_logs(self) -> None:
        self.couriers.settle()
        for number, home in enumerate(self.homes):
            if home is not None:
                self.couriers.follow(self.graph.actors[number].name, home.node_id, self._log(number))

    def _import_here(self) -> None:
        """Imports the user's classes in the driver too: results are read by the same names."""
        self.ahead.wait()
        usercode.install(self.options.root)
        for number, actor in enumerate(self.graph.actors):
            try:
                usercode.load(actor.class_ref)
            except usercode.CannotLoad as error:
                failed = Failed("import", f"{error} (in the driver)", trace=error.trace)
                raise actor_error(self.graph, number, failed) from None

    def _set_home(self, number: int, home: Home) -> None:
        self.homes[number] = home
        self.couriers.post(
            home.node_id, home.address, self.shipment.added_to({}, ray.get_runtime_context().runtime_env)
        )
        self.couriers.follow(self.graph.actors[number].name, home.node_id, self._log(number))

    def _check_born(self, number: int, born: object) -> None:
        if isinstance(born, Failed):
            if born.kind == "import" and self.shipment.root is not None:
                born = replace(born, message=f"{born.message}; {ONLY_SHIPPED}")
            raise actor_error(self.graph, number, born, node=self.address(number))

    def address(self, number: int) -> str | None:
        home = self.homes[number]
        return home.address if home is not None else None

    def _collect(self, refs: Mapping[int, Any], within: float, what: str, take: Callable[[int, Any], None]) -> None:
        """Takes the answers as they come; ``within`` counts anew whenever one has come."""
        numbers = {ref: number for number, ref in refs.items()}
        deadline = time.monotonic() + within
        while numbers:
            ready, _ = ray.wait(list(numbers), timeout=POLL)
            for ref in ready:
                number = numbers.pop(ref)
                take(number, self._answer(number, ref))
                deadline = time.monotonic() + within
            if time.monotonic() > deadline:
                number = next(iter(numbers.values()))
                raise self._late(number, f"{what} within {show_duration(within)}")

    def _answer(self, number: int, ref: Any) -> Any:
        try:
            return ray.get(ref)
        except RuntimeEnvSetupError as error:
            raise self._not_able(number, f"its environment could not be set up: {_last_line(error)}") from None
        except DEATHS as error:
            if UNLOADED in str(error):
                raise self._not_able(number, _not_loaded(str(error))) from None
            raise self.died(number, error) from None

    def ask(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], *, within: float, what: str | None = None
    ) -> dict[int, Any]:
        """Calls a method of some workers beside the graph and waits for all answers; by actor.

        Args:
            what: what it is that did not come in time, for the sentence of a failure.
        """
        answers: dict[int, Any] = {}
        calls = {number: self.handles[number].ask.remote(method, *args) for number, args in arguments.items()}
        self._collect(calls, within, what or f"it did not answer ({method})", answers.__setitem__)
        return answers

    def clocks(self) -> dict[str, Bounds]:
        """How far the clocks of other machines are off, by their nodes' addresses; of one that is silent, nothing."""
        here: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        homes = zip(self.handles, self.homes, strict=True)
        others = {home.address: handle for handle, home in homes if home is not None and home.address != here}
        found = {}
        for address, handle in others.items():
            with contextlib.suppress(RayError, GetTimeoutError):
                found[address] = _clock(handle)
        return found

    def positions(self) -> tuple[Position, ...]:
        """Where every actor is; one that does not answer is unreachable."""
        return self._positions(range(len(self.handles)))

    def _positions(self, numbers: Sequence[int]) -> tuple[Position, ...]:
        calls = [self.handles[number].ask.options(concurrency_group=BESIDE).remote("where") for number in numbers]
        ready, _ = ray.wait(calls, num_returns=len(calls), timeout=ANSWER) if calls else ([], [])
        return tuple(
            self._position(number, ref if ref in ready else None) for number, ref in zip(numbers, calls, strict=True)
        )

    def recorded(self) -> dict[int, WorkerPhase]:
        """What the recorders of the actors that answer hold."""
        calls = {handle.ask.remote("recorded"): number for number, handle in enumerate(self.handles)}
        ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=ANSWER)
        found = {}
        for ref in ready:
            with contextlib.suppress(RayError, GetTimeoutError):
                found[calls[ref]] = ray.get(ref, timeout=ANSWER)
        return found

    def _position(self, number: int, ref: Any) -> Position:
        home = self.homes[number]
        known = {"pid": home.pid if home else 0, "node": home.address if home else ""}
        if ref is not None:
            with contextlib.suppress(RayError, GetTimeoutError):
                return Position(number, **{**known, **vars_of(ray.get(ref, timeout=ANSWER))})
        return Position(number, reachable=False, **known)  # type: ignore[arg-type]

    def died(self, number: int, error: BaseException) -> ActorDied:
        spec, home = self.graph.actors[number], self.homes[number]
        where = f" (pid {home.pid} on {home.address})" if home else ""
        message = f"actor {spec.name}{where} died: {_reason(error)}"
        if (log := self.log(number)) is not None:
            message += f"; its log is {log}"
        return ActorDied(
            Failure("actor-died", message, phase=self.phase, actor=spec.name, node=self.address(number), path=spec.path)
        )

    def _late(self, number: int, what: str) -> RunError:
        spec = self.graph.actors[number]
        (seen,) = self._positions([number])
        return Stalled(
            Failure(
                "stall",
                f"actor {spec.name}: {what}" + (f"; it is at {seen.stack[-1]}" if seen.stack else ""),
                phase=self.phase,
                actor=spec.name,
                node=self.address(number),
                path=spec.path,
                traceback="\n".join(seen.stack),
            )
        )

    def _not_able(self, number: int, what: str) -> NotAble:
        spec = self.graph.actors[number]
        return NotAble(
            Failure("not-able", f"actor {spec.name}: {what}", phase=self.phase, actor=spec.name, path=spec.path)
        )

    def kill(self) -> None:
        """Ends every process at once."""
        for handle in self.handles:
            with contextlib.suppress(Exception):
                ray.kill(handle, no_restart=True)


def _clock(handle: Any) -> Bounds:
    """What some questions allow: see ``clocks.settle``."""
    allowed = []
    for _ in range(QUESTIONS):
        asked = time.monotonic_ns()
        told = ray.get(handle.ask.remote("clock"), timeout=ANSWER)
        allowed.append((asked - told, time.monotonic_ns() - told))
    return max(low for low, _ in allowed), min(high for _, high in allowed)


def vars_of(spot: Any) -> dict[str, Any]:
    return dict(vars(spot))


def _reason(error: BaseException) -> str:
    """Why a process ended, from Ray's page of text."""
    text = str(error)
    if isinstance(error, ActorUnavailableError) or "its node has died" in text:
        return "its node died, or cannot be reached any more"
    if (memory := re.search(r"low on memory.*? was (\S+ used / \S+ limit)", text, re.DOTALL)) is not None:
        return f"Ray ended it because its node is low on memory ({memory.group(1)})"
    detail = re.search(r"Worker exit detail: (.*)", text)
    kind = re.search(r"Worker exit type: (\S+)", text)
    if detail is None:
        return next((line.strip() for line in text.splitlines() if line.strip()), "its process ended")
    said = detail.group(1).strip()
    if "connection error code 2" in said:
        return "its process ended without a word (killed by a signal, out of memory, or crashed in C code)"
    return f"{kind.group(1)}: {said}" if kind else said


def _not_loaded(text: str) -> str:
    """What is missing on an actor's node, from Ray's page of text; into a container nothing is shipped."""
    node = re.search(r"ip=([^,)]+)", text)
    where = f" {node.group(1)}" if node else ""
    said = [line.strip() for line in text.splitlines() if line.strip()][-1]
    return f"cgspec {cgspec.__version__} is not on its node{where}: {said}; a container's image has to bring it"


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
