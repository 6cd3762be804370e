"""What a page can say beyond the graph: the lines of the spec and the signatures behind tasks and actors.

Nothing of the user's is imported, and secrets stay hidden.
"""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Mapping
from dataclasses import replace

from cgspec.checking import Checked
from cgspec.classes import ClassRef
from cgspec.graph import Path
from cgspec.redaction import Redactor
from cgspec.signatures import ClassInfo, Signature
from cgspec.signatures.reader import SourceReader
from cgspec.source import Document
from cgspec.views.scene import Box, Cluster, Facts, Scene

MOST_LINES = 40
"""Lines of the spec that are shown of one entry."""


def add_details(scene: Scene, checked: Checked) -> Scene:
    """The scene with the source and signature of everything in it that the spec says."""
    return _Details(checked).scene(scene)


class _Details:
    def __init__(self, checked: Checked) -> None:
        assert checked.graph is not None
        graph = checked.graph
        self.checked = checked
        self.classes = SourceReader(checked.root)
        self.hide = Redactor(checked.data)
        self.documents: Mapping[str, Document] = {
            layer.document.file: layer.document for layer in checked.sources.layers if not layer.text
        }
        self.tasks = {task.name: task for task in graph.tasks}
        self.actors = {actor.name: actor for actor in graph.actors}
        self.inputs = {item.name: item for item in graph.inputs}

    def scene(self, scene: Scene) -> Scene:
        clusters = tuple(self.cluster(cluster) for cluster in scene.clusters)
        return replace(scene, clusters=clusters, terminals=tuple(map(self.terminal, scene.terminals)))

    def cluster(self, cluster: Cluster) -> Cluster:
        actor = self.actors[cluster.members[0]]
        info = self.classes.read_class(actor.class_ref)
        facts = _signature(info.init, self.checked.root) if isinstance(info, ClassInfo) else ()
        boxes = tuple(map(self.task, cluster.boxes))
        return replace(cluster, boxes=boxes, source=self.source(actor.path), facts=(*facts, *cluster.facts))

    def task(self, box: Box) -> Box:
        task = self.tasks[box.members[0]]
        owner = self.checked.graph.actors[task.actor].class_ref if self.checked.graph is not None else None
        facts = self.method(owner, task.method) if owner is not None and task.method is not None else ()
        return replace(box, source=self.source(task.path), facts=(*facts, *box.facts))

    def method(self, owner: ClassRef, name: str) -> Facts:
        info = self.classes.read_class(owner)
        found = info.method(name) if isinstance(info, ClassInfo) else None
        return _signature(found, self.checked.root) if isinstance(found, Signature) else ()

    def terminal(self, box: Box) -> Box:
        if box.kind == "input" and box.members and box.members[0] in self.inputs:
            return replace(box, source=self.source(self.inputs[box.members[0]].path))
        return box

    def source(self, path: Path) -> tuple[str, str]:
        """Where the spec says an entry (``spec.yaml:12``), and its lines."""
        place = self.checked.sources.locate(path, on="key")
        document = self.documents.get(place.file) if place is not None else None
        if place is None or document is None:
            return "", ""
        return f"{place.file}:{place.line}", self.hide.yaml(entry_at(document, place.line))


def entry_at(document: Document, number: int) -> str:
    """The line with that number, from 1, and those below it that are indented more deeply."""
    lines = [document.line(number)]
    indent = _indent(lines[0])
    while len(lines) < MOST_LINES:
        line = document.line(number + len(lines))
        if not line.strip() or _indent(line) <= indent:
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _signature(found: Signature, root: pathlib.Path) -> Facts:
    file = pathlib.Path(found.file)
    shown = file.relative_to(root) if file.is_relative_to(root) else file
    return (("signature", str(found)), *((("defined in", f"{shown}:{found.line}"),) if found.line else ()))
