"""Verbs that run a spec, or look at one that runs: run, where."""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from cgspec.checking import Checked, check
from cgspec.commands.printing import require, say, spec_options
from cgspec.errors import CgspecError, UsageError

if TYPE_CHECKING:
    from cgspec.job import Job
    from cgspec.running import Result
    from cgspec.spec import SweepSpec
    from cgspec.sweeping import Choice, Point

ENGINES = ("compiled", "direct", "local")
PROFILERS = ("none", "timeline", "torch", "nsight", "nvtx")


@click.command("run")
@spec_options
@click.option("--engine", type=click.Choice(ENGINES), help="What executes the graph.")
@click.option("-n", "--iterations", type=click.IntRange(min=1), help="Iterations of the measure phase.")
@click.option("--profile", type=click.Choice(PROFILERS), multiple=True, help="Profile with this.")
@click.option("--rehearse", is_flag=True, help="Run a GPU spec on CPUs.")
@click.option("--only", type=click.IntRange(min=0), metavar="N", help="Run iteration N alone.")
@click.option("--out", type=click.Path(file_okay=False), default="runs", help="Folder of the run folders.")
@click.option("--resume", type=click.Path(path_type=pathlib.Path), metavar="DIR", help="Go on with a sweep.")
@click.option("--update-expect", is_flag=True, help="Write observed values into expectations that failed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def run_command(spec: str, overrides: Sequence[str], as_json: bool, **options: Any) -> int:
    """Run a spec; leaves a run folder and prints a summary."""
    began = time.monotonic()
    try:
        return _run(spec, overrides, as_json, began, options)
    except CgspecError as error:
        if not as_json:
            raise
        from cgspec.views.summary import error_json

        click.echo(json.dumps(error_json(error), indent=2, ensure_ascii=False))
        return error.exit_code


def _run(spec: str, overrides: Sequence[str], as_json: bool, began: float, options: dict[str, Any]) -> int:
    checked = _checked(spec, overrides, options)
    require(checked)
    assert checked.spec is not None
    if checked.spec.sweep is not None and options["update_expect"]:
        raise UsageError(f"--update-expect cannot choose among the points of a sweep; fix one: {spec} sweep=null")
    if checked.spec.sweep is not None:
        return _sweep(checked, checked.spec.sweep, overrides, as_json, options)
    if options["resume"] is not None:
        raise UsageError(f"{spec} has no sweep that could be resumed")
    if options["update_expect"] and options["only"] is not None:
        raise UsageError("--update-expect looks at all iterations, so it does not go with --only")
    from cgspec.running import run
    from cgspec.views import progress

    job = _job(checked, overrides, began, options)
    with progress.observer(sys.stderr, shared=_is_here(checked)) as observer, _apart(as_json):
        result = run(job, observer)
    if options["update_expect"]:
        return _told_and_updated(checked, result, as_json)
    _tell(result, as_json)
    return result.exit_code


def _is_here(checked: Checked) -> bool:
    """Whether user code runs in this process."""
    return checked.spec is not None and checked.spec.engine.kind == "local"


def _apart(as_json: bool) -> AbstractContextManager[Any]:
    """Where JSON is printed, what user code prints in this process (engine: local) goes to stderr."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def _tell(result: Result, as_json: bool, **more: Any) -> None:
    from cgspec.views import summary

    if as_json:
        click.echo(json.dumps(summary.to_json(result.record) | more, indent=2, ensure_ascii=False))
    else:
        summary.show(result.record, sys.stdout)


def _told_and_updated(checked: Checked, result: Result, as_json: bool) -> int:
    """Writes what was observed into the spec, if the run came to its end; 0 where the spec now says what it gave."""
    from cgspec import updating
    from cgspec.views import updates as views

    ended = result.error is None
    updates = updating.update(checked.sources, checked.data, result.observed) if ended else []
    _tell(result, as_json, updates=views.as_data(updates))
    click.echo(views.text(updates, ended=ended), err=as_json)
    return 0 if updating.settles(result.record, updates) else result.exit_code


def _sweep(checked: Checked, swept: SweepSpec, overrides: Sequence[str], as_json: bool, options: dict[str, Any]) -> int:
    from cgspec.sweep import Sweep
    from cgspec.sweeping import points
    from cgspec.views import progress, sweeps

    made = {}
    for point in points(swept):  # every point, before anything is started
        made[point.number] = _checked(checked.file, overrides, options, point=point.choice)
        require(made[point.number])

    def job(point: Point, out: pathlib.Path) -> Job:
        how = _job(made[point.number], overrides, time.monotonic(), options)
        return replace(how, out=out, name=f"{point.number:03}")

    sweep = Sweep(checked.name, swept, job, checked.data)
    sweep.begin(pathlib.Path(options["out"]), options["resume"])
    with progress.observer(sys.stderr, shared=any(map(_is_here, made.values()))) as observer, _apart(as_json):
        code = sweep.run(observer)
    if as_json:
        click.echo(json.dumps(sweeps.as_data(sweep), indent=2))
    else:
        say(sweeps.text(sweep))
    return code


def _checked(spec: str, overrides: Sequence[str], options: dict[str, Any], point: Choice | None = None) -> Checked:
    return check(
        spec,
        overrides=[*overrides, *_option_overrides(overrides, options)],
        variant=options["variant"],
        allow_import=options["allow_import"],
        rehearse=options["rehearse"],
        point=point,
    )


def _option_overrides(overrides: Sequence[str], options: dict[str, Any]) -> list[str]:
    """Flags as overrides, so that a finding about one has a place."""
    from cgspec.raynames import profilers_of_switches

    profiles = list(options["profile"]) or profilers_of_switches(overrides)
    said = [f"profile=[{', '.join(profiles)}]"] if profiles else []
    if options["iterations"] is not None:
        said.append(f"run.iterations={options['iterations']}")
    if options["engine"] is not None:
        said.append(f"engine.kind={options['engine']}")
    return said


def _job(checked: Checked, overrides: Sequence[str], began: float, options: dict[str, Any]) -> Job:
    from cgspec.job import Job

    said = dict(text.split("=", 1) for text in [*overrides, *_option_overrides(overrides, options)])
    return Job.of(
        checked,
        overrides={**({"variant": options["variant"]} if options["variant"] else {}), **said},
        out=pathlib.Path(options["out"]),
        rehearse=options["rehearse"],
        only=options["only"],
        observe=options["update_expect"],
        began=began,
    )


@click.command("where")
@click.argument("run", metavar="RUN", type=click.Path(path_type=pathlib.Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def where_command(run: pathlib.Path, as_json: bool) -> int:
    """Say where a live run is: phase, every actor's task and stack, and who waits for whom.

    RUN is a run folder, or that of a sweep.
    """
    from cgspec import record, whereabouts
    from cgspec.views import where

    found = record.load(whereabouts.run_in(run))
    told = whereabouts.ask(found) if found.state == "running" else None
    if as_json:
        click.echo(json.dumps(where.as_data(found, told), indent=2, ensure_ascii=False))
    else:
        say(where.text(found, told))
    return 0
