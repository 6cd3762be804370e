"""Verbs that read a spec and start nothing: check, plan, show, export."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Sequence

import click

from cgspec.checking import Checked, check
from cgspec.commands.printing import paints, require, say, spec_options, write
from cgspec.discovery import specs_in
from cgspec.errors import UsageError
from cgspec.views import diagnostics


@click.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="SPEC|FOLDER... [KEY=VALUE]...")
@click.option("--format", "form", type=click.Choice(list(diagnostics.FORMATS)), default="text", help="How to print.")
@click.option("--variant", metavar="NAME", help="Apply a variant of the spec.")
@click.option("--allow-import", multiple=True, metavar="PATTERN", help="Modules that specs may import too.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
def check_command(paths: Sequence[str], form: str, variant: str | None, allow_import: Sequence[str]) -> int:
    """Prove specs before anything is run: nothing of yours is imported.

    Exit code 1 if there are errors.
    """
    overrides = [item for item in paths if "=" in item and not os.path.exists(item)]
    files = [file for item in paths if item not in overrides for file in specs_in(item)]
    if not files:
        raise UsageError("name at least one spec to check")
    results = [
        check(file, overrides=overrides, variant=variant, allow_import=allow_import, variants=True) for file in files
    ]
    findings = [finding for checked in results for finding in checked.findings]
    shown = diagnostics.FORMATS[form](findings, colour=paints(sys.stdout))
    if shown:
        click.echo(shown)
    if form == "text" and not findings:
        click.echo("\n".join(_praise(checked) for checked in results), err=True)
    return int(any(checked.errors for checked in results))


def _praise(checked: Checked) -> str:
    assert checked.graph is not None
    graph = checked.graph
    counts = ((len(graph.actors), "actor"), (len(graph.tasks), "task"), (len(graph.output_refs), "output"))
    shown = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
    return f"{checked.file}: ok ({shown})"


@click.command("plan")
@spec_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan_command(
    spec: str, overrides: Sequence[str], variant: str | None, allow_import: Sequence[str], as_json: bool
) -> int:
    """Say what a run would do: actors, order, edges, transports, buffers."""
    checked = check(spec, overrides=overrides, variant=variant, allow_import=allow_import)
    require(checked)
    from cgspec.views import plan

    assert checked.graph is not None and checked.spec is not None
    graph, read = checked.graph, checked.spec
    if as_json:
        click.echo(json.dumps(plan.as_data(graph, read), indent=2))
    else:
        say(plan.text(graph, read))
    return 0


@click.command("show")
@spec_options
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(
    spec: str, overrides: Sequence[str], variant: str | None, allow_import: Sequence[str], origin: bool, as_json: bool
) -> int:
    """Print the spec after include, variant and overrides: a valid spec itself."""
    checked = check(spec, overrides=overrides, variant=variant, allow_import=allow_import)
    require(checked)
    from cgspec.views import resolved

    click.echo(resolved.origins(checked, as_json=as_json) if origin else resolved.text(checked, as_json=as_json))
    return 0


@click.command("export")
@spec_options
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path), help="Where to (default: stdout).")
def export_command(
    spec: str, overrides: Sequence[str], variant: str | None, allow_import: Sequence[str], output: pathlib.Path | None
) -> int:
    """Print the equivalent plain Ray script: nothing of cgspec is in it."""
    checked = check(spec, overrides=overrides, variant=variant, allow_import=allow_import)
    require(checked)
    from cgspec.views.export import script

    assert checked.graph is not None and checked.spec is not None
    beside = output.parent if output is not None else None
    text = script(checked.graph, checked.spec, checked.values.read, checked.root, beside=beside)
    if output is None:
        click.echo(text, nl=False)
    else:
        write(output, text.encode())
        click.echo(output)
    return 0
