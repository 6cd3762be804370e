"""The worker: hosts one actor's object of the user and runs its steps by number, in any engine; it imports no ray.

A failure of the user's code is a value, ``Failed``, made of strings only. It travels along the graph in place of the
result and every step that would read it hands it on, so that no exception of the user's has to be pickled and every
step runs once in every iteration.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cgspec import collectives, usercode
from cgspec.device_times import DeviceRecorder, DeviceTimes, Pool, cuda_events
from cgspec.fusion import chained
from cgspec.graph import Actor
from cgspec.invocation import FLUSH, Failed, FailedTask, Invocation, made_all
from cgspec.looks import Looked
from cgspec.payloads import ATOMS, to_host
from cgspec.profilers import Ranges, Watch, WatchJob, make_watch
from cgspec.raynames import READ_ERROR, read_error
from cgspec.recorder import Held, Recorder, capacity_for
from cgspec.shortcut import shortcut
from cgspec.steps import Chain, Enter, Forward, Leave, Run, Step
from cgspec.values import Scope

now = time.monotonic_ns


@dataclass(frozen=True)
class Job:
    """What a worker is made for.

    Attributes:
        root: the spec's folder, in the driver.
        package: Ray's address of the folder's copy, where it was shipped.
    """

    root: str
    actor: Actor
    steps: tuple[Step | Chain, ...]
    device: str
    package: str | None = None


@dataclass(frozen=True)
class Born:
    """A worker whose object was constructed."""

    seconds: float


@dataclass
class WorkerPhase:
    """What a worker recorded in a phase: times by task, peak memory in bytes, files by name, sentences about what was
    not possible, and what was seen of the tasks that are looked at.

    ``device`` are times by the GPU's clock, on the host's to within ``device_error`` ns, where there are any.
    """

    times: dict[int, Held]
    peak: int
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    looked: Mapping[int, Looked] = field(default_factory=dict)
    device: Mapping[int, Held] = field(default_factory=dict)
    device_error: int | None = None


@dataclass(frozen=True)
class Spot:
    """Where a worker is; see ``engines.Position``."""

    pid: int
    task: int | None
    upcoming: int | None
    iteration: int
    seconds: float
    ended: int
    stack: tuple[str, ...]
    failed: Failed | None
    outside: str


class Worker:
    """One actor member's worker; ``construct`` first, then ``begin``, ``run`` as the graph says, ``end``.

    Attributes:
        remote: whether values come from other processes.
        sendable: why a result cannot be sent to another process, or None.
        calls: what is done for each step in this phase; the same list in all of them.
        events: what makes the GPU's events, where its process can.
    """

    remote = False
    events = staticmethod(cuda_events)

    def __init__(self) -> None:
        self.sendable: Callable[[object], str | None] | None = None
        self.calls: list[Run] = []
        self._steps: list[Invocation] = []
        self._chains: list[Chain] = []
        self._tasks: list[int] = []
        self._user: Any = None
        self._thread, self._doing = 0, ""
        self._current: Invocation | None = None
        self._since = now()
        self._last: Invocation | None = None
        self._watch: Watch | None = None
        self._barred: Failed | None = None
        self._looks: dict[int, Looked] = {}
        self._has_gpu = False
        self._pool: Pool | None = None
        self._device: DeviceRecorder | None = None
        self._begin_rings(1)

    def root_of(self, job: Job) -> pathlib.Path:
        """Where the user's code is, in this process."""
        return pathlib.Path(job.root)

    def construct(self, job: Job) -> Born | Failed:
        """Imports the user's class and constructs the object."""
        began = now()
        usercode.install(self.root_of(job), shown=job.root if job.package else None)
        try:
            with self._outside("its constructor"):
                self._construct(job, Scope(device=job.device, load=usercode.load))
        except usercode.CannotLoad as error:
            return Failed("import", str(error), trace=error.trace)
        except FailedTask as error:
            return error.failed
        except (Exception, SystemExit) as error:
            what, trace = usercode.describe(error)
            return Failed("constructor", what, trace=trace)
        return Born((now() - began) / 1e9)

    def _construct(self, job: Job, scope: Scope) -> None:
        user_class = usercode.load(job.actor.class_ref)
        positional = made_all(dict(enumerate(job.actor.args)), "args", "its argument {}", scope)
        named = made_all(job.actor.kwargs, "args", "its argument {}", scope)
        self._user = user_class(*positional.values(), **named)
        self._has_gpu = job.device == "cuda"
        self._prepare(job.steps, scope)

    def adopt(self, job: Job, *, fresh: bool) -> Born | Failed:
        """Takes the steps of another graph for the object that is here, or (``fresh``) for one that is made anew."""
        if fresh:
            return self.construct(job)
        began = now()
        try:
            self._prepare(job.steps, Scope(device=job.device, load=usercode.load))
        except FailedTask as error:
            return error.failed
        return Born((now() - began) / 1e9)

    @contextlib.contextmanager
    def _outside(self, what: str) -> Iterator[None]:
        """Lets ``where`` say what of the user's runs outside the graph."""
        self._doing, self._thread, self._since = what, threading.get_ident(), now()
        try:
            yield
        finally:
            self._doing, self._since = "", now()

    def _prepare(self, given: tuple[Step | Chain, ...], scope: Scope) -> None:
        self._chains = [step for step in given if isinstance(step, Chain)]
        steps = [step for step in given if not isinstance(step, Chain)]
        self._tasks = list(dict.fromkeys(step.task for step in steps if not isinstance(step, Forward)))
        slots = {task: slot for slot, task in enumerate(self._tasks)}
        self._steps = [Invocation(step, slots[step.task], self._user, scope) for step in steps]
        calls = [ready for ready in self._steps if not isinstance(ready.special, Forward)]
        for ready, following in zip(calls, [*calls[1:], *calls[:1]], strict=True):
            ready.following = following
        if calls:
            calls[0].first = calls[-1].last = True
            self._last = calls[-1]
        self._begin_rings(1)

    def call(self, method: str, kwargs: Mapping[str, object]) -> object:
        """Calls the user's method outside the graph; what it raises becomes a ``Failed``."""
        try:
            with self._outside(f"the call of {method}"):
                return getattr(self._user, method)(**kwargs)
        except (Exception, SystemExit) as error:
            what, trace = usercode.describe(error)
            return Failed("raised", what, trace=trace)

    def begin(self, iterations: int, watch: WatchJob | Ranges | None = None, looks: tuple[int, ...] = ()) -> None:
        """Starts a phase; the graph must be idle. ``looks`` are tasks whose results are looked at."""
        self._looks = {task: Looked() for task in looks if task in self._tasks}
        self._watch = make_watch(watch) if isinstance(watch, WatchJob) else watch
        self._begin_rings(iterations, on_device=self._has_gpu)
        self._last = next((ready for ready in self._steps if ready.last), None)
        self._current, self._since, self._thread = None, now(), 0

    def _begin_rings(self, iterations: int, *, on_device: bool = False) -> None:
        self.recorder = Recorder(len(self._tasks), capacity_for(iterations, len(self._tasks)))
        if on_device and self._pool is None and (make := self.events()) is not None:
            self._pool = Pool(make)
        pool = self._pool if on_device else None
        self._device = DeviceRecorder(self.recorder.counts, iterations, pool) if pool is not None else None
        steps = [shortcut(self, ready) for ready in self._steps]
        self.calls[:] = [*steps, *(chained(chain, steps) for chain in self._chains)]

    def end(self) -> WorkerPhase:
        """Ends the phase; the graph must be idle."""
        watch, self._watch = self._watch, None
        files, notes = watch.finish() if watch is not None else ({}, ())
        device = self._device.finish() if self._device is not None else DeviceTimes()
        told = {self._tasks[slot]: held for slot, held in device.times.items()}
        recorded = self.recorded()
        notes = (*notes, *device.notes)
        return replace(recorded, files=files, notes=notes, looked=self._looks, device=told, device_error=device.error)

    def recorded(self) -> WorkerPhase:
        """What the recorder holds so far, for a phase that cannot be ended; called from another thread."""
        times = {task: self.recorder.read(slot) for slot, task in enumerate(self._tasks)}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return WorkerPhase(times, peak)

    def run(self, number: int, *values: object) -> object:
        """Runs a step on the values of its ``reads``; what it hands out is a tuple where there are several ports."""
        return self.calls[number](values)

    def run_step(self, ready: Invocation, values: tuple[object, ...]) -> object:
        """The long way through a step, which does all that there may be to do."""
        if ready.special is not None:
            return self._run_special(ready, ready.special, values)
        iteration = self.recorder.counts[ready.slot]
        failed, values = self._received(ready, values, iteration)
        if failed == FLUSH:
            return self._flush(ready)
        if ready.first:
            self._thread = threading.get_ident()
            if self._watch is not None:
                self._watch.before(iteration)
        if failed is not None:
            self.recorder.mark(ready.slot, 0, 0)
            self._last, self._since = ready, now()
            result: object = failed
        else:
            result = self._execute(ready, iteration, values)
        if ready.last and self._watch is not None:
            self._watch.after(iteration)
        return self._hand_out(ready, result, iteration)

    def _flush(self, ready: Invocation) -> object:
        if ready.last and self._watch is not None:
            self._watch.cut()
        return ready.hand_out(FLUSH)

    def _received(
        self, ready: Invocation, values: tuple[object, ...], iteration: int
    ) -> tuple[Failed | None, tuple[object, ...]]:
        """The failure among the values, or in looking at them, for their classes are the user's; and the values."""
        try:
            found = [value for value in values if type(value) not in ATOMS]
            for value in found:
                if type(value) is Failed or type(value).__name__ == READ_ERROR:
                    return self._failed(value, ready, iteration), values
            return None, ready.take_in(values) if found and self.remote else values
        except Exception as error:
            return Failed("unreadable", usercode.describe(error)[0], ready.task, iteration), values

    def _failed(self, value: Any, ready: Invocation, iteration: int) -> Failed:
        if isinstance(value, Failed):
            return value
        return Failed("unreadable", read_error(value), ready.task, iteration)

    def _execute(self, ready: Invocation, iteration: int, values: tuple[object, ...]) -> object:
        """Calls the user's method and times it."""
        watch = self._watch
        if watch is not None:
            watch.enter(ready.name)
        if self._device is not None:
            self._device.enter(ready.slot)
        self._since = began = now()
        self._current = ready
        try:
            result = ready.call(values)
        except BaseException as error:
            result = self._raised(ready, error)
        ended = now()
        if self._device is not None:
            self._device.leave(ready.slot)
        self._current = None
        self._last, self._since = ready, ended
        self.recorder.mark(ready.slot, began, ended)
        if watch is not None:
            watch.leave()
        return result

    def _raised(self, ready: Invocation, error: BaseException) -> Failed:
        """What stands for a result; a Ctrl-C that found the method at work is not its own, and goes on."""
        if isinstance(error, KeyboardInterrupt) and not self.remote:
            raise error
        what, trace = usercode.describe(error)
        return Failed("raised", what, ready.task, self.recorder.counts[ready.slot], trace)

    def _hand_out(self, ready: Invocation, result: object, iteration: int) -> object:
        """Checks the number of returns, and whether what travels can; looks where it is to be looked."""
        if type(result) is not Failed and ready.returns is not None:
            result = ready.check_returns(result, iteration)
        looks = bool(self._looks) and ready.task in self._looks and not isinstance(ready.special, Forward)
        if looks and type(result) is not Failed:
            self._looks[ready.task].look(result, iteration)
        if ready.travels and self.sendable is not None and type(result) is not Failed:
            reasons = map(self.sendable, result if ready.returns else (result,))  # type: ignore[call-overload]
            if (reason := next(filter(None, reasons), None)) is not None:
                result = Failed("unserialisable", reason, ready.task, iteration)
        if ready.strict and type(result) is Failed:
            raise FailedTask(result)
        return ready.hand_out(result)

    def _run_special(self, ready: Invocation, step: Forward | Enter | Leave, values: tuple[object, ...]) -> object:
        if isinstance(step, Forward):
            return self._forward(ready, step, values[0])
        iteration = self.recorder.counts[ready.slot]
        found = (value for value in values if type(value) is Failed or type(value).__name__ == READ_ERROR)
        failed = next((self._failed(value, ready, iteration) for value in found), None)
        if isinstance(step, Enter):
            return self._enter(ready, step, values, failed or _unfit(step, values, iteration))
        return self._leave(ready, step, values, failed)

    def _enter(self, ready: Invocation, step: Enter, values: tuple[object, ...], failed: Failed | None) -> object:
        """Hands over the operands of a collective; from here to ``_leave`` the actor is in its task."""
        if ready.first:
            self._thread = threading.get_ident()
            if self._watch is not None:
                self._watch.before(self.recorder.counts[ready.slot])
        if failed is not None:
            self._barred = self._barred or failed
            self._last, self._since = ready, now()
            if step.strict and self.remote:
                raise FailedTask(failed)
            return ready.hand_out(failed)
        if self._watch is not None:
            self._watch.enter(ready.name)
        if self._device is not None:
            self._device.enter(ready.slot)
        self._since = now()
        self._current = ready
        alone = step.size == 1
        return ready.hand_out(tuple([collectives.ready(value, alone=alone) for value in values]))

    def _leave(self, ready: Invocation, step: Leave, values: tuple[object, ...], failed: Failed | None) -> object:
        iteration = self.recorder.counts[ready.slot]
        entered, began, ended = self._current is not None, self._since, now()
        self._current = None
        if entered and failed is None and self._device is not None:
            self._device.leave(ready.slot)
        self._last, self._since = ready, ended
        self.recorder.mark(ready.slot, *((0, 0) if failed is not None else (began, ended)))
        if entered and self._watch is not None:
            self._watch.leave()
        if ready.last and self._watch is not None:
            self._watch.after(iteration)
        result = failed or (tuple(values) if step.names else values[0])
        return self._hand_out(ready, result, iteration)

    def _forward(self, ready: Invocation, step: Forward, value: Any) -> object:
        if type(value) is not Failed:
            value = value if step.ret is None else value[step.ret]
            value = to_host(value) if step.host else value
        return self._hand_out(ready, value, max(0, self.recorder.counts[ready.slot] - 1))

    def rounds(self, number: int) -> int:
        """How often the task of a step was run in this phase."""
        return self.recorder.counts[self._steps[number].slot]

    def where(self) -> Spot:
        """Where the graph's thread is; called from another thread."""
        current, since, doing = self._current, self._since, self._doing
        upcoming = None if current or doing else (self._last.following if self._last else None)
        shown = current or upcoming
        frame = sys._current_frames().get(self._thread) if current or doing else None
        return Spot(
            pid=os.getpid(),
            task=current.task if current else None,
            upcoming=upcoming.task if upcoming else None,
            iteration=self.recorder.counts[shown.slot] if shown else 0,
            seconds=(now() - since) / 1e9,
            ended=sum(self.recorder.counts),
            stack=usercode.stack_of(frame) if frame is not None else (),
            failed=self._barred,
            outside=doing,
        )


def _unfit(step: Enter, values: tuple[object, ...], iteration: int) -> Failed | None:
    reason = collectives.unfit(step.collective, step.size, values)
    return Failed("raised", reason, step.task, iteration) if reason is not None else None
