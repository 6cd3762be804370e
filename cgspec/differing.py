"""What differs between two runs before any number does: machine, versions, spec, order, settings, outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cgspec.errors import UsageError
from cgspec.record import Record

MOST = 200
"""Characters of a value that are shown."""
NONE = "none"
UNCOMMITTED = "git.diff"
"""The file in ``source/`` that is not the user's."""
APART = ("root", "name", "x-")
"""Keys of a spec that change nothing that is measured."""


@dataclass(frozen=True)
class Difference:
    """One thing that differs, in words."""

    what: str
    before: str
    after: str


def refuse_others(one: Record, two: Record) -> None:
    """Refuses runs of different graphs.

    Raises:
        UsageError: their tasks, or the form of their outputs, differ.
    """
    first, second = set(one.tasks) or _ordered(one), set(two.tasks) or _ordered(two)
    if first != second:
        raise UsageError(
            "these runs cannot be compared: they run different tasks. "
            + "; ".join(filter(None, (_only("the first", first - second), _only("the second", second - first))))
        )
    forms = _form(one.outputs.get("last")), _form(two.outputs.get("last"))
    if None not in forms and forms[0] != forms[1]:
        raise UsageError(f"these runs cannot be compared: the first gives {forms[0]}, the second {forms[1]}")


def _only(which: str, names: set[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return f"only {which} has {', '.join(shown[:5])}{more}" if names else ""


def _ordered(record: Record) -> set[str]:
    return {task for actor in record.actors for task in actor.tasks}


def _form(outputs: Any) -> str | None:
    """Outputs by their form, not by their values; a tensor is shown as a map of its own."""
    if outputs is None:
        return None
    if isinstance(outputs, dict) and "dtype" not in outputs:
        return f"the outputs {', '.join(sorted(map(str, outputs)))}"
    return f"a list of {len(outputs)} outputs" if isinstance(outputs, list) else "one output"


def differences(one: Record, one_dir: Path, two: Record, two_dir: Path) -> Iterator[Difference]:
    """All of them, the most important first."""
    yield from _pairs(_settings(one), _settings(two))
    yield from _pairs(_machine(one), _machine(two))
    yield from _pairs(_order(one), _order(two))
    yield from _pairs(_spec(one_dir), _spec(two_dir), prefix="spec: ")
    yield from _pairs(_without_value(one, two), _without_value(two, one))
    yield from _sources(_kept(one_dir), _kept(two_dir))
    if one.outputs.get("last") != two.outputs.get("last"):
        yield Difference(
            "outputs of the last iteration", _short(one.outputs.get("last")), _short(two.outputs.get("last"))
        )


def _pairs(one: dict[str, str], two: dict[str, str], prefix: str = "") -> Iterator[Difference]:
    for what in dict.fromkeys([*one, *two]):
        if one.get(what, NONE) != two.get(what, NONE):
            yield Difference(prefix + what, one.get(what, NONE), two.get(what, NONE))


def _settings(record: Record) -> dict[str, str]:
    measure = record.phase("measure")
    return {
        "spec name": record.name,
        "rehearsal": "yes" if record.rehearsal else "no",
        "how it ended": record.state,
        "engine": record.engine,
        "in flight": str(record.inflight),
        "fused": record.fused_text or NONE,
        "measured under": (measure.profiled if measure is not None else None) or "no profiler",
        "busy times by": _clocks(record),
        "iterations": str(measure.iterations) if measure is not None else "0",
        "iterations that raised": str(measure.errors) if measure is not None else "0",
    }


def _clocks(record: Record) -> str:
    timed = [actor.name for actor in record.actors if actor.device_error_us is not None]
    if len(timed) in (0, len(record.actors)):
        return "the GPUs' clocks" if timed else "the hosts' clocks"
    return f"the GPU's clock of {', '.join(timed)}; the others by their hosts'"


def _machine(record: Record) -> dict[str, str]:
    machine = record.machine
    told = {
        "host": machine.host,
        "system": machine.platform,
        "cores": str(machine.cpus),
        "GPUs": "; ".join(machine.gpus) or NONE,
        "nodes": ", ".join(sorted({actor.node for actor in record.actors if actor.node})) or NONE,
    }
    told |= {f"version of {name}": version or "missing" for name, version in machine.versions.items()}
    if machine.git_commit:
        told["git commit"] = machine.git_commit[:12] + (" with changes" if machine.git_dirty else "")
    if machine.load is not None and machine.cpus:
        told["machine at the start"] = "loaded" if machine.load[0] > machine.cpus else "not loaded"
    return told


def _order(record: Record) -> dict[str, str]:
    return {f"order of {actor.name}": " → ".join(actor.tasks) for actor in record.actors}


def _spec(run_dir: Path) -> dict[str, str]:
    try:
        data = yaml.safe_load((run_dir / "spec.resolved.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    if not isinstance(data, dict):
        return {}
    return dict(_flat({key: value for key, value in data.items() if not str(key).startswith(APART)}, ""))


def _kept(run_dir: Path) -> dict[str, list[str]]:
    """The lines of the user's files, by name; none of a run that kept none."""
    folder = run_dir / "source"
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()] if folder.is_dir() else []
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace").splitlines()
        for path in paths
    }


def _sources(one: dict[str, list[str]], two: dict[str, list[str]]) -> Iterator[Difference]:
    """Files that changed, or that only one of two runs is made of; what was not committed where both have such."""
    if not one or not two:
        return
    for name in sorted(one.keys() | two.keys()):
        both = name in one and name in two
        if one.get(name) == two.get(name) or (name == UNCOMMITTED and not both):
            continue
        what = "changes that were not committed" if name == UNCOMMITTED else f"source {name}"
        change = f" ({_changed(one[name], two[name])})" if both else ""
        yield Difference(what, _lines(one.get(name)), _lines(two.get(name)) + change)


def _lines(lines: list[str] | None) -> str:
    return NONE if lines is None else f"{len(lines)} lines"


def _changed(one: list[str], two: list[str]) -> str:
    """How many lines were added and removed; a line that changed is both. Lines that only moved are neither."""
    before, after = Counter(one), Counter(two)
    added, removed = (after - before).total(), (before - after).total()
    return f"{added} added, {removed} removed" if added or removed else "lines moved"


def _without_value(record: Record, other: Record) -> dict[str, str]:
    """The spec's own metrics that both runs have, and only one of them with a value; the others are compared."""
    shared = record.metrics.keys() & other.metrics.keys()
    halves = [name for name in sorted(shared) if (record.metrics[name] is None) != (other.metrics[name] is None)]
    told = {name: record.metrics[name] for name in halves}
    return {f"metric {name}": "no value" if value is None else f"{value:.4g}" for name, value in told.items()}


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Dotted paths of every leaf."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for place, inner in enumerate(value):
            yield from _flat(inner, f"{path}.{place}")
    else:
        yield path, _short(value)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"
