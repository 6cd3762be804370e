"""Rules about what actors ask of Ray: options and environment variables."""

from __future__ import annotations

from collections.abc import Iterator

from cgspec.diagnostics import Finding, Path, suggest
from cgspec.rules.context import Context, Rule
from cgspec.spec import ActorSpec
from cgspec.values import Literal

OPTIONS = (
    "enable_task_events",
    "fallback_strategy",
    "label_selector",
    "lifetime",
    "max_concurrency",
    "max_pending_calls",
    "name",
    "namespace",
    "object_store_memory",
    "runtime_env",
)
"""The options of Ray's actors that have no key of their own in a spec."""

_PLACE = "say cluster.placement or same_node"
SET_BY_CGSPEC = {
    "placement_group": _PLACE,
    "placement_group_bundle_index": _PLACE,
    "placement_group_capture_child_tasks": _PLACE,
    "scheduling_strategy": _PLACE,
    "enable_tensor_transport": "say transport on the task",
    "concurrency_groups": "an actor runs its tasks one after the other",
    "allow_out_of_order_execution": "an actor runs its tasks one after the other",
    "get_if_exists": "every member is an actor of its own",
    "max_restarts": "a graph ends with the first actor that dies",
    "max_task_retries": "a graph ends with the first actor that dies",
}
"""Options that cgspec sets itself, and what to say instead."""


def unknown_option(context: Context) -> Iterator[Finding]:
    """An option that Ray's actors do not have, or that is a key of the actor itself."""
    own = {field.alias or name for name, field in ActorSpec.model_fields.items()}
    for name, actor in context.catalogue.actors.items():
        for option in actor.spec.options:
            path: Path = ("actors", name, "options", option)
            if option in own:
                message, fix = f"{option} is a key of the actor itself", "write it beside class, not under options"
                yield Finding("unknown-option", message, path, on="key", fix=fix)
            elif option in SET_BY_CGSPEC:
                message, fix = f"{option} is set by cgspec itself", SET_BY_CGSPEC[option]
                yield Finding("unknown-option", message, path, on="key", fix=fix)
            elif option not in OPTIONS:
                message = f"Ray's actors have no option {option}; {suggest(option, OPTIONS, noun='options', most=20)}"
                yield Finding("unknown-option", message, path, on="key")


def bad_env(context: Context) -> Iterator[Finding]:
    """An environment variable that is neither text nor a number."""
    for name, values in context.readings.actors.items():
        for (section, key), value in values.items():
            if section == "env" and isinstance(value, Literal) and not isinstance(value.data, (str, int, float)):
                shown = "a list" if isinstance(value.data, list) else "a map" if value.data else "nothing"
                message = f"the environment variable {key} is text or a number, not {shown}"
                yield Finding("wrong-type", message, ("actors", name, "env", key))


RULES = (
    Rule("unknown-option", unknown_option),
    Rule("wrong-type", bad_env),
)
