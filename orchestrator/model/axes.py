"""The axes of an experiment: those of the compiler, and those of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kernels.options import COMPILE_AXES, gpu_alone
from kernels.options.axis import GPU, Axis

from .device import ENGINE_NAME, OURS
from .quantity import size_text


def cores_conflict(affinity: str) -> str:
    """Return why a text names no cores; empty where it does."""
    if affinity in ("any", "big", "little") or re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", affinity):
        return ""
    return "allowed: `any`, `big`, `little`, or a list of cores such as `0-3,6`"


def _engine_conflict(engine: str) -> str:
    return "" if re.fullmatch(ENGINE_NAME, engine) else "an engine's name is a word of small letters"


def _thread_life_conflict(
    backend: str, on_cpu: str, updates: str, thread_life: str, threads: int, pipeline: str
) -> str:
    if thread_life == "kept" or gpu_alone(backend, on_cpu, updates):
        return ""
    if threads == 1:
        return "one thread is the caller's own: none is started"
    return "" if pipeline == "none" else "the stages of a pipeline keep their threads"


def _pipeline_conflict(backend: str, on_cpu: str, pipeline: str, algorithm: str, threads: int) -> str:
    if pipeline == "none" or gpu_alone(backend, on_cpu):
        return ""
    if (pipeline == "across") != (on_cpu != "none"):
        return "`across` is the pipeline of a network on GPU and CPU (`on_cpu`), and it has no other"
    if pipeline == "across":
        return ""
    if algorithm == "sequential":
        return "algorithm `sequential` is the reference on one thread: it has no pipeline"
    return "a pipeline has at least two stages, each with a thread of its own" if threads == 1 else ""


def _objects_conflict(objects: str, pipeline: str) -> str:
    return "" if objects == "kept" or pipeline == "none" else "a pipeline keeps what its stages need"


def _tuned_unused(
    backend: str, algorithm: str, granularity: int, pixels: int, product: str, transpose: str, addition: str
) -> str:
    convolutions = algorithm != "auto" or granularity > 0 or pixels > 0
    if convolutions and (backend == "cpu" or "auto" not in (product, transpose, addition)):
        return "every algorithm is asked for by name"
    return ""


RUN_AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis(
            name="thread_life",
            at_run=True,
            help="threads of the CPU backend: `kept` for the whole run; `per_call`: started and ended with each "
            "operation; `in_order`: like `per_call`, and a semaphore starts them one after another (study C)",
            default="kept",
            words=("kept", "per_call", "in_order"),
            unused=gpu_alone,
            conflict=_thread_life_conflict,
        ),
        Axis(
            name="pin_threads",
            at_run=True,
            help="whether each thread of the CPU backend (or each stage) is pinned to its own core",
            default=False,
            type=bool,
            unused=gpu_alone,
        ),
        Axis(
            name="pipeline",
            at_run=True,
            help="stages that compute successive frames at once (study C): on the CPU backend `balanced` (equal "
            "cost) or `by_kind` of layer; `across`: GPU and CPU, with `on_cpu`; needs `sampling.frames`",
            default="none",
            words=("none", "balanced", "by_kind", "across"),
            unused=gpu_alone,
            conflict=_pipeline_conflict,
        ),
        Axis(
            name="objects",
            at_run=True,
            help="context, queue, programs, memory and weights: `kept`: made once for all frames; `per_frame`: made "
            "and destroyed for each frame (study C)",
            default="kept",
            words=("kept", "per_frame"),
            conflict=_objects_conflict,
        ),
        Axis(
            name="launch",
            at_run=True,
            help="how OpenCL is given the steps of an inference: `single`: launched one by one each time; `recorded`: "
            "once, in command buffers (`cl_khr_command_buffer`); `auto`: recorded on a GPU whose driver has them",
            default="auto",
            words=("auto", "single", "recorded"),
            backends=("opencl",),
        ),
        Axis(
            name="affinity",
            at_run=True,
            help="cores that the agent may use: `any`, `big`, `little`, or a list such as `0-3,6`",
            unset="as `conditions.affinity`",
            refuse=cores_conflict,
        ),
        Axis(
            name="batch",
            at_run=True,
            help="frames of one inference; without it an inference counts as one frame, whatever the model takes; "
            "refused at submission if the model cannot take another size",
            unset="as the model has it",
            type=int,
            bounds=(1, 4096),
        ),
        Axis(
            name="updates",
            help="where a training updates the weights: on the `device` that computes the gradients, or on the `host`, "
            "by the CPU backend (study A); needs `workload.training`",
            default="device",
            words=("device", "host"),
            backends=GPU,
            page="training.md",
        ),
        Axis(
            name="tuned",
            help="whether layers with algorithm `auto` use what `farm tune` found on the device",
            default=True,
            type=bool,
            unused=_tuned_unused,
            page="tuning.md",
        ),
        Axis(
            name="choices",
            help="which values of `workload.choices` the layers use: its `best`, its `worst`, or `none`",
            unset="`best` where `workload.choices` names a file",
            words=("best", "worst", "none"),
            backends=GPU,
            page="studies.md",
        ),
        Axis(
            name="setup",
            at_run=True,
            help="compiled programs that a new process finds: `cold`: none; `warm`: those in the driver's cache; "
            "`cached`: also those in the farm's cache. An unmeasured run before each block fills the caches",
            unset="as found",
            words=("cold", "warm", "cached"),
            backends=GPU,
            page="designing-a-run.md",
        ),
    )
}
"""Axes that say how the agent runs a plan, or what goes through it, not how it is compiled; `updates` is of
trainings alone, and so no option of a command that compiles."""

FRAMES = Axis(name="frames", help="frames of a sample", default=1, type=int, at_run=True)
"""`sampling.frames` as a cell keeps it: no axis of the matrix."""

ENGINE = Axis(
    name="engine",
    help="what prepares and runs the program: `pocketfarm`, our own; `command`, which runs `workload.command`; `wait`, "
    "which takes the time of `workload.wait` and runs nothing; or another of `farm engines`",
    default=OURS.name,
    refuse=_engine_conflict,
    at_run=True,
    page="add-an-engine.md",
)
"""An axis of the matrix beside those of the compiler and the run: it decides which of the others mean anything."""

SIDE = Axis(
    name="side",
    help="side of a comparison",
    unset="the experiment has no sides",
    words=("baseline", "candidate"),
    at_run=True,
)
"""`sides` as a cell keeps it: no axis of the matrix. It tells cells apart that are otherwise the same."""

ENGINE_AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis(
            name="graph_optimization",
            at_run=True,
            help="of engine `onnxruntime`: how far it rewrites the graph before it runs",
            default="all",
            words=("none", "basic", "extended", "all"),
            backends=("cpu",),
            page="engines-side-by-side.md",
        ),
        Axis(
            name="delegate",
            at_run=True,
            help="of engines `benchmark_model` and `onnxruntime_perf_test`: what computes in place of the "
            "engine's own kernels of the CPU; `auto`: what the tool takes by itself",
            default="auto",
            words=("auto", "none", "xnnpack", "nnapi", "qnn"),
            backends=("cpu",),
            page="engines-of-phones.md",
        ),
        Axis(
            name="stage",
            at_run=True,
            help="of engines for language models: `prefill` reads `tokens` at once, `decode` generates them one by one",
            default="decode",
            words=("prefill", "decode"),
            page="engines-of-phones.md",
        ),
        Axis(
            name="tokens",
            at_run=True,
            help="of engines for language models: tokens of a sample",
            default=128,
            type=int,
            bounds=(1, 1 << 20),
            page="engines-of-phones.md",
        ),
        Axis(
            name="context_tokens",
            at_run=True,
            help="of engine `llama.cpp`: tokens that the cache holds before a sample",
            default=0,
            type=int,
            bounds=(0, 1 << 24),
            page="engines-of-phones.md",
        ),
        Axis(
            name="kv_type",
            at_run=True,
            help="of engine `llama.cpp`: the type of cached keys and values",
            default="f16",
            words=("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"),
            page="engines-of-phones.md",
        ),
        Axis(
            name="flash_attention",
            at_run=True,
            help="of engine `llama.cpp`: whether attention is computed by blocks; `auto`: where the backend can",
            default="auto",
            words=("auto", "on", "off"),
            page="engines-of-phones.md",
        ),
    )
}
"""Axes that other engines than ours bring along."""

MATRIX_AXES: dict[str, Axis] = {**COMPILE_AXES, **RUN_AXES, **ENGINE_AXES, ENGINE.name: ENGINE}
"""The optional axes of a matrix, by name."""
AXES: dict[str, Axis] = {**MATRIX_AXES, FRAMES.name: FRAMES, SIDE.name: SIDE}
"""Everything that a cell's options may hold."""
_DEFAULTS = {name: axis.default for name, axis in AXES.items()}

OF_EVERY_ENGINE = frozenset(("affinity", "batch", FRAMES.name, SIDE.name, ENGINE.name))
"""Axes that mean something whatever the engine; the others are our own engine's, and those of `AXES_OF`."""
AXES_OF: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("benchncnn", "executor_runner", "litert", "mnn", "mnn_benchmark", "ncnn", "openvino"), frozenset(("threads",))
    ),
    **dict.fromkeys(("benchmark_model", "onnxruntime_perf_test"), frozenset(("threads", "delegate"))),
    "llama.cpp": frozenset(("threads", "stage", "tokens", "context_tokens", "kv_type", "flash_attention")),
    "mnn_llm_bench": frozenset(("threads", "stage", "tokens")),
    "onnxruntime": frozenset(("threads", "graph_optimization")),
}
"""Further axes of an engine beside ours."""


def settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Every axis with its value, the default where `options` has none."""
    return {**_DEFAULTS, **options}


def conflict(backend: str, options: Mapping[str, Any]) -> str:
    """Return why these options cannot run together on a backend; empty where they can."""
    meant = _meant(backend, options)
    full = settings(meant)
    reasons = (AXES[name].why_not(backend, full) for name in AXES if name in meant)
    return next(filter(None, reasons), "")


def unused(backend: str, options: Mapping[str, Any], named: frozenset[str] | None = None) -> dict[str, str]:
    """Options that make no difference beside the others on a backend, each with its reason. `named`: those that a
    command has in braces."""
    if named is not None:
        return {name: f"the command has no {{{name}}}" for name in options.keys() & AXES.keys() - of_command(named)}
    full = settings(_meant(backend, options))
    engine = options.get(ENGINE.name, ENGINE.default)
    reasons = {
        name: AXES[name].why_unused(backend, full) if has_axis(engine, name) else f"means nothing with engine {engine}"
        for name in options
        if name in AXES
    }
    return {name: reason for name, reason in reasons.items() if reason}


def of_command(named: frozenset[str]) -> frozenset[str]:
    """Return the axes that mean something with a command that has these names in braces."""
    return named | OF_EVERY_ENGINE - {"batch"}


def has_axis(engine: str, name: str) -> bool:
    """Return whether an axis means anything with an engine."""
    return name in OF_EVERY_ENGINE or (name not in ENGINE_AXES if engine == ENGINE.default else name in axes_of(engine))


def axes_of(engine: str) -> frozenset[str]:
    """Return the axes that an engine beside ours reads itself."""
    return AXES_OF.get(engine, frozenset())


def _meant(backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that mean anything on a backend, with the engine among them."""
    engine = options.get(ENGINE.name, ENGINE.default)
    return {
        name: value
        for name, value in options.items()
        if name in AXES and backend in AXES[name].backends and has_axis(engine, name)
    }


def axis_value_text(name: str, value: object) -> str:
    """A value as people write it: `2 GB` of an axis in bytes."""
    axis = AXES.get(name)
    sized = axis is not None and axis.unit == "B" and isinstance(value, int) and value > 0
    return size_text(value) if sized and isinstance(value, int) else str(value)
