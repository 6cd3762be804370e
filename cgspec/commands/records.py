"""Verbs that read run folders: report, compare, runs, trace."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence

import click

from cgspec.commands.printing import say, write

RUN = click.Path(exists=True, file_okay=False, path_type=pathlib.Path)


@click.command("report")
@click.argument("run", type=RUN)
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path), help="Where to (default: report.html in RUN).")
def report_command(run: pathlib.Path, output: pathlib.Path | None) -> int:
    """Write one HTML page about a run, or about a whole sweep; it needs no network."""
    from cgspec.comparing import SWEEP
    from cgspec.views import report, sweep_report

    target = output or run / report.FILE
    text = sweep_report.page(run) if (run / SWEEP).is_file() else report.report(run)
    write(target, text.encode("utf-8", "backslashreplace"))
    click.echo(target)
    return 0


@click.command("compare")
@click.argument("before", type=RUN)
@click.argument("after", type=RUN)
@click.option("--fail-if", multiple=True, metavar="METRIC:PERCENT%", help="Exit 1 if AFTER is so much worse.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", help="How to print.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
def compare_command(before: pathlib.Path, after: pathlib.Path, fail_if: Sequence[str], form: str) -> int:
    """Compare two runs: what differs, by how much, and whether that is more than chance."""
    from cgspec.comparing import compare
    from cgspec.views import compare as views

    compared = compare(before, after)
    broken = views.failing(compared, fail_if)
    if form == "json":
        click.echo(json.dumps(views.as_data(compared, broken), indent=2, ensure_ascii=False))
    else:
        say((views.markdown if form == "markdown" else views.text)(compared, broken))
    return int(bool(broken))


@click.command("runs")
@click.argument("name", required=False)
@click.option("--out", type=click.Path(file_okay=False, path_type=pathlib.Path), default="runs", help="Their folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs_command(name: str | None, out: pathlib.Path, as_json: bool) -> int:
    """List the runs that were kept, or those of one spec."""
    from cgspec.views import runs

    entries = runs.runs(out, name=name)
    if as_json:
        click.echo(json.dumps(runs.as_data(entries), indent=2, ensure_ascii=False))
    else:
        say(runs.text(entries))
    return 0


@click.command("trace")
@click.argument("run", type=RUN)
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path), help="Where to (default: RUN/trace/).")
def trace_command(run: pathlib.Path, output: pathlib.Path | None) -> int:
    """Merge a run's traces into one file for Perfetto."""
    from cgspec.views import trace

    say(trace.told(trace.merge(run, output=output)))
    return 0
