"""Verbs that read neither spec nor run: explain, doctor, init, schema."""

from __future__ import annotations

import json
import pathlib

import click


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


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor_command(as_json: bool) -> int:
    """Say what this machine can run: Ray, torch, GPUs, NCCL, profilers, pictures, memory."""
    from cgspec.doctor import doctor
    from cgspec.views import doctor as views

    checks = doctor()
    click.echo(json.dumps(views.as_data(checks), indent=2, ensure_ascii=False) if as_json else views.text(checks))
    return views.exit_code(checks)


@click.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=pathlib.Path), default=".")
def init_command(folder: pathlib.Path) -> int:
    """Write a starter spec with its actors; overwrites nothing."""
    from cgspec.starting import write_starter

    click.echo("\n".join(map(str, write_starter(folder))))
    click.echo(f"next: cgspec run {folder / 'graph.yaml'}", err=True)
    return 0


@click.command("schema")
def schema_command() -> int:
    """Print the JSON Schema of specs, for editors."""
    from cgspec.views import schema

    click.echo(json.dumps(schema.schema(), indent=2))
    return 0
