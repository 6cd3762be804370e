"""Where a live run is: served by the run on a socket of its own user's, asked from another process.

The run's thread sleeps until somebody asks, so the measured path never sees it. The socket (mode 0600) stands in a
private folder of its own; its path is in the record, and both are removed when the record is closed.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cgspec.engines import Position
from cgspec.engines.waiting import chain
from cgspec.errors import Failure, NotAble
from cgspec.graph import Graph, TaskRef
from cgspec.record import FILE, Record

PREFIX, SOCKET = "cgspec-where-", "where.sock"
LONGEST = 100
"""Bytes of a socket's path: the system allows about 107."""
YOUNG = 10.0
"""Seconds in which a socket that does not listen may still begin to."""
PATIENCE = 30.0
"""Seconds that the run gets for an answer: it asks its actors first."""


class Beacon:
    """Answers whoever connects with what ``tell`` gives, as JSON, until it is closed.

    Attributes:
        path: of the socket; None where none could be made.
    """

    def __init__(self, tell: Callable[[], dict[str, Any]]) -> None:
        self._tell = tell
        self._server: socket.socket | None = None
        self.path: Path | None = None
        with suppress(OSError):
            self._open()

    def _open(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        if len(os.fsencode(folder / SOCKET)) > LONGEST:
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
        _sweep(folder.parent)
        self.path = folder / SOCKET
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(self.path))
        self.path.chmod(0o600)
        self._server.listen()
        threading.Thread(target=self._serve, args=(self._server,), name="cgspec-where", daemon=True).start()

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(PATIENCE)
                connection.sendall(self._answer())

    def _answer(self) -> bytes:
        try:
            return json.dumps(self._tell()).encode()
        except Exception as error:
            return json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()

    def __enter__(self) -> Beacon:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Answers nobody any more, and leaves nothing behind; idempotent."""
        if self._server is not None:
            with suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
        if self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)
        self._server = self.path = None


def _sweep(parent: Path) -> None:
    """Removes what killed runs of this user left: sockets on which nobody listens any more."""
    for path in parent.glob(f"{PREFIX}*/{SOCKET}"):
        with suppress(OSError):
            found = path.stat()
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > YOUNG and _is_dead(path):
                path.unlink()
                path.parent.rmdir()


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(0.1)
        return connection.connect_ex(str(path)) == errno.ECONNREFUSED


def actors_told(graph: Graph, seen: tuple[Position, ...], *, first: int = 0) -> dict[str, Any]:
    """Every actor's position, and the wait-for chain, one line each; ``first`` is the number of the first iteration."""
    counted = tuple(replace(position, iteration=position.iteration + first) for position in seen)
    actors = [_actor_told(graph, position) for position in counted]
    return {"actors": actors, "chain": list(chain(graph, _sources(graph), counted))}


def _actor_told(graph: Graph, position: Position) -> dict[str, Any]:
    return {
        "actor": graph.actors[position.actor].name,
        "pid": position.pid,
        "node": position.node,
        "reachable": position.reachable,
        "task": None if position.task is None else graph.tasks[position.task].name,
        "upcoming": None if position.upcoming is None else graph.tasks[position.upcoming].name,
        "iteration": position.iteration,
        "outside": position.outside,
        "seconds": round(position.seconds, 3),
        "stack": list(position.stack),
    }


def _sources(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Per task, what it waits for; a member of a collective waits for the operands of all members."""
    reads = {
        number: [ref.task for arg in task.args for ref in arg.refs if isinstance(ref, TaskRef)]
        for number, task in enumerate(graph.tasks)
    }
    for group in graph.groups:
        everything = [source for member in group.members for source in reads[member]]
        reads |= dict.fromkeys(group.members, everything)
    return {number: tuple(dict.fromkeys(sources)) for number, sources in reads.items()}


def run_in(folder: Path) -> Path:
    """The run that is meant: the folder itself, or of a sweep the run that was begun last."""
    runs = [path.parent for path in folder.glob(f"points/*/*/{FILE}") if not path.parent.is_symlink()]
    return max(runs, key=lambda path: path.name, default=folder)


def ask(record: Record) -> dict[str, Any]:
    """What a live run says of itself.

    Raises:
        NotAble: it runs elsewhere, or does not answer.
    """
    if record.state != "running":
        raise NotAble(Failure("not-able", f"{record.name} is not running: it is {record.state}"))
    if record.where is None or not os.path.exists(record.where):
        raise NotAble(Failure("not-able", f"{record.name} cannot be asked: {_why_not(record)}"))
    try:
        answer = json.loads(_read(record.where))
    except (OSError, ValueError) as error:
        message = f"{record.name} (pid {record.pid}) does not answer: {getattr(error, 'strerror', None) or error}"
        raise NotAble(Failure("not-able", message)) from None
    if "error" in answer:
        raise NotAble(Failure("not-able", f"{record.name} could not ask its actors: {answer['error']}"))
    return dict(answer)


def _why_not(record: Record) -> str:
    host = record.machine.host
    if host and host != platform.node():
        return f"it runs on {host}; ask there"
    return "it has only just begun, or is ending; ask again"


def _read(path: str) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(path)
        return b"".join(iter(lambda: connection.recv(65536), b""))
