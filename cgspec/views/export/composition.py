"""Puts the script together: imports, constants, adapters, ``inputs``, ``check``, ``build``, ``run``, ``main``."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from pathlib import Path

from cgspec.expectations import Read
from cgspec.graph import Graph, InputRef, Pack, Ref, TaskRef
from cgspec.spec import Spec
from cgspec.values import Literal
from cgspec.views.export import actors as making
from cgspec.views.export import ending, looks, loop
from cgspec.views.export.binding import Binding, wrapped
from cgspec.views.export.calls import Calls, singles, text_of
from cgspec.views.export.code import Coder, call, plain
from cgspec.views.export.imports import LOADER, Imports
from cgspec.views.export.names import Names, in_words
from cgspec.views.export.sources import Sources

IMPORTS = {
    "copy": "import copy",
    "importlib": "import importlib.util",
    "math": "import math",
    "os": "import os",
    "socket": "import socket",
    "sys": "import sys",
    "time": "import time",
    "deque": "from collections import deque",
    "Path": "from pathlib import Path",
}
PACKAGES = {
    "ray": "import ray",
    "torch": "import torch",
    "DAGContext": "from ray.dag import DAGContext",
    "InputNode": "from ray.dag import InputNode",
    "MultiOutputNode": "from ray.dag import MultiOutputNode",
    "RayTaskError": "from ray.exceptions import RayTaskError",
    "allgather": "from ray.experimental.collective import allgather",
    "allreduce": "from ray.experimental.collective import allreduce",
    "reducescatter": "from ray.experimental.collective import reducescatter",
    "ReduceOp": "from ray.experimental.util.types import ReduceOp",
    "placement_group": "from ray.util.placement_group import placement_group",
    "PlacementGroupSchedulingStrategy": ("from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy"),
}
"""Names that the script may use, and where they come from."""
BUFFER = 1_000_000
"""Bytes of Ray's channels by default."""
SLACK = 65_536
"""Bytes for what is packed around a declared payload."""
LONG = 40
"""Characters beyond which a constant input has a line of its own."""


class Script:
    """One script in the making; ``text`` is all of it."""

    def __init__(self, graph: Graph, spec: Spec, read: Read, root: Path, beside: Path | None) -> None:
        self.graph, self.spec, self.read, self.root, self.beside = graph, spec, read, root, beside
        self.names = Names()
        self.imports = Imports(self.names)
        self.coder = Coder(self.imports.name, self._earlier)
        self.sources = Sources(root)
        self.calls = Calls(graph, self.sources, self.imports)
        for actor in graph.actors:
            self.imports.name(actor.class_ref)
        self.actors = [self.names.give(actor.name) for actor in graph.actors]
        self.making = making.Actors(graph, spec, self.coder, self.imports, self.sources)
        self.binding = Binding(graph, self.calls, self.coder, self.names.inside(), self.actors)
        self.looks = looks.Looks(graph, spec.expect, read, self.coder)
        self.ending = ending.Ending(graph, spec, read, self.coder, self.actors)
        self.remembers = max((lag for given in graph.inputs for lag in ending.lags(given.value)), default=0)

    def _earlier(self, output: str, iteration: str) -> str:
        place = [str(name) for name, _ in self.graph.outputs].index(output)
        return looks.access(self.graph, f"past[{iteration}]", place)

    def text(self) -> str:
        """The whole script."""
        constants = self._constants()
        parts = [
            *self._adapters(),
            self._inputs() if self.graph.inputs else "",
            self._check("check", self.looks.lines, "What must hold of iteration ``i``."),
            self._check("check_last", self.looks.last, "What must hold of the last iteration."),
            *(looks.HELPERS[name] for name in looks.HELPERS if name in self.looks.needs),
            self._build(),
            self._arranged(),
            self._loop().text(),
            loop.QUANTILE,
            making.FREE_PORT if self.making.ports else "",
            self._main(),
        ]
        body = "\n\n".join(part.strip("\n") + "\n" for part in parts if part)
        loading = [LOADER.strip("\n") + "\n", "\n".join(self.imports.loading())] if self.imports.loads else []
        settings = "\n".join([*self._settings(), *constants])
        tail = '\n\nif __name__ == "__main__":\n    main()\n'
        whole = "\n\n".join(filter(None, ["\n\n".join(loading), settings])) + "\n\n\n" + body + tail
        return f"{self._head(whole)}\n\n{whole}"

    def _head(self, body: str) -> str:
        """The docstring and the imports that the rest needs."""
        path = self._path_lines()
        root = [f"ROOT = {self._root_code()}"] if path or "ROOT" in _names_in(body) else []
        used = _names_in("\n".join([body, *root, *path]))
        first = sorted({line for name, line in IMPORTS.items() if name in used}, key=_import_order)
        then = _merged({line for name, line in PACKAGES.items() if name in used} | self.imports.installed)
        blocks = [self._docstring(), "\n".join(first), "\n".join(then), "\n".join([*root, *path])]
        blocks.append("\n".join(_merged(self.imports.lines)))
        return "\n\n".join(filter(None, blocks))

    def _docstring(self) -> str:
        said = [in_words(self.spec.description)] if self.spec.description else []
        untold = [*self.looks.untold, *self.ending.untold]
        left = ["", "Not in this script:", *(f"- {line}" for line in untold)] if untold else []
        lines = [f'"""{in_words(self.graph.name)}, as a plain Ray script.', *([""] if said else []), *said, *left]
        return "\n".join(lines) + ('"""' if len(lines) == 1 else '\n"""')

    def _root_code(self) -> str:
        if self.beside is None:
            return f"Path({plain(str(self.root.resolve()))})"
        away = os.path.relpath(self.root.resolve(), self.beside.resolve())
        here = "Path(__file__).resolve().parent"
        return here if away == "." else f"{here} / {plain(away)}"

    def _path_lines(self) -> list[str]:
        """Python and Ray find what lies beside the script by themselves."""
        return ["sys.path.insert(0, str(ROOT))"] if self._needs_path() else []

    def _needs_path(self) -> bool:
        away = self.beside is None or self.beside.resolve() != self.root.resolve()
        return away and self.imports.from_files

    def _settings(self) -> list[str]:
        run, timeouts = self.spec.run, self.spec.engine.timeouts
        window = [f"INFLIGHT = {run.inflight}"] if run.inflight > 1 else []
        seconds = max(timeouts.first, timeouts.stall)
        return [
            f"WARMUP = {run.warmup}",
            f"ITERATIONS = {run.iterations}",
            *window,
            f"TIMEOUT = {seconds:g}  # s; Ray's own 10 s are too short for a first iteration",
        ]

    def _constants(self) -> list[str]:
        """Inputs that are made once."""
        self.input_code: list[str] = []
        lines = []
        for given in self.graph.inputs:
            code = self.coder.of(given.value)
            works = not isinstance(given.value, Literal) and any(mark in code for mark in "([")
            if not given.value.per_iteration and (works or len(code) > LONG):
                name = self.names.give(given.name.upper())
                lines.append(f"{name} = {code}")
                code = name
            self.input_code.append(code)
        return lines

    def _inputs(self) -> str:
        shown = ", ".join(given.name for given in self.graph.inputs[:8])
        more = ", …" if len(self.graph.inputs) > 8 else ""
        comma = "," if len(self.input_code) == 1 else ""
        lines = wrapped("return (", self.input_code, f"{comma})", "    ")
        past = ", past" if self.remembers else ""
        return "\n".join([f"def inputs(i{past}):", f'    """The inputs of iteration ``i``: {shown}{more}."""', *lines])

    def _check(self, name: str, lines: Sequence[str], doc: str) -> str:
        if not lines:
            return ""
        return "\n".join([f"def {name}(i, sent, outputs):", f'    """{doc}"""', *(f"    {line}" for line in lines)])

    def _adapters(self) -> list[str]:
        found = []
        for ref, adapter in self.calls.adapters.items():
            base = self.imports.name(ref)
            if self.sources.is_remote(ref):
                base += ".__ray_metadata__.modified_class"
            found.append(text_of(adapter, base))
        return found

    def _build(self) -> str:
        lines = ["def build():", '    """Makes the actors, and binds and compiles the graph."""']
        lines += [f"    {line}" for line in self.making.preparing()]
        for number, name in enumerate(self.actors):
            adapter = self.calls.adapters.get(self.graph.actors[number].class_ref)
            lines.append(f"    {self.making.line(number, name, adapter.name if adapter else None)}")
        lines += ["    with InputNode() as inp:", *(f"        {line}" for line in self.binding.lines)]
        node = self.binding.reads[0]
        if self._is_multiple():
            lines += wrapped("outputs = MultiOutputNode([", self.binding.reads, "])", "        ")
            node = "outputs"
        handles = "".join(f", {name}" for name in self.ending.handles)
        compiled = call(f"{node}.experimental_compile", [], self._compile_options())
        return "\n".join([*lines, f"    return {compiled}{handles}"])

    def _is_multiple(self) -> bool:
        return len(self.binding.reads) > 1 or self.graph.output_form == "list"

    def _compile_options(self) -> dict[str, str]:
        engine, run = self.spec.engine, self.spec.run
        window = "INFLIGHT" if run.inflight > 1 else "1"
        options = {"_submit_timeout": "TIMEOUT"}
        options["_max_inflight_executions"] = str(engine.max_inflight) if engine.max_inflight else window
        if engine.max_buffered != 1000:
            options["_max_buffered_results"] = str(engine.max_buffered)
        if engine.overlap:
            options["_overlap_gpu_communication"] = "True"
        return options

    def _arranged(self) -> str:
        """The function from what arrives to the outputs; empty where they are the same."""
        if not self._outputs_code():
            return ""
        code = self._formed()
        unread = self.binding.reads[len(self.binding.wanted) :]
        more = f" {', '.join(unread[:4])}{' …' * (len(unread) > 4)}: only awaited." if unread else ""
        doc = f'    """The outputs of an iteration.{more}"""'
        return "\n".join(["def arranged(sent, values):", doc, *code])

    def _outputs_code(self) -> str:
        places = [self._value(ref) for ref in self.graph.output_refs]
        alike = places == [f"values[{n}]" for n in range(len(self.binding.reads))]
        form = self.graph.output_form
        packs = any(isinstance(value, Pack) for _, value in self.graph.outputs)
        if (form == "list" and alike and not packs) or (form == "single" and not packs and places == ["values"]):
            return ""
        return "arranged(sent, values)"

    def _formed(self) -> list[str]:
        parts = [
            f"[{', '.join(map(self._value, value.items))}]" if isinstance(value, Pack) else self._value(value)
            for _, value in self.graph.outputs
        ]
        if self.graph.output_form == "single":
            return [f"    return {parts[0]}"]
        if self.graph.output_form == "list":
            return wrapped("return [", parts, "]", "    ")
        named = [f"{plain(name)}: {part}" for (name, _), part in zip(self.graph.outputs, parts, strict=True)]
        return wrapped("return {", named, "}", "    ")

    def _value(self, ref: Ref) -> str:
        """The expression of one output."""
        if isinstance(ref, InputRef):
            return f"sent[{ref.input}]"
        found = [self._arrived(single) for single in singles(self.graph, ref) if isinstance(single, TaskRef)]
        whole = ref.ret is None and bool(self.graph.tasks[ref.task].returns)
        return f"({', '.join(found)}{',' if len(found) == 1 else ''})" if whole else found[0]

    def _arrived(self, ref: TaskRef) -> str:
        return f"values[{self.binding.place(ref)}]" if self._is_multiple() else "values"

    def _loop(self) -> loop.Loop:
        every = self.binding.sent == list(range(len(self.graph.inputs)))
        sent = ["*sent"] if every and self.graph.inputs else [f"sent[{number}]" for number in self.binding.sent]
        past = ", past" if self.remembers else ""
        return loop.Loop(
            inflight=self.spec.run.inflight,
            inputs=f"inputs(i{past})" if self.graph.inputs else "()",
            execute=", ".join([*sent, *(["None"] if self.binding.triggered else [])]),
            outputs=self._outputs_code(),
            remembers=self.remembers,
            checks=bool(self.looks.lines),
            duration=self.spec.run.duration,
            goes_on=self.spec.run.on_error == "continue",
        )

    def _main(self) -> str:
        init = making.init_call(self.graph, self.spec.cluster, from_files=self.imports.from_files)
        lines = ["def main():", *(f"    {line}" for line in [*self._environment(), init])]
        checks = (", check" if self.looks.lines else "", bool(self.looks.last))
        return "\n".join([*lines, *self.ending.main(self.spec.run.warmup, *checks)])

    def _environment(self) -> list[str]:
        """What a local Ray's processes inherit."""
        lines = []
        if self._needs_path() and self.spec.cluster.address == "local":
            lines.append("# the actors' processes inherit the environment, not sys.path")
            old = 'os.environ.get("PYTHONPATH")'
            lines.append(f'os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), {old}]))')
        if (buffer := self._buffer()) != BUFFER:
            lines.append(f'os.environ["RAY_CGRAPH_buffer_size_bytes"] = "{buffer}"  # of channels that actors write')
            lines.append(f"DAGContext.get_current().buffer_size_bytes = {buffer}  # of those that the driver writes")
        return lines

    def _buffer(self) -> int:
        declared = [task.payload.bytes + SLACK for task in self.graph.tasks if task.payload is not None]
        return self.spec.engine.buffer or max([BUFFER, *declared])


def _names_in(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line


def _merged(lines: set[str]) -> list[str]:
    """Import lines in order, those from one module together."""
    found: dict[str, list[str]] = {}
    for line in lines:
        module, _, name = line.removeprefix("from ").partition(" import ")
        found.setdefault(module if line.startswith("from ") else line, []).append(name)
    shown = [f"from {key} import {', '.join(sorted(n))}" if n != [""] else key for key, n in found.items()]
    return sorted(shown, key=_import_order)
