"""The command line: arguments → a library call → print → exit code. Nobody imports it."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import click

from cgspec import __version__
from cgspec.commands import about, pictures, records, runs, specs
from cgspec.errors import CgspecError, SpecError
from cgspec.views.taming import printable


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


COMMANDS: tuple[click.Command, ...] = (
    runs.run_command,
    specs.check_command,
    pictures.viz_command,
    specs.plan_command,
    specs.show_command,
    specs.export_command,
    runs.where_command,
    records.report_command,
    records.compare_command,
    records.runs_command,
    records.trace_command,
    about.explain_command,
    about.doctor_command,
    about.init_command,
    about.schema_command,
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
        click.echo(printable(f"cgspec: {error}"), err=True)
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
