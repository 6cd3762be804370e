"""How far a run is, on a terminal's stderr; lines of phases where there is no terminal, or it is shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from cgspec.phases import Observer
from cgspec.views.taming import printable


class _Lines:
    """One line for each phase."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def phase(self, name: str, total: int) -> None:
        print(f"{name}: {total} iterations" if total else name, file=self.stream, flush=True)

    def progress(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        print(printable(text), file=self.stream, flush=True)


class _Bar:
    """A bar that is drawn over itself."""

    def __init__(self, progress: Any) -> None:
        self.bar = progress
        self.task: Any = None

    def phase(self, name: str, total: int) -> None:
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(name, total=total or None)

    def progress(self, done: int) -> None:
        if self.task is not None:
            self.bar.update(self.task, completed=done)

    def note(self, text: str) -> None:
        self.bar.console.print(printable(text), markup=False, highlight=False)


@contextmanager
def observer(stream: IO[str], *, shared: bool) -> Iterator[Observer]:
    """Watches a run on ``stream``.

    Args:
        shared: whether user code prints, and debuggers ask, on the same terminal: a bar would be drawn over them.
    """
    if shared or not stream.isatty():
        yield _Lines(stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        yield _Bar(progress)
