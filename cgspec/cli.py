"""The command line: arguments → a library call → print → exit code. Nobody imports it."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cgspec import __version__
from cgspec.check import Checked, check
from cgspec.discovery import specs_in
from cgspec.errors import CgspecError, SpecError, UsageError
from cgspec.views import diagnostics

if TYPE_CHECKING:
    from cgspec.graph import Graph
    from cgspec.job import Job
    from cgspec.spec import SweepSpec
    from cgspec.sweeping import Choice, Point

Function = TypeVar("Function", bound=Callable[..., Any])

ENGINES = ("compiled", "direct", "local")
PROFILERS = ("none", "timeline", "torch", "nsight", "nvtx")
RAY_SWITCHES = {"RAY_CGRAPH_ENABLE_TORCH_PROFILING": "torch", "RAY_CGRAPH_ENABLE_NVTX_PROFILING": "nvtx"}
"""Ray's own switches in the user's environment, and the profilers that they choose."""


class _Group(click.Group):
    """Keeps the commands in the order of ``COMMANDS``, and turns errors into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from cgspec.diagnostics import suggest

        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]}; {suggest(args[0], self.commands, noun='commands')}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cgspec")
def cli() -> None:
    """Runs Ray Compiled Graphs from one checked-in YAML file."""


def _spec_options(function: Function) -> Function:
    """What every command that reads one spec takes."""
    for decorate in (
        click.option("--allow-import", multiple=True, metavar="PATTERN", help="Modules that the spec may import too."),
        click.option("--variant", metavar="NAME", help="Apply a variant of the spec."),
        click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
        click.argument("spec", metavar="SPEC"),
    ):
        function = decorate(function)
    return function


def _paints(stream: Any) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _require(checked: Checked) -> None:
    """Shows what was found, on stderr.

    Raises:
        SpecError: there are errors among it.
    """
    shown = diagnostics.text(checked.findings, colour=_paints(sys.stderr))
    if checked.errors:
        raise SpecError(checked.findings, shown)
    if any(finding.severity == "warning" for finding in checked.findings):
        click.echo(shown, err=True)


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
    shown = diagnostics.FORMATS[form](findings, colour=_paints(sys.stdout))
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


@click.command("run")
@_spec_options
@click.option("--engine", type=click.Choice(ENGINES), help="What executes the graph.")
@click.option("-n", "--iterations", type=click.IntRange(min=1), help="Iterations of the measure phase.")
@click.option("--profile", type=click.Choice(PROFILERS), multiple=True, help="Profile with this.")
@click.option("--rehearse", is_flag=True, help="Run a GPU spec on CPUs.")
@click.option("--only", type=click.IntRange(min=0), metavar="N", help="Run iteration N alone.")
@click.option("--out", type=click.Path(file_okay=False), default="runs", help="Folder of the run folders.")
@click.option("--resume", type=click.Path(path_type=pathlib.Path), metavar="DIR", help="Go on with a sweep.")
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
    _require(checked)
    assert checked.spec is not None
    if checked.spec.sweep is not None:
        return _sweep(checked, checked.spec.sweep, overrides, as_json, options)
    if options["resume"] is not None:
        raise UsageError(f"{spec} has no sweep that could be resumed")
    from cgspec.run import run
    from cgspec.views import progress, summary

    job = _job(checked, overrides, began, options)
    with progress.observer(sys.stderr) as observer:
        result = run(job, observer)
    if as_json:
        click.echo(json.dumps(summary.to_json(result.record), indent=2, ensure_ascii=False))
    else:
        summary.show(result.record, sys.stdout)
    return result.exit_code


def _sweep(checked: Checked, swept: SweepSpec, overrides: Sequence[str], as_json: bool, options: dict[str, Any]) -> int:
    from cgspec.sweep import Sweep
    from cgspec.views import progress, sweeps

    def job(point: Point, out: pathlib.Path) -> Job:
        made = _checked(checked.file, overrides, options, point=point.choice)
        return replace(_job(made, overrides, time.monotonic(), options), out=out, name=f"{point.number:03}")

    sweep = Sweep(checked.name, swept, job, checked.data)
    sweep.begin(pathlib.Path(options["out"]), options["resume"])
    with progress.observer(sys.stderr) as observer:
        code = sweep.run(observer)
    click.echo(json.dumps(sweeps.as_data(sweep), indent=2) if as_json else sweeps.text(sweep))
    return code


def _checked(spec: str, overrides: Sequence[str], options: dict[str, Any], point: Choice | None = None) -> Checked:
    return check(
        spec,
        overrides=[*overrides, *_option_overrides(options)],
        variant=options["variant"],
        allow_import=options["allow_import"],
        rehearse=options["rehearse"],
        point=point,
    )


def _option_overrides(options: dict[str, Any]) -> list[str]:
    """Flags as overrides, so that a finding about one has a place."""
    profiles = list(options["profile"]) or [kind for name, kind in RAY_SWITCHES.items() if os.environ.get(name) == "1"]
    said = [f"profile=[{', '.join(profiles)}]"] if profiles else []
    if options["iterations"] is not None:
        said.append(f"run.iterations={options['iterations']}")
    if options["engine"] is not None:
        said.append(f"engine.kind={options['engine']}")
    return said


def _job(checked: Checked, overrides: Sequence[str], began: float, options: dict[str, Any]) -> Job:
    from cgspec.job import Job

    said = dict(text.split("=", 1) for text in [*overrides, *_option_overrides(options)])
    return Job.of(
        checked,
        overrides={**({"variant": options["variant"]} if options["variant"] else {}), **said},
        out=pathlib.Path(options["out"]),
        rehearse=options["rehearse"],
        only=options["only"],
        began=began,
    )


@click.command("viz")
@_spec_options
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
    _require(checked)
    assert checked.graph is not None
    target = options["output"] or ("-" if options["as_text"] else f"{checked.name}.png")
    form = options["form"] or (
        "txt" if options["as_text"] else os.path.splitext(target)[1].lstrip(".").lower() or "svg"
    )
    drawn = _drawn(checked.graph, form, options)
    if target == "-":
        sys.stdout.buffer.write(drawn)
        return 0
    _write(pathlib.Path(target), drawn)
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


def _write(path: pathlib.Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None


@click.command("plan")
@_spec_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan_command(
    spec: str, overrides: Sequence[str], variant: str | None, allow_import: Sequence[str], as_json: bool
) -> int:
    """Say what a run would do: actors, order, edges, transports, buffers."""
    checked = check(spec, overrides=overrides, variant=variant, allow_import=allow_import)
    _require(checked)
    from cgspec.views import plan

    assert checked.graph is not None and checked.spec is not None
    click.echo(json.dumps(plan.as_data(checked.graph), indent=2) if as_json else plan.text(checked.graph, checked.spec))
    return 0


@click.command("show")
@_spec_options
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(
    spec: str, overrides: Sequence[str], variant: str | None, allow_import: Sequence[str], origin: bool, as_json: bool
) -> int:
    """Print the spec after include, variant and overrides: a valid spec itself."""
    checked = check(spec, overrides=overrides, variant=variant, allow_import=allow_import)
    _require(checked)
    from cgspec.views import resolved

    click.echo(resolved.origins(checked, as_json=as_json) if origin else resolved.text(checked, as_json=as_json))
    return 0


@click.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=pathlib.Path), default=".")
def init_command(folder: pathlib.Path) -> int:
    """Write a starter spec with its actors; overwrites nothing."""
    from cgspec.starting import write_starter

    written = write_starter(folder)
    click.echo("\n".join(map(str, written)))
    click.echo(f"next: cgspec run {folder / 'graph.yaml'}", err=True)
    return 0


@click.command("schema")
def schema_command() -> int:
    """Print the JSON Schema of specs, for editors."""
    from cgspec.views import schema

    click.echo(json.dumps(schema.schema(), indent=2))
    return 0


@click.command("explain")
@click.argument("code", required=False)
def explain_command(code: str | None) -> int:
    """Tell more about a finding's code; without one, list them all."""
    from cgspec import explaining

    if code is None:
        click.echo("\n".join(f"{item.code:24} {item.summary}" for item in explaining.every()))
    else:
        click.echo(explaining.explain(code).text)
    return 0


COMMANDS: tuple[click.Command, ...] = (
    run_command,
    check_command,
    viz_command,
    plan_command,
    show_command,
    explain_command,
    init_command,
    schema_command,
)
for _command in COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """The console script."""
    gc.disable()  # a check is over before anything could be collected; a run turns it on again
    sys.exit(_main())


def _main() -> int:
    try:
        return int(cli.main(prog_name="cgspec", standalone_mode=False) or 0)
    except SpecError as error:
        click.echo(error.text, err=True)
        return error.exit_code
    except CgspecError as error:
        click.echo(f"cgspec: {error}", err=True)
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("cgspec: interrupted", err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
