"""Brings home what is written on other nodes: the actors' logs while the run goes on, and files once it is over.

A courier is a small actor of its own on each of those nodes. It does not disturb the graph's processes, and it outlives
them, however they end.
"""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cgspec import raynames
from cgspec.profilers import nsight

PERIOD = 1.0
"""Seconds between looks at what the actors have written."""
PART = 4 * 2**20
"""Bytes that travel at a time."""
PATIENCE = 10.0
"""Seconds in which a courier answers; the first answer waits for its process."""


@dataclass(frozen=True)
class Log:
    """Where an actor's output goes.

    Attributes:
        path: the file in the run folder.
        node_id: Ray's id of the node whose file that is, the driver's.
    """

    path: str
    node_id: str

    def here(self) -> pathlib.Path:
        """The file that the calling process's node has of it: on another node, one among Ray's own logs."""
        if ray.get_runtime_context().get_node_id() == self.node_id:
            return pathlib.Path(self.path)
        run = hashlib.sha256(self.path.encode()).hexdigest()[:12]
        return raynames.session_folder() / "logs" / f"cgspec-{run}-{pathlib.PurePath(self.path).name}"


class Courier:
    """Reads what lies on its node."""

    def read_log(self, log: Log, offset: int) -> bytes:
        return _part(log.here(), offset)

    def remove_log(self, log: Log) -> None:
        log.here().unlink(missing_ok=True)

    def look(self, names: Sequence[str]) -> dict[str, nsight.Look]:
        return nsight.look(nsight.folder(), names)

    def read_report(self, name: str, offset: int) -> bytes:
        return _part(nsight.folder() / name, offset)


def _part(path: pathlib.Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(PART)
    except FileNotFoundError:
        return b""


@dataclass
class _Stream:
    """One actor's log on its way; ``offset`` bytes of it are here."""

    actor: str
    node_id: str
    log: Log
    offset: int = 0


class Couriers:
    """The couriers of a run, one per node that is not the driver's and has actors.

    Args:
        notes: gets a sentence about what could not be brought home.
    """

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self._posts: dict[str, Any] = {}
        self._addresses: dict[str, str] = {}
        self._streams: list[_Stream] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._reading = threading.Lock()

    def post(self, node_id: str, address: str, runtime_env: Mapping[str, object]) -> None:
        """Sends a courier to a node, if none is there; nothing is waited for."""
        if node_id in self._posts or node_id == ray.get_runtime_context().get_node_id():
            return
        where = NodeAffinitySchedulingStrategy(node_id, soft=False)
        options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": where, "runtime_env": dict(runtime_env)}
        self._posts[node_id] = ray.remote(Courier).options(**options).remote()
        self._addresses[node_id] = address

    def follow(self, actor: str, node_id: str, log: Log | None) -> None:
        """Brings an actor's log home from now on, if it is not written here."""
        if log is None or node_id not in self._posts:
            return
        self._streams = [*self._streams, _Stream(actor, node_id, log)]
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_reading, name="cgspec-couriers", daemon=True)
            self._thread.start()

    def _keep_reading(self) -> None:
        while not self._over.wait(PERIOD):
            for stream in self._streams:
                with contextlib.suppress(RayError, GetTimeoutError, OSError):
                    self._read(stream)

    def _read(self, stream: _Stream) -> bool:
        """Brings the next part of a log home; False: there is no more."""
        with self._reading:
            post = self._posts[stream.node_id]
            part: bytes = ray.get(post.read_log.remote(stream.log, stream.offset), timeout=PATIENCE)
            if part:
                path = pathlib.Path(stream.log.path)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as file:
                    file.write(part)
                stream.offset += len(part)
            return bool(part)

    def catch_up(self) -> None:
        """Brings home what is written by now: after a run whose actors live on, its logs are cleaned of secrets."""
        for stream in self._streams:
            with contextlib.suppress(RayError, GetTimeoutError, OSError):
                while self._read(stream):
                    pass

    def settle(self) -> None:
        """Brings home the rest of all logs that are followed, which nobody writes any more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(PATIENCE)
        self._thread, self._over = None, threading.Event()
        streams, self._streams = self._streams, []
        gone: set[str] = set()
        for stream in streams:
            try:
                self._settle(stream, gone)
            except (RayError, GetTimeoutError, OSError):
                gone.add(stream.node_id)
                where = f"actor {stream.actor} on node {self._addresses[stream.node_id]}"
                self.notes.append(f"the log of {where} is here only in part")

    def _settle(self, stream: _Stream, gone: set[str]) -> None:
        if stream.node_id in gone:
            raise GetTimeoutError
        while self._read(stream):
            pass
        ray.get(self._posts[stream.node_id].remove_log.remote(stream.log), timeout=PATIENCE)

    def reports(self, names: Mapping[str, str], node_id: str) -> nsight.Source:
        """Nsight's reports of a node: of the driver's own, or fetched from another.

        Args:
            names: the reports' names to the actors'.
        """
        if node_id not in self._posts:
            return nsight.local(names)
        post, wanted = self._posts[node_id], list(names)

        def look() -> dict[str, nsight.Look]:
            try:
                found: dict[str, nsight.Look] = ray.get(post.look.remote(wanted), timeout=PATIENCE)
            except (RayError, GetTimeoutError):
                return {}
            return found

        return nsight.Source(names, self._addresses[node_id], look, self._fetcher(post))

    def _fetcher(self, post: Any) -> Callable[[str], Iterator[bytes]]:
        def fetch(name: str) -> Iterator[bytes]:
            offset = 0
            try:
                while part := ray.get(post.read_report.remote(name, offset), timeout=PATIENCE):
                    offset += len(part)
                    yield part
            except (RayError, GetTimeoutError) as error:
                raise OSError(f"its node does not answer ({type(error).__name__})") from None

        return fetch

    def finish(self) -> None:
        """Brings home what is left, and ends the couriers."""
        self.settle()
        for post in self._posts.values():
            with contextlib.suppress(Exception):
                ray.kill(post, no_restart=True)
        self._posts.clear()
