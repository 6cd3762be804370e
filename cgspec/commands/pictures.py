"""The verb that draws: viz."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from cgspec.checking import Checked, check
from cgspec.commands.printing import require, write
from cgspec.errors import UsageError
from cgspec.graph import Graph

MOST_IN_A_PNG = 400
"""More tasks, inputs and outputs than this come out small in a picture of bounded size."""

RUN = click.Path(exists=True, path_type=pathlib.Path)


@click.command("viz")
@click.argument("spec", metavar="[SPEC]", required=False)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("-o", "--output", metavar="FILE|-", help="Where to (default: NAME.png); its ending is the format.")
@click.option("--format", "form", metavar="FORMAT", help="The format, where the file's name does not say it.")
@click.option("--run", "run", type=RUN, metavar="DIR", help="Show what this run measured; it needs no SPEC.")
@click.option("--collapse/--expand", default=None, help="Draw each family as one box, or every task.")
@click.option("--around", metavar="TASK", help="Draw only what is near this task.")
@click.option("--hops", type=click.IntRange(min=0), default=1, help="How near, with --around.")
@click.option("--constants", is_flag=True, help="Show the constants of tasks.")
@click.option("--ascii", "as_text", is_flag=True, help="Print the graph as text.")
@click.option("--schedule", is_flag=True, help="Draw what each actor executes in order.")
@click.option("--iteration", type=click.IntRange(min=0), metavar="N", help="Which one, with --schedule and --run.")
@click.option("--open", "opens", is_flag=True, help="Open the picture when it is drawn.")
@click.option("--variant", metavar="NAME", help="Apply a variant of the spec.")
@click.option("--allow-import", multiple=True, metavar="PATTERN", help="Modules that the spec may import too.")
def viz_command(spec: str | None, overrides: Sequence[str], **options: Any) -> int:
    """Draw the graph, or what a run of it measured; starts no Ray and needs no system package."""
    checked = _checked(spec, overrides, options)
    target = options["output"] or ("-" if options["as_text"] else f"{checked.name}.png")
    form = options["form"] or (
        "txt" if options["as_text"] else os.path.splitext(target)[1].lstrip(".").lower() or "svg"
    )
    drawn = _drawn(checked, form, options)
    if target == "-":
        sys.stdout.buffer.write(drawn)
        return 0
    write(pathlib.Path(target), drawn)
    click.echo(target)
    if options["opens"]:
        click.launch(target)
    return 0


def _checked(spec: str | None, overrides: Sequence[str], options: dict[str, Any]) -> Checked:
    if spec is not None:
        settings = {"variant": options["variant"], "allow_import": options["allow_import"]}
        checked = check(spec, overrides=overrides, rehearse=options["run"] is not None, **settings)
        require(checked)
        return checked
    if options["run"] is None:
        raise UsageError("name a spec to draw, or a run with --run DIR")
    from cgspec.reopening import checked_of
    from cgspec.timeline import folder_of

    return checked_of(folder_of(options["run"]))


def _drawn(checked: Checked, form: str, options: dict[str, Any]) -> bytes:
    from cgspec.views import picture

    assert checked.graph is not None
    if options["iteration"] is not None and not (options["run"] and options["schedule"]):
        raise UsageError("--iteration goes with --schedule and --run: it says which iteration of the run is drawn")
    if options["schedule"]:
        return _schedule(checked.graph, form, options)
    settings = {key: options[key] for key in ("collapse", "around", "hops", "constants")}
    scene = picture.compose(checked.graph, **settings)
    if scene.remark:
        click.echo(scene.remark, err=True)
    if form == "png" and sum(1 for _ in scene.boxes) > MOST_IN_A_PNG:
        click.echo("a PNG of so many tasks is coarse: SVG, PDF and HTML stay sharp", err=True)
    if options["run"] or form == "html":
        from cgspec.views.of_run import dress

        scene = dress(checked, options["run"], detailed=form == "html")(scene)
    return picture.write(scene, form)


def _schedule(graph: Graph, form: str, options: dict[str, Any]) -> bytes:
    from cgspec.views import of_run, schedule

    run = options["run"]
    return schedule.render(graph, form, ran=of_run.schedule(run, graph, options["iteration"]) if run else None)
