"""The language, version 1, on one page: every key of a spec, its type, its bound and its meaning.

The models are strict and hold a spec after include, variants and overrides, with vars filled in. Where data flows
(``in``, ``outputs``, operands of collectives) they keep the references as written; ``expand`` reads those. Values that
may be marked with ``$`` stay raw; ``parsing`` reads those.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from cgspec import quantities

QUANTITY = r"^\s*[0-9.]+\s*[A-Za-zµ]+\s*$"
_QUANTITY = WithJsonSchema({"type": "string", "pattern": QUANTITY})
Duration = Annotated[float, BeforeValidator(quantities.duration), _QUANTITY]
"""Seconds, written with a unit."""
Size = Annotated[int, BeforeValidator(quantities.size), _QUANTITY]
"""Bytes, written with a unit."""
AxisSize = Annotated[int, Field(ge=1)]
Axes = dict[str, AxisSize]
Count = Annotated[int, Field(ge=0, le=10**12)]
Positive = Annotated[int, Field(ge=1, le=10**9)]


PERCENTILES = ("p50", "p95", "p99", "mean", "min", "max")
_LATENCIES = tuple(f"latency.{name}" for name in PERCENTILES)
RUN_METRICS = (*_LATENCIES, "throughput", "first_result", "critical_path", "busiest_actor")
"""Built-in metrics of a run; all are durations but ``throughput`` (iterations per second)."""
TASK_METRICS = tuple(f"busy.{name}" for name in PERCENTILES)
"""Built-in metrics of a task: durations."""


METRICS = (
    "name to {$expr: ..}, a plain number, over latency.<p>, throughput, first_result, critical_path, busiest_actor, "
    "busy.<task>.<p>, edge.<task>.<p> (from the end of the task to the start of its readers on other actors), bytes "
    "(declared, that travel between actors in an iteration), bytes.<task>, out.<output> (a number, of the last "
    "iteration; out[0] where outputs are a list), vars and the metrics above; <p> is p50, p95, p99, mean, min or max; "
    "times are in seconds; a task stands for all its members, and a - in a name is written _"
)


class Model(BaseModel):
    """What all models share: unknown keys are errors, types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False, defer_build=True)


def _kind(value: Any) -> Any:
    """A bare word stands for ``{kind: word}``."""
    return {"kind": value} if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _named(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


class ActorSpec(Model):
    """An actor, or a family of them."""

    class_: str = Field(alias="class", description="file.py:Class (relative to the file that says it) or package:Class")
    args: dict[str, Any] | list[Any] | None = Field(None, description="constructor: keywords or positional")
    axes: Axes = Field(default_factory=dict, description="named axes of a family")
    num_cpus: float = Field(1, ge=0, description="CPUs that Ray reserves")
    num_gpus: float = Field(0, ge=0, description="GPUs that Ray reserves")
    memory: Size | None = Field(None, description="memory that Ray reserves")
    accelerator_type: str | None = Field(None, description="e.g. H200; Ray places the actor on such a node")
    resources: dict[str, float] = Field(default_factory=dict, description="custom resources that Ray reserves")
    options: dict[str, Any] = Field(default_factory=dict, description="further options of Ray actors, by Ray's names")
    env: dict[str, Any] = Field(default_factory=dict, description="environment variables of the actor's process")
    process_group: bool = Field(False, description="set the torch.distributed variables before the constructor")
    same_node: Annotated[list[str] | None, BeforeValidator(_named)] = Field(
        None, description="members that differ only on these axes share a node"
    )


class TransportSpec(Model):
    """How a task's result travels to tasks of other actors."""

    kind: Literal["auto", "accelerator", "nccl", "shm"] = Field(description="nccl is the older name of accelerator")
    device: Literal["default", "cpu", "gpu", "cuda"] = Field("default", description="where tensors arrive")
    static_shape: bool = Field(False, description="every iteration has the same shapes: metadata is sent once")
    direct_return: bool = Field(False, description="the result is a tensor itself, nothing around it")


class PayloadSpec(Model):
    """The declared size of a task's result."""

    shape: list[Count] | None = Field(None, description="the tensor's shape")
    dtype: str | None = Field(None, description="the tensor's dtype, by torch's name")
    bytes: Size | None = Field(None, description="a size, where it is no tensor")


def _payload(value: Any) -> Any:
    return value if isinstance(value, dict) else {"bytes": value}


Operands = Any


class TaskSpec(Model):
    """One method call in the graph, or one collective; a family where its actor or it itself has axes."""

    call: str | None = Field(None, description="actor[.selectors].method")
    allreduce: Operands = Field(None, description="operand, list of operands (fused), or {members: [..]}")
    allgather: Operands = Field(None, description="as allreduce")
    reducescatter: Operands = Field(None, description="as allreduce")
    axis: Annotated[list[str] | None, BeforeValidator(_named)] = Field(None, description="the axes a group spans")
    op: Literal["sum", "product", "max", "min", "avg"] | None = Field(None, description="the reduction (default: sum)")
    axes: Axes = Field(default_factory=dict, description="the task is called once per place on these axes")
    slot: Any = Field(None, description="place in the actor's order; without slots: file order")
    in_: dict[str, Any] | list[Any] | None = Field(None, alias="in", description="what flows: references")
    with_: dict[str, Any] | None = Field(None, alias="with", description="constants, by parameter name")
    returns: list[str] | None = Field(None, description="names of a multi-return; [] = called for its effect")
    transport: Annotated[TransportSpec | None, BeforeValidator(_kind)] = Field(None, description="see TransportSpec")
    payload: Annotated[PayloadSpec | None, BeforeValidator(_payload)] = Field(None, description="shape/dtype or a size")
    timeout: Duration | None = Field(None, description="for a task that may be slow")


class TimeoutsSpec(Model):
    """Deadlines; each ends the run with a sentence that says what was waited for."""

    place: Duration = Field(60.0, description="until all actors have their resources")
    start: Duration = Field(1800.0, description="until all constructors have returned")
    first: Duration = Field(600.0, description="until the first iteration is done")
    stall: Duration = Field(300.0, description="during which no task anywhere began or ended")
    teardown: Duration = Field(30.0, description="until everything is taken down")


def _buffer(value: Any) -> Any:
    return None if value == "auto" else value


class EngineSpec(Model):
    """What executes the graph."""

    kind: Literal["compiled", "direct", "local"] = Field(
        "compiled", description="Ray Compiled Graph, actor calls, or here"
    )
    max_inflight: Positive | None = Field(
        None, description="iterations that channels have buffers for (default: run.inflight)"
    )
    max_buffered: Positive = Field(1000, description="of the exported script: results that wait for earlier ones")
    buffer: Annotated[Size | None, BeforeValidator(_buffer)] = Field(
        None, description="bytes per channel; auto = the declared payload, else 1 MB"
    )
    fuse: bool = Field(True, description="run consecutive tasks of an actor as one call where nothing can tell")
    short_loop: bool = Field(
        True, description="a short way through Ray's loop for actors without GPU, if no task has a transport or group"
    )
    overlap: bool = Field(False, description="overlap accelerator communication with computation")
    timeouts: TimeoutsSpec = Field(default_factory=TimeoutsSpec, description="see TimeoutsSpec")  # type: ignore[arg-type]


class ClusterSpec(Model):
    """Where Ray comes from and how actors are placed."""

    address: str = Field("local", description="local (a Ray of its own), auto, or host:port")
    num_cpus: Positive | None = Field(None, description="logical CPUs of a local Ray")
    num_gpus: Count | None = Field(None, description="GPUs of a local Ray")
    placement: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] = Field("PACK", description="as in Ray")
    runtime_env: dict[str, Any] = Field(default_factory=dict, description="Ray's runtime_env for the whole job")


class SetupSpec(Model):
    """A plain call outside the graph."""

    call: str = Field(description="actor[.selectors].method")
    with_: dict[str, Any] | None = Field(None, alias="with", description="constants, by parameter name")
    at: Literal["run", "phase"] = Field("run", description="once, or before every phase")


class RunSpec(Model):
    """How the graph is run."""

    iterations: Positive = Field(100, description="of the measure phase")
    warmup: Count = Field(5, description="iterations before the measure phase")
    inflight: Positive = Field(1, description="iterations under way at once")
    duration: Duration | None = Field(None, description="the measure phase ends after this long, if that is sooner")
    on_error: Literal["stop", "continue"] = Field("stop", description="what a task's exception means for the run")
    reset: bool = Field(False, description="build the user's objects anew between phases; `setup` is called again")


class ProfileSpec(Model):
    """One profile phase."""

    kind: Literal["none", "timeline", "torch", "nsight", "nvtx"] = Field(
        description="the profiler; timeline: when tasks ran, and reads and writes of the graph's channels"
    )
    iterations: Positive = Field(10, description="iterations that are recorded")
    warmup: Count = Field(2, description="iterations that the profiler sees before it records")
    actors: list[Any] | None = Field(None, description="only these actors, e.g. [stage.0]")
    shapes: bool = Field(False, description="torch: record operator shapes")
    memory: bool = Field(False, description="torch: record allocations")
    stacks: bool = Field(False, description="torch: record Python stacks")
    flops: bool = Field(False, description="torch: estimate operations")
    options: dict[str, Any] = Field(
        default_factory=dict, description="nsight: options of nsys; capture-range: when it records an actor with a GPU"
    )
    nvtx: bool = Field(False, description="nsight: NVTX ranges named after tasks")


class CloseSpec(Model):
    """Equality within a tolerance, as in ``torch.testing.assert_close``."""

    to: Any = Field(description="the value that is expected")
    rtol: float = Field(1e-5, ge=0, description="relative tolerance")
    atol: float = Field(1e-8, ge=0, description="absolute tolerance")


class ExpectSpec(Model):
    """What must hold: exactly one subject (output, task or metric), at least one condition."""

    output: str | int | None = Field(None, description="an output, by name or by index")
    task: Any = Field(None, description="a task; `finite` is looked at in the worker")
    metric: str | None = Field(None, description="a metric, e.g. latency.p95, or busy.p50 of a task")
    item: int | str | None = Field(None, description="the part of a list, tuple or map that is meant")
    equals: Any = Field(None, description="the expected value")
    equals_input: str | None = Field(None, description="the input of the same iteration that it must equal")
    close: CloseSpec | None = Field(None, description="see CloseSpec")
    finite: Literal[True] | None = Field(None, description="no NaN and no infinity, nested values included")
    shape: list[Any] | None = Field(None, description="the tensor's shape")
    dtype: str | None = Field(None, description="the tensor's dtype, by torch's name")
    length: Any = Field(None, description="the number of elements")
    all_equal: Literal[True] | None = Field(None, description="every element equals the first")
    below: Any = Field(None, description="a metric's upper bound, with its unit")
    above: Any = Field(None, description="a metric's lower bound, with its unit")
    at: Literal["every", "first", "last"] = Field("every", description="which iterations are looked at")


class SweepSpec(Model):
    """Runs over a matrix of overrides."""

    matrix: dict[str, list[Any]] = Field(description="dotted path to values")
    exclude: list[dict[str, Any]] = Field(default_factory=list, description="points that are left out")
    repeats: Positive = Field(1, description="times that each point is run")
    order: Literal["interleave", "sequential"] = Field(
        "interleave", description="repeats of a point apart, or together"
    )
    fresh: bool = Field(False, description="start Ray and the actors anew for each point")


def _profiles(value: Any) -> Any:
    return [_kind(item) for item in _listed(value)]


class Spec(Model):
    """A whole spec."""

    cgspec: Literal[1] = Field(description="the language's version; checked first")
    name: str | None = Field(None, min_length=1, description="default: the file's stem")
    description: str | None = Field(None, description="for people")
    root: str | None = Field(None, description="folder that class files are relative to (default: the spec's)")
    include: list[str] = Field(default_factory=list, description="specs that this one builds on, relative to this file")
    vars: dict[str, Any] = Field(default_factory=dict, description="named constants")
    actors: dict[str, ActorSpec] = Field(description="see ActorSpec")
    inputs: dict[str, Any] = Field(
        default_factory=dict, description="name to value; {$each: value, axes: ..} = a family"
    )
    tasks: dict[str, TaskSpec] = Field(description="see TaskSpec")
    outputs: Any = Field(None, description="a reference, a list of them, or a map of names")
    engine: Annotated[EngineSpec, BeforeValidator(_kind)] = Field(default_factory=EngineSpec)  # type: ignore[arg-type]
    cluster: ClusterSpec = Field(default_factory=ClusterSpec)  # type: ignore[arg-type]
    setup: list[SetupSpec] = Field(default_factory=list, description="plain calls outside the graph")
    run: RunSpec = Field(default_factory=RunSpec)  # type: ignore[arg-type]
    profile: Annotated[list[ProfileSpec], BeforeValidator(_profiles)] = Field(default_factory=list)
    metrics: dict[str, Any] = Field(default_factory=dict, description=METRICS)
    expect: list[ExpectSpec] = Field(default_factory=list, description="see ExpectSpec")
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict, description="name to dotted overrides")
    sweep: SweepSpec | None = Field(None, description="see SweepSpec")
