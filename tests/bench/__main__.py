"""Every number that cgspec holds itself to, in one table: ``python -m tests.bench``, from the repository's top.

Each row measures a script that ``cgspec export`` wrote and cgspec itself, in turn, in one run, and says beside their
ratio how much the script differs from itself (A/A). Nothing is judged by an absolute time. A part of it:
``python -m tests.bench whole steady growth large``; ``--json`` prints the rows as data.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time

from tests.bench.table import Row, row_of, shown

SECTIONS = ("whole", "steady", "large", "growth")
"""Modules with ``rows``, each run in a process of its own."""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--section"]:
        return _section(arguments[1])
    as_json = "--json" in arguments
    wanted = [name for name in arguments if not name.startswith("-")] or list(SECTIONS)
    began, rows = time.monotonic(), []
    for name in wanted:
        rows += _rows(name)
    print(json.dumps([row.as_data() for row in rows], indent=2) if as_json else shown(rows))
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def _section(name: str) -> int:
    """Prints a row of JSON as soon as it is there."""
    for row in importlib.import_module(f"tests.bench.{name}").rows():
        print("row " + json.dumps(row.as_data()), flush=True)
    return 0


def _rows(name: str) -> list[Row]:
    command = [sys.executable, "-m", "tests.bench", "--section", name]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("row "):
                rows.append(row_of(json.loads(line[4:])))
                print(shown(rows[-1:]).splitlines()[-1], file=sys.stderr)
    if process.returncode:
        print(f"{name} ended with exit code {process.returncode}; its rows are not complete", file=sys.stderr)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
