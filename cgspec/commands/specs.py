"""Verbs that read a spec and start nothing: check, viz, plan, show, export."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cgspec.checking import Checked, check
from cgspec.commands.printing import paints, require, spec_options, write
from cgspec.discovery import specs_in
from cgspec.errors import UsageError
from cgspec.views import diagnostics

if TYPE_CHECKING:
    from cgspec.graph import Graph


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
    results = [check(file, overrides=overrides, variant=variant, allow_import=allow_import) for file in files]
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


@click.command("viz")
@spec_options
@click.option("-o", "--output", metavar="FILE|-", help="Where to (default: NAME.png); its ending is the format.")
@click.option("--format", "form", metavar="FORMAT", help="The format, where the file's name does not say it.")
@click.option("--collapse/--expand", default=None, help="Draw each family as one box, or every task.")
@click.option("--around", metavar="TASK", help="Draw only what is near this task.")
@click.option("--hops", type=click.IntRange(min=0), default=1, help="How near, with --around.")
@click.option("--constants", is_flag=True, help="Show the constants of tasks.")
@click.option("--ascii", "as_text", is_flag=True, help="Print the graph as text.")
@click.option("--schedule", is_flag=True, help="Draw what each actor executes in order.")
@click.option("--open", "opens", is_flag=True, help="Open the picture when it is drawn.")
def viz_command(
    spec: str, overrides: Sequence[str], variant: str | None, allow_import: Sequence[str], **options: Any
) -> int:
    """Draw the graph; starts no Ray and needs no system package."""
    checked = check(spec, overrides=overrides, variant=variant, allow_import=allow_import)
    require(checked)
    assert checked.graph is not None
    target = options["output"] or ("-" if options["as_text"] else f"{checked.name}.png")
    form = options["form"] or (
        "txt" if options["as_text"] else os.path.splitext(target)[1].lstrip(".").lower() or "svg"
    )
    drawn = _drawn(checked.graph, form, options)
    if target == "-":
        sys.stdout.buffer.write(drawn)
        return 0
    write(pathlib.Path(target), drawn)
    click.echo(target)
    if options["opens"]:
        click.launch(target)
    return 0


def _drawn(graph: Graph, form: str, options: dict[str, Any]) -> bytes:
    from cgspec.views import picture, schedule

    if options["schedule"]:
        return schedule.render(graph, form)
    settings = {key: options[key] for key in ("collapse", "around", "hops", "constants")}
    if remark := picture.compose(graph, **settings).remark:
        click.echo(remark, err=True)
    return picture.render(graph, form, **settings)


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
    click.echo(json.dumps(plan.as_data(checked.graph), indent=2) if as_json else plan.text(checked.graph, checked.spec))
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
