"""One HTML page about one run, with all that it shows in it: it loads nothing, runs no script and needs no network."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgspec.errors import UsageError
from cgspec.quantities import show_duration, show_rate, show_size
from cgspec.record import Record, load
from cgspec.timeline import Segment, folder_of, read_phase
from cgspec.views import charts, gantt, verdict
from cgspec.views.clocks import clocks
from cgspec.views.summary import next_command
from cgspec.views.taming import tame

if TYPE_CHECKING:
    from cgspec.graph import Graph

FILE = "report.html"
MOST_PICTURE = 1_000_000
"""Bytes of the graph's picture; a larger one is drawn by families, or left to ``graph.svg``."""
MOST_ROWS = 200
"""Rows of a table; the record has them all."""
MOST_TEXT = 4_000
"""Characters of a value or a traceback, the last ones."""

_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_NUMBERS = re.compile(r"(?<=[ \[])\[\n\s*((?:[\d.eE+-]+,?\s+)+)\]")
_GROUND = re.compile(r'<polygon fill="white" stroke="none"[^>]*/>\n')
_SIZE = re.compile(r'<svg width="([0-9.]+)pt" height="([0-9.]+)pt"')


def report(run: str | Path, *, graph: Graph | None = None, clean: Callable[[str], str] = str) -> str:
    """The page of a run.

    Args:
        graph: as it was run; by default it is read from the run folder again, and where that no longer works the
            picture there is shown without times.
        clean: takes secrets out of the picture of ``graph``; the run folder holds none.

    Raises:
        UsageError: there is no such run.
    """
    from jinja2 import Environment

    record, run_dir = load(run), folder_of(run)
    source = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=harmless)
    environment.filters["us"], environment.filters["rate"] = _us, show_rate
    environment.filters["place"] = lambda place: place.removeprefix(f"{record.root}/")
    return environment.from_string(source).render(_about(record, run_dir, graph, clean))


def write(
    run: str | Path, *, graph: Graph | None = None, output: Path | None = None, clean: Callable[[str], str] = str
) -> Path:
    """Writes the page, by default to ``report.html`` in the run folder; see ``report``.

    Raises:
        UsageError: there is no such run, or the file cannot be written.
    """
    target = output or folder_of(run) / FILE
    new = target.with_name(f".{target.name}.new")
    text = report(run, graph=graph, clean=clean)
    try:
        new.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(new, target)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def _about(record: Record, run_dir: Path, graph: Graph | None, clean: Callable[[str], str]) -> dict[str, Any]:
    measure = read_phase(run_dir, "measure")
    picture, remark = _picture(record, run_dir, graph, clean, measure)
    return {
        "record": record,
        "mood": verdict.mood(record),
        "word": verdict.word(record),
        "sentences": list(verdict.sentences(record, saved=len(measure.driver) if measure is not None else 0)),
        "cards": list(_cards(record)),
        "picture": picture,
        "picture_remark": remark,
        "measure": record.phase("measure"),
        "chart_pair": _charts(measure),
        "gantt": gantt.draw(record, measure) if measure is not None else None,
        "tasks": list(_tasks(record))[:MOST_ROWS],
        "clocks": list(clocks(record)),
        "channels": any(task.read_us or task.write_us for task in record.tasks.values()),
        "verdicts": record.expect[:MOST_ROWS],
        "limits": list(_limits(record)),
        "metrics": [(name, "no value" if value is None else f"{value:.6g}") for name, value in record.metrics.items()],
        "notes": list(dict.fromkeys([*record.notes, *(note for phase in record.phases for note in phase.notes)])),
        "machine": list(_machine(record)),
        "outputs": list(_outputs(record)),
        "traceback": record.failure.traceback[-MOST_TEXT:] if record.failure else "",
        "commands": list(_commands(record, run_dir)),
        "files": list(_files(record, run_dir)),
        "most": MOST_ROWS,
    }


def harmless(value: Any) -> Any:
    """Text without characters that reorder or hide what is beside them; line breaks stay."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return "\n".join(map(tame, value.split("\n")))


def _charts(measure: Segment | None) -> list[charts.Chart]:
    if measure is None:
        return []
    rows = measure.driver
    latencies = [end - start if end else 0 for start, end in zip(rows.start, rows.end, strict=True)]
    found = [charts.over_time(rows.iteration, latencies), charts.distribution(latencies)]
    return [chart for chart in found if chart is not None]


def _cards(record: Record) -> Iterator[tuple[str, str, str]]:
    """(what, value, small print)."""
    measure = record.phase("measure")
    times = measure.latency_us if measure is not None else None
    if measure is not None and times is not None:
        yield "latency p50", _us(times.p50), _interval(times.p50_ci)
        yield "p95", _us(times.p95), _interval(times.p95_ci)
        yield "p99", _us(times.p99), f"up to {_us(times.max)}"
    if measure is not None and measure.throughput_per_s is not None:
        yield "throughput", show_rate(measure.throughput_per_s), f"{record.inflight} in flight"
    if measure is not None:
        errors = f"{measure.errors} raised" if measure.errors else f"of {measure.asked:,}"
        yield "iterations", f"{measure.iterations:,}", errors
    if record.first_result_s is not None:
        yield "first result", show_duration(record.first_result_s), "after the start"


def _interval(between: tuple[float, float] | None) -> str:
    return f"{_us(between[0])} to {_us(between[1])}" if between is not None else ""


def _limits(record: Record) -> Iterator[tuple[str, str, float, str]]:
    """(what, how much, percent, explanation): how close the run came to what its tasks allow."""
    found, measure = record.limits, record.phase("measure")
    if found is None or measure is None or measure.latency_us is None:
        return
    part = min(100.0, found.critical_path_us / measure.latency_us.p50 * 100) if measure.latency_us.p50 else 0.0
    path = " → ".join(found.critical_path if len(found.critical_path) <= 8 else [*found.critical_path[:7], "…"])
    said = f"{_us(found.critical_path_us)} of {_us(measure.latency_us.p50)}: the tasks on the critical path, {path}"
    yield "latency", f"{part:.0f}%", part, said
    if found.busiest_actor_us and measure.throughput_per_s is not None:
        bound = 1e6 / found.busiest_actor_us
        part = min(100.0, measure.throughput_per_s / bound * 100)
        said = f"{show_rate(measure.throughput_per_s)} of the {show_rate(bound)} that {found.busiest_actor} would allow"
        yield "throughput", f"{part:.0f}%", part, said


def _tasks(record: Record) -> Iterator[dict[str, Any]]:
    """The busiest first."""
    owners = {task: actor for actor in record.actors for task in actor.tasks}
    critical = set(record.limits.critical_path) if record.limits else set()
    known = [(name, task, task.busy_us) for name, task in record.tasks.items() if task.busy_us is not None]
    most = max((times.p50 for _, _, times in known), default=0.0)
    for name, task, times in sorted(known, key=lambda row: -row[2].p50):
        actor = owners.get(name)
        share = actor.utilisation if actor is not None else None
        yield {
            "name": name,
            "actor": actor.name if actor is not None else "",
            "line": task.line or "",
            "times": times,
            "read": "" if task.read_us is None else _us(task.read_us.p50),
            "write": "" if task.write_us is None else _us(task.write_us.p50),
            "part": times.p50 / most * 100 if most else 0.0,
            "share": "" if share is None else f"{share * 100:.0f}%",
            "critical": name in critical,
        }


def _picture(
    record: Record, run_dir: Path, graph: Graph | None, clean: Callable[[str], str], measure: Segment | None
) -> tuple[Any, str]:
    """The graph with times on it, and what there is to say about it."""
    from markupsafe import Markup

    if graph is None:
        from cgspec.reopening import graph_of

        graph = graph_of(run_dir)
    text = _drawn(record, graph, measure) if graph is not None else None
    text = clean(text) if text is not None else None
    remark = ""
    if text is None and (run_dir / "graph.svg").is_file():
        text = (run_dir / "graph.svg").read_text(encoding="utf-8", errors="replace")
        remark = "as it was drawn at the run; its spec can no longer be read, so there are no times on it"
    if text is None or len(text) > MOST_PICTURE or "<script" in text.lower():
        return None, "the picture is too large for a page; graph.svg in the run folder has it" if text else ""
    bare = _GROUND.sub("", _PROLOGUE.sub("", text), count=1)
    size = _SIZE.match(bare)
    width = float(size[1]) * 4 / 3 if size else 900.0
    style = f'<svg style="width:100%;min-width:{width * 0.75:.0f}px;max-width:{width:.0f}px;height:auto"'
    return Markup(_SIZE.sub(style, bare, count=1)), remark


def _drawn(record: Record, graph: Graph, measure: Segment | None) -> str | None:
    from cgspec.views.flows import find_flows
    from cgspec.views.overlay import overlay
    from cgspec.views.picture import compose
    from cgspec.views.svg import write_svg

    flows = find_flows(graph, record, measure)
    for collapse in (None, True):
        text = write_svg(overlay(compose(graph, collapse=collapse), record, flows))
        if len(text) <= MOST_PICTURE:
            return text
    return None


def _machine(record: Record) -> Iterator[tuple[str, str]]:
    machine = record.machine
    yield "host", machine.host
    yield "system", machine.platform
    memory = f", {show_size(machine.memory_bytes)} memory" if machine.memory_bytes else ""
    yield "processors", f"{machine.cpus} cores{memory}" if machine.cpus else ""
    yield "load at the start", ", ".join(f"{load:.1f}" for load in machine.load) if machine.load else ""
    yield "GPUs", "; ".join(machine.gpus) or "none"
    yield "versions", ", ".join(f"{name} {version or 'missing'}" for name, version in machine.versions.items())
    dirty = " with changes that were not committed" if machine.git_dirty else ""
    yield "git commit", f"{machine.git_commit[:12]}{dirty}" if machine.git_commit else ""
    yield "nodes", ", ".join(sorted({actor.node for actor in record.actors if actor.node}))
    yield "engine", record.engine + (", rehearsal on CPUs" if record.rehearsal else "")
    yield "started", record.started
    yield "start-up", ", ".join(f"{step} {show_duration(seconds)}" for step, seconds in record.startup.items())


def _outputs(record: Record) -> Iterator[tuple[str, str]]:
    for which in ("first", "last"):
        if record.outputs.get(which) is not None:
            text = json.dumps(record.outputs[which], ensure_ascii=False)
            text = text if len(text) <= 100 else _indented(record.outputs[which])
            yield which, text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " …"


def _indented(value: object) -> str:
    """JSON on several lines, but shapes and the like on one."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _NUMBERS.sub(lambda found: "[" + ", ".join(found[1].replace(",", " ").split()) + "]", text)


def _commands(record: Record, run_dir: Path) -> Iterator[tuple[str, str]]:
    words = ["cgspec", "run", record.spec_file or "spec.yaml"]
    words += [f"{path}={value}" for path, value in record.overrides.items() if path != "variant"]
    words += ["--variant", str(record.overrides["variant"])] if "variant" in record.overrides else []
    words += ["--rehearse"] if record.rehearsal else []
    yield "this spec again", shlex.join(words)
    place = record.run_dir or str(run_dir)
    again = ["cgspec", "run", f"{place}/spec.resolved.yaml"] + ["--rehearse"] * record.rehearsal
    yield "exactly this run again", shlex.join(again)
    yield "beside another run", shlex.join(["cgspec", "compare", place]) + " OTHER"
    if (command := next_command(record)) is not None and command != shlex.join(words):
        yield "what to do next", command


def _files(record: Record, run_dir: Path) -> Iterator[tuple[str, str]]:
    """What else is in the run folder."""
    told = {
        "run.json": "the record that this page shows",
        "spec.yaml": "the spec as written",
        "spec.resolved.yaml": "the spec as it was run",
        "samples.csv": "every latency",
        "timeline.csv": "start and end of every task",
        "channels.csv": "reads and writes of channels",
        "trace/merged.json.gz": "all traces in one, for ui.perfetto.dev",
        "log.txt": "what happened, and when",
        "logs": "what the actors printed",
    }
    for name, what in told.items():
        if (run_dir / name).exists():
            yield name, what
    for phase in record.phases:
        yield from ((name, f"{phase.profiled or phase.name}") for name in phase.files[:MOST_ROWS] if name not in told)


def _us(us: float) -> str:
    return show_duration(us / 1e6)
