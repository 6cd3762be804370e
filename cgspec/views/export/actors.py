"""The part of the script that starts Ray and makes the actors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cgspec.graph import Actor, Graph, Index
from cgspec.spec import ClusterSpec, Spec
from cgspec.values import Literal, Value
from cgspec.views.export.code import Coder, call, joined, plain
from cgspec.views.export.imports import Imports
from cgspec.views.export.sources import Sources

FREE_PORT = '''
def free_port():
    """A port for torch.distributed."""
    with socket.socket() as sock:
        sock.bind(("", 0))
        return sock.getsockname()[1]
'''


def init_call(graph: Graph, cluster: ClusterSpec, *, from_files: bool) -> str:
    """``ray.init`` as the spec's cluster wants it."""
    arguments = {"address": plain(cluster.address)}
    if cluster.address == "local":
        needed = math.ceil(sum(actor.num_cpus for actor in graph.actors))
        arguments["num_cpus"] = str(cluster.num_cpus) if cluster.num_cpus else f"max(os.cpu_count() or 1, {needed})"
        if cluster.num_gpus is not None:
            arguments["num_gpus"] = str(cluster.num_gpus)
        arguments["include_dashboard"] = "False"
        if resources := _resources(graph):
            arguments["resources"] = plain(resources)
    environment = dict(cluster.runtime_env)
    shipped = '"working_dir": str(ROOT)' if cluster.address != "local" and from_files else ""
    if environment or shipped:
        inside = plain(environment)[1:-1] if environment else ""
        arguments["runtime_env"] = "{" + ", ".join(filter(None, [shipped, inside])) + "}"
    return call("ray.init", [], arguments)


def _resources(graph: Graph) -> dict[str, float]:
    found: dict[str, float] = {}
    for actor in graph.actors:
        for name, amount in actor.resources.items():
            found[name] = found.get(name, 0) + amount
    return found


class Actors:
    """The lines that make the actors.

    Attributes:
        places: the lines of the placement group; empty where Ray's own placement will do.
    """

    def __init__(self, graph: Graph, spec: Spec, coder: Coder, imports: Imports, sources: Sources) -> None:
        self.graph, self.spec, self.coder, self.imports, self.sources = graph, spec, coder, imports, sources
        self.bundles = _bundles(graph)
        grouped = spec.cluster.placement != "PACK" or any(actor.same_node for actor in graph.actors)
        self.places = self._group() if grouped else []
        self.ports = sorted({actor.family for actor in graph.actors if actor.process_group})

    def _group(self) -> list[str]:
        amounts: dict[int, dict[str, float]] = {}
        for actor, bundle in zip(self.graph.actors, self.bundles, strict=True):
            asked = amounts.setdefault(bundle, {})
            for name, amount in {"CPU": actor.num_cpus, "GPU": actor.num_gpus, **actor.resources}.items():
                if amount:
                    asked[name] = asked.get(name, 0) + amount
        bundles = [amounts[number] or {"CPU": 0.001} for number in sorted(amounts)]
        strategy = plain(self.spec.cluster.placement)
        return [f"group = placement_group({plain(bundles)}, strategy={strategy})", "ray.get(group.ready())"]

    def line(self, number: int, name: str, adapter: str | None) -> str:
        """The line that makes one actor."""
        actor = self.graph.actors[number]
        options = {name: code for name, code in self._options(number, actor).items() if code}
        made = adapter or self.imports.name(actor.class_ref)
        remote = made if adapter is None and self.sources.is_remote(actor.class_ref) else f"ray.remote({made})"
        device = "cuda" if actor.num_gpus else "cpu"
        positional = [self.coder.of(value, device=device) for value in actor.args]
        named = {key: self.coder.of(value, device=device) for key, value in actor.kwargs.items()}
        return f"{name} = {call(f'{remote}.options', [], options)}{call('.remote', positional, named)}"

    def _options(self, number: int, actor: Actor) -> dict[str, str]:
        own = {name: self.coder.of(value) for name, value in actor.options.items() if name != "runtime_env"}
        return {
            "num_cpus": plain(_short(actor.num_cpus)),
            "num_gpus": plain(_short(actor.num_gpus)) if actor.num_gpus else "",
            "memory": str(actor.memory) if actor.memory else "",
            "accelerator_type": plain(actor.accelerator_type) if actor.accelerator_type else "",
            "resources": plain(dict(actor.resources)) if actor.resources else "",
            "runtime_env": self._runtime_env(number, actor),
            "scheduling_strategy": self._strategy(number) if self.places else "",
            **own,
        }

    def _runtime_env(self, number: int, actor: Actor) -> str:
        variables = {name: self._variable(value) for name, value in actor.env.items()}
        variables |= self._process_group(number, actor)
        own = actor.options.get("runtime_env")
        shown = ", ".join(f"{plain(name)}: {code}" for name, code in variables.items())
        if own is None:
            return f'{{"env_vars": {{{shown}}}}}' if variables else ""
        inside = self.coder.of(own)
        return f'{{**{inside}, "env_vars": {{{shown}}}}}' if variables else inside

    def _variable(self, value: Value) -> str:
        if isinstance(value, Literal):
            return plain(str(int(value.data) if isinstance(value.data, bool) else value.data))
        return joined("str(value)", value=self.coder.of(value))

    def _process_group(self, number: int, actor: Actor) -> Mapping[str, str]:
        if not actor.process_group:
            return {}
        family = [n for n, other in enumerate(self.graph.actors) if other.family == actor.family]
        rank, size = plain(str(family.index(number))), plain(str(len(family)))
        port = f"port_{self.ports.index(actor.family)}"
        shared = {"MASTER_ADDR": "ray.util.get_node_ip_address()", "MASTER_PORT": port}
        return {**shared, "RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank}

    def _strategy(self, number: int) -> str:
        named = {"placement_group": "group", "placement_group_bundle_index": str(self.bundles[number])}
        return call("PlacementGroupSchedulingStrategy", [], named)

    def preparing(self) -> list[str]:
        """What comes before the first actor."""
        ports = [f"port_{number} = str(free_port())" for number in range(len(self.ports))]
        return [*ports, *self.places]


def _bundles(graph: Graph) -> Sequence[int]:
    """Per actor, its bundle; members that share a node share one."""
    found: dict[tuple[str, Index], int] = {}
    return [found.setdefault(actor.bundle, len(found)) for actor in graph.actors]


def _short(amount: float) -> float:
    return int(amount) if amount == int(amount) else amount
