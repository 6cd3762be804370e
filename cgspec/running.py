"""Runs a valid graph: phases on live actors, and a run folder that is closed before the engine, whatever happens.

``run`` returns a Result for every end that a run can have, a raised task and Ctrl-C included; it raises only where no
run folder can be made (NotAble), and for our own mistakes, after the record was closed.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgspec.chronicle import Chronicle
from cgspec.conditions import Seen
from cgspec.engines import ENGINES, Engine, Options
from cgspec.errors import Failure, Interrupted, NotAble, RunError
from cgspec.expectations import Judge, Verdict
from cgspec.feed import Feed
from cgspec.folder import RunFolder
from cgspec.graph import Graph
from cgspec.interrupts import Signals
from cgspec.job import Job as Job
from cgspec.looks import judge_looks
from cgspec.metrics import judge_metrics
from cgspec.observing import Observed
from cgspec.outputs import formed
from cgspec.phases import NOBODY, Observer, Pass, Passed, Plan
from cgspec.plans import Setup, options_of, plans_of, setups_of, skipped
from cgspec.record import Record
from cgspec.setting_up import set_up
from cgspec.whereabouts import Beacon, actors_told


@dataclass
class Result:
    """How a run ended.

    Attributes:
        record: as saved in ``run_dir``.
        first, last: the outputs of the first and the last measured iteration, in the form of the spec; None if there
            were none.
        error: what ended it early, if anything did.
        observed: where the job asked for it: of every condition on an output that failed, what would have held.
    """

    record: Record
    run_dir: Path
    exit_code: int
    first: object = None
    last: object = None
    error: RunError | None = None
    observed: tuple[Observed, ...] = ()

    @property
    def status(self) -> str:
        """The word of ``run --json``."""
        return self.record.status

    def _repr_svg_(self) -> str | None:
        from cgspec.views.of_run import draw

        return draw(self.run_dir)


class _Silent:
    """Nobody watches."""

    def phase(self, name: str, total: int) -> None:
        pass

    def progress(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass


SILENT = _Silent()


@dataclass
class Live:
    """Actors that outlive a run, for the next one that needs the same."""

    engine: Engine | None = None

    def end(self) -> None:
        """Takes them down."""
        if self.engine is not None:
            self.engine.teardown()
        self.engine = None


def run(job: Job, observer: Observer = SILENT, *, live: Live | None = None) -> Result:
    """Runs the job; see the module.

    Args:
        live: where a run leaves its actors when it ends well, and finds those of the run before it.
    """
    began = time.monotonic() if job.began is None else job.began
    setups = setups_of(job.spec, job.graph, job.read)
    with ExitStack() as stack:
        stack.enter_context(_collecting())
        signals = stack.enter_context(Signals())
        folder = RunFolder(job.out, job.name or job.graph.name)
        ended = _Run(job, observer, signals, folder, setups, began, live)
        stack.callback(ended.close_folder)
        stack.callback(ended.teardown)
        stack.callback(ended.close_record)
        ended.go()
    return ended.result()


@contextmanager
def _collecting() -> Iterator[None]:
    """Garbage is collected during a run, but for what is there before it: going through all of Ray takes a while."""
    before = gc.isenabled()
    gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        gc.unfreeze()
        if not before:
            gc.disable()


class _Run:
    """One run: ``go``, then ``close_record``, ``teardown``, ``close_folder``, in this order."""

    def __init__(
        self,
        job: Job,
        observer: Observer,
        signals: Signals,
        folder: RunFolder,
        setups: Sequence[Setup],
        began: float,
        live: Live | None,
    ) -> None:
        self.job, self.observer, self.signals, self.setups, self.began = job, observer, signals, setups, began
        self.folder, self.live = folder, live
        self.plans = plans_of(job.spec, job.graph, folder.path, only=job.only, rehearse=job.rehearse)
        self.chronicle = Chronicle(job, folder, observer)
        self.engine: Engine | None = None
        self.feed = Feed(job.graph)
        self.judge = _Looker(self.feed, Judge(job.graph, job.spec.expect, job.read, observe=job.observe))
        self.error: RunError | None = None
        self.crashed = False
        self.measured: Passed | None = None
        self.current: Pass | None = None

    def go(self) -> None:
        """Everything up to the last phase; the errors that a run can end with stay in ``error``."""
        self.crashed = True
        try:
            with Beacon(self._whereabouts) as beacon:
                self.chronicle.reachable(beacon.path)
                self._start()
                self._phases()
        except RunError as error:
            self.error = self.error or error
        except KeyboardInterrupt:
            self.error = self.error or self._interrupted()
        except SystemExit as error:
            if error.code != signal.SIGTERM:
                raise
            self.error = self.error or self._interrupted()
        self.crashed = False

    def _start(self) -> None:
        spec, job = self.job.spec, self.job
        options = options_of(spec, job.graph, job.root, rehearse=job.rehearse, log_dir=self.folder.path / "logs")
        for reason in skipped(spec, rehearse=job.rehearse).values():
            self.chronicle.note(reason)
        self.observer.phase("startup", 0)
        self.engine = self._taken_over(options)
        if self.engine is None:
            self.engine = _engine(job.graph, options, spec.engine.kind)
            self.engine.place()
        self.signals.arm()
        self.engine.compile()
        self.signals.arm()
        gc.freeze()
        self.chronicle.placed(self.engine)

    def _taken_over(self, options: Options) -> Engine | None:
        """The engine of the run before this one, where its actors are those that this one needs."""
        engine = self.live.engine if self.live is not None else None
        if engine is None or self.live is None:
            return None
        self.live.engine = None
        if engine.kind == self.job.spec.engine.kind and engine.renew(self.job.graph, options):
            return engine
        engine.teardown()
        return None

    def _phases(self) -> None:
        for number, plan in enumerate(self.plans):
            anew = number > 0 and self.job.spec.run.reset
            if anew:
                self._reset()
            assert self.engine is not None
            set_up(self.engine, self.setups, self.feed, first=number == 0 or anew)
            passed = self._pass(plan)
            if passed.interrupted:
                raise self._interrupted()
            if passed.error is not None:
                self.error = self.error or passed.error
                if passed.ended:
                    return

    def _reset(self) -> None:
        assert self.engine is not None
        self.engine.reset()

    def _pass(self, plan: Plan) -> Passed:
        assert self.engine is not None
        measures = plan.phase.name == "measure"
        self.current = Pass(
            self.engine,
            self.job.graph,
            plan,
            self.feed,
            self.observer,
            self.signals,
            looker=self.judge if measures else NOBODY,
            saved=self.chronicle.samples,
        )
        if measures:
            self.measured = self.current.passed
        passed = self.current.run()
        self.chronicle.passed(passed, self.engine, began=self.began)
        if measures:
            self._judge(passed)
        return passed

    def _judge(self, passed: Passed) -> None:
        """Looks at the first and the last iteration, and at the metrics."""
        judge, job = self.judge.judge, self.job
        if passed.first is not None and passed.first.i == passed.plan.first:
            judge.look("first", passed.first.outputs, self.judge.seen(passed.first.i, passed.first.inputs))
        if passed.last is not None:
            judge.look("last", passed.last.outputs, self.judge.seen(passed.last.i, passed.last.inputs))
        found = self.chronicle.metrics
        bounds = judge_metrics(job.graph, job.spec.expect, job.read, found, rehearsal=job.rehearse)
        self.chronicle.judged([*judge.verdicts(), *self._looked(passed), *bounds])

    def _looked(self, passed: Passed | None) -> tuple[Verdict, ...]:
        """The verdicts on what workers looked at."""
        data = passed.data if passed is not None else None
        looked = data.looked if data is not None else {}
        return judge_looks(self.job.graph, self.job.spec.expect, looked, passed.plan.first if passed else 0)

    def _interrupted(self) -> Interrupted:
        what = self._signal()
        if self.current is None:
            return Interrupted(Failure("interrupted", f"{what} arrived before the first iteration", phase="startup"))
        phase, done = self.current.plan.phase, len(self.current.passed.done)
        message = f"{what} arrived in the {phase.name} phase, after {done} of {phase.iterations} iterations"
        return Interrupted(Failure("interrupted", message, phase=phase.name))

    def _signal(self) -> str:
        return "SIGTERM" if self.signals.stop == "SIGTERM" else "Ctrl-C"

    def _whereabouts(self) -> dict[str, Any]:
        """What ``cgspec where`` is told, on the beacon's thread."""
        engine, current = self.engine, self.current
        if engine is None or current is None:
            startup = dict(engine.startup) if engine is not None else {}
            seconds = time.monotonic() - self.began
            told = {"phase": "startup", "startup": startup, "seconds": seconds}
            return told | actors_told(self.job.graph, engine.where() if engine is not None else ())
        plan, passed = current.plan, current.passed
        latest = [*passed.submitted[:1], *passed.done[-1:]] or [time.monotonic_ns()]
        told = {"phase": plan.phase.name, "done": len(passed.done), "asked": plan.phase.iterations}
        told |= {"seconds": (time.monotonic_ns() - latest[-1]) / 1e9}
        return told | actors_told(self.job.graph, engine.where(), first=plan.first)

    def close_record(self) -> None:
        """Says how it ended, before anything is taken down."""
        self.signals.mode = "never"
        if self.current is not None and self.current.passed.data is None:
            self.chronicle.samples(self.current.passed)
        if self.measured is None or not self.chronicle.record.expect:
            bounds = judge_metrics(
                self.job.graph, self.job.spec.expect, self.job.read, None, rehearsal=self.job.rehearse
            )
            self.chronicle.judged([*self.judge.judge.verdicts(), *self._looked(self.measured), *bounds])
        self._outputs()
        self.chronicle.close(self.error, crashed=self.crashed)

    def _outputs(self) -> None:
        passed = self.measured
        if passed is not None and passed.first is not None and passed.last is not None:
            self.chronicle.outputs(self._formed(passed.first.outputs), self._formed(passed.last.outputs))

    def _formed(self, outputs: list[object]) -> object:
        return formed(self.job.graph, outputs)

    def teardown(self) -> None:
        """Takes the engine down, within its deadline, or leaves it to the next run."""
        if self.engine is None:
            return
        if self.live is not None and self.error is None and not self.crashed:
            self.live.engine = self.engine
        else:
            self.engine.teardown()

    def close_folder(self) -> None:
        """Brings home what came late, and closes every file."""
        self.chronicle.finish(self.engine)
        self.signals.mode = "at-once"
        try:
            self.chronicle.present()
        except KeyboardInterrupt:
            self.chronicle.note("interrupted while the files that show the run were made")
        if self._stopped_late():
            self.chronicle.note(f"{self._signal()} arrived when everything was measured")
        self.chronicle.save()

    def _stopped_late(self) -> bool:
        """Whether a signal came that ended nothing any more: only the exit code tells of it."""
        return self.signals.stop is not None and self.error is None and not self.crashed

    def result(self) -> Result:
        """How it ended."""
        first = last = None
        if self.measured is not None and self.measured.first is not None and self.measured.last is not None:
            first, last = self._formed(self.measured.first.outputs), self._formed(self.measured.last.outputs)
        error = self.error or self.chronicle.trouble()
        failed = any(verdict.passed is False for verdict in self.chronicle.record.expect)
        code = error.exit_code if error is not None else int(failed)
        if self._stopped_late():
            code = Interrupted.exit_code
        observed = self.judge.judge.observed() if self.job.observe else ()
        return Result(self.chronicle.told(), self.folder.path, code, first, last, error, observed)


class _Looker:
    """Shows iterations to the judge."""

    def __init__(self, feed: Feed, judge: Judge) -> None:
        self.feed, self.judge = feed, judge
        self.every = judge.looks_at_every

    def look(self, i: int, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        self.judge.look("every", outputs, self.seen(i, inputs))

    def seen(self, i: int, inputs: Sequence[object]) -> Seen:
        """What the judge knows of an iteration."""
        return Seen(self.feed.scope(i), self.feed.by_name(inputs))


def _engine(graph: Graph, options: Options, kind: str) -> Engine:
    if kind not in ENGINES:
        raise NotAble(Failure("not-able", f"the engine {kind} is not supported yet", phase="startup"))
    try:
        return ENGINES[kind](graph, options)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cgspec"):
            raise
        message = f"the engine {kind} needs the package {error.name}, which is not installed"
        raise NotAble(Failure("not-able", message, phase="startup")) from error
