"""The README is true: its commands parse, its whole specs are clean, its pictures are what ``viz`` draws today."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cgspec.checking import check
from cgspec.cli import cli
from cgspec.views import picture, schedule

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
"""(language, text) of each fenced block."""
PICTURES = re.findall(r"!\[[^\]]*\]\(([^)\s]+\.svg)\)", TEXT)


def commands() -> Iterator[str]:
    """Every ``cgspec …`` line in a block of shell, and every one in the text that is spelled out."""
    for language, text in BLOCKS:
        if language in ("sh", "bash", "console"):
            for line in text.replace("\\\n", " ").splitlines():
                if found := re.match(r"(?:\$ )?(?:\S*/)?cgspec (.*)", line):
                    yield found[1].split("  #")[0].strip()
    yield from re.findall(r"`cgspec ([^`…]+)`", TEXT)


@pytest.mark.parametrize("line", sorted(set(commands())))
def test_its_commands_parse(line: str) -> None:
    words = [word.strip("[]") for word in shlex.split(line)]
    command = cli.commands[words[0]]
    assert isinstance(command, click.Command)
    for option in (word.split("=")[0] for word in words[1:] if word.startswith("-")):
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert option in known | {"--help", "-h"}, f"cgspec {words[0]} has no option {option}"


@pytest.mark.parametrize("line", sorted({line for line in commands() if not re.search(r"[A-Z\[…]", line)}))
def test_its_commands_take_these_arguments(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those without placeholders: click accepts the whole line, as it does before a command starts."""
    monkeypatch.chdir(ROOT)
    name, *arguments = shlex.split(line)
    try:
        cli.commands[name].make_context(name, arguments)
    except click.MissingParameter:
        assert not arguments  # a command that is named, not typed
    except click.BadParameter as error:
        assert "does not exist" in error.message  # a run that is yet to be made


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "yaml" and "cgspec: 1" in text])
def test_its_whole_specs_are_clean(text: str) -> None:
    checked = check(ROOT / "specs" / "of_the_readme.yaml", raw=text)
    assert [finding.message for finding in checked.findings] == []


def test_its_first_spec_is_the_file_that_it_names() -> None:
    language, text = BLOCKS[0]
    assert language == "yaml"
    file = ROOT / re.match(r"# (\S+\.yaml)", text)[1]  # type: ignore[index]
    assert check(file, raw=text).data == check(file).data


def drawn(name: str) -> bytes:
    """The picture that a file's name asks for: ``specs/x.svg`` is ``cgspec viz specs/x.yaml -o specs/x.svg``, and
    ``specs/x.schedule.svg`` the same with ``--schedule``."""
    spec, _, what = Path(name).stem.partition(".")
    graph = check(ROOT / "specs" / f"{spec}.yaml").graph
    assert graph is not None
    if what == "schedule":
        return schedule.render(graph, "svg")
    return picture.render(graph, "svg")


@pytest.mark.parametrize("name", sorted(set(PICTURES)))
def test_its_pictures_are_what_viz_draws_today(name: str) -> None:
    """After a change of pictures: ``cgspec viz specs/NAME.yaml -o specs/NAME.svg``."""
    words = re.compile(
        r"<text[^>]*>([^<]*)</text>|<title>([^<]*)</title>|<(?:g|path|ellipse|polygon) [^>]*?id=\"(\w+)\""
    )
    assert words.findall((ROOT / name).read_text(encoding="utf-8")) == words.findall(drawn(name).decode())


def test_it_has_a_picture() -> None:
    assert PICTURES
