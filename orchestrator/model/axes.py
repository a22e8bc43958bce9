"""The axes of an experiment: those of the compiler, and those of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from kernels.options import COMPILE_AXES, gpu_alone
from kernels.options.axis import GPU, Axis, axes_of, axis

from .device import ENGINE_NAME, OURS, OWN_AXIS
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


def _tuned_unused(backend: str, algorithm: str, granularity: int, pixels: int, product: str, transpose: str) -> str:
    convolutions = algorithm != "auto" or granularity > 0 or pixels > 0
    if convolutions and (backend == "cpu" or "auto" not in (product, transpose)):
        return "every algorithm is asked for by name"
    return ""


UNSET: Any = None
"""Nothing is asked for; `unset` says what holds then."""


def _at_run(default: Any, help: str, **facts: Any) -> Any:
    """Return an axis that the agent is told beside the plan."""
    return axis(default, help, at_run=True, **facts)


def _of_text(least: int, usual: int, tokens: str) -> Any:
    return _at_run(
        UNSET,
        f"{tokens}; needs `workload.language_model`, where it may stand too",
        unset=f"{usual} of a language model",
        bounds=(least, 1 << 20),
        page="language-models.md",
    )


@dataclass(frozen=True)
class _RunOptions:
    thread_life: Literal["kept", "per_call", "in_order"] = _at_run(
        "kept",
        "threads of the CPU backend: `kept` for the whole run; `per_call`: started and ended with each "
        "operation; `in_order`: like `per_call`, and a semaphore starts them one after another (study C)",
        unused=gpu_alone,
        conflict=_thread_life_conflict,
    )
    pin_threads: bool = _at_run(
        False, "whether each thread of the CPU backend (or each stage) is pinned to its own core", unused=gpu_alone
    )
    pipeline: Literal["none", "balanced", "by_kind", "across"] = _at_run(
        "none",
        "stages that compute successive frames at once (study C): on the CPU backend `balanced` (equal "
        "cost) or `by_kind` of layer; `across`: GPU and CPU, with `on_cpu`; needs `sampling.frames`",
        unused=gpu_alone,
        conflict=_pipeline_conflict,
    )
    objects: Literal["kept", "per_frame"] = _at_run(
        "kept",
        "context, queue, programs, memory and weights: `kept`: made once for all frames; `per_frame`: made "
        "and destroyed for each frame (study C)",
        conflict=_objects_conflict,
    )
    launch: Literal["auto", "single", "recorded"] = _at_run(
        "auto",
        "how OpenCL is given the steps of an inference: `single`: launched one by one each time; `recorded`: "
        "once, in command buffers (`cl_khr_command_buffer`); `auto`: recorded on a GPU whose driver has them",
        backends=("opencl",),
    )
    affinity: str = _at_run(
        UNSET,
        "cores that the agent may use: `any`, `big`, `little`, or a list such as `0-3,6`",
        unset="as `conditions.affinity`",
        refuse=cores_conflict,
    )
    batch: int = _at_run(
        UNSET,
        "frames of one inference; without it an inference counts as one frame, whatever the model takes; "
        "refused at submission if the model cannot take another size. Of a language model: texts side by side",
        unset="as the model has it",
        bounds=(1, 4096),
    )
    context: int = _of_text(0, 0, "tokens that the model has taken before the clock starts")
    prompt: int = _of_text(1, 512, "tokens of the prompt")
    generate: int = _of_text(1, 128, "tokens of the answer")
    updates: Literal["device", "host"] = axis(
        "device",
        "where a training updates the weights: on the `device` that computes the gradients, or on the `host`, "
        "by the CPU backend (study A); needs `workload.training`",
        backends=GPU,
        page="training.md",
    )
    tuned: bool = axis(
        True,
        "whether layers with algorithm `auto` use what `farm tune` found on the device",
        unused=_tuned_unused,
        page="tuning.md",
    )
    choices: Literal["best", "worst", "none"] = axis(
        UNSET,
        "which values of `workload.choices` the layers use: its `best`, its `worst`, or `none`",
        unset="`best` where `workload.choices` names a file",
        backends=GPU,
        page="studies.md",
    )
    setup: Literal["cold", "warm", "cached"] = _at_run(
        UNSET,
        "compiled programs that a new process finds: `cold`: none; `warm`: those in the driver's cache; "
        "`cached`: also those in the farm's cache. An unmeasured run before each block fills the caches",
        unset="as found",
        backends=GPU,
        page="designing-a-run.md",
    )
    engine: str = _at_run(
        OURS.name,
        "what prepares and runs the program: `pocketfarm`, our own; `command`, which runs `workload.command`; `wait`, "
        "which takes the time of `workload.wait` and runs nothing; or another of `farm engines`",
        refuse=_engine_conflict,
        page="add-an-engine.md",
    )


@dataclass(frozen=True)
class _CellOptions:
    frames: int = _at_run(1, "frames of a sample")
    side: Literal["baseline", "candidate"] = _at_run(UNSET, "side of a comparison", unset="the experiment has no sides")


RUN_AXES = axes_of(_RunOptions)
"""Axes that say how the agent runs a plan, or what goes through it, not how it is compiled; `updates` is of
trainings alone, and so no option of a command that compiles. `engine` decides which of the others mean anything."""
ENGINE = RUN_AXES["engine"]
FRAMES, SIDE = axes_of(_CellOptions).values()
"""`sampling.frames` and `sides` as a cell keeps them: no axes of the matrix."""

COMMAND = "command"
"""The engine of programs of one's own."""

MATRIX_AXES: dict[str, Axis] = {**COMPILE_AXES, **RUN_AXES}
"""The optional axes of a matrix, by name."""
AXES: dict[str, Axis] = {**MATRIX_AXES, FRAMES.name: FRAMES, SIDE.name: SIDE}
"""Everything that a cell's options may hold."""
_DEFAULTS = {name: axis.default for name, axis in AXES.items()}

OF_EVERY_ENGINE = frozenset(
    ("affinity", "batch", "context", "generate", "prompt", "threads", FRAMES.name, SIDE.name, ENGINE.name)
)
"""Axes that mean something whatever the engine, unless it runs nothing; the others are our own engine's."""


@cache
def axis_of(name: str) -> Axis | None:
    """Return an axis by its name: the farm's, or one that an engine's own file declares (`ENGINE.AXIS`)."""
    if name in AXES or not re.fullmatch(OWN_AXIS, name):
        return AXES.get(name)
    return Axis(name=name, help=f"of engine `{name.rpartition('.')[0]}`", unset="as the engine declares", at_run=True)


def settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Every axis with its value, the default where `options` has none."""
    return {**_DEFAULTS, **options}


def conflict(backend: str, options: Mapping[str, Any]) -> str:
    """Return why these options cannot run together on a backend; empty where they can."""
    meant = _meant(backend, options)
    full = settings(meant)
    reasons = (AXES[name].why_not(backend, full) for name in AXES if name in meant)  # an engine's own have none
    return next(filter(None, reasons), "")


def unused(backend: str, options: Mapping[str, Any], named: frozenset[str] | None = None) -> dict[str, str]:
    """Options that make no difference beside the others on a backend, each with its reason. `named`: those that a
    command has in braces."""
    if named is not None:
        apart = {name for name in options.keys() - of_command(named) if axis_of(name)}
        return {name: f"the command has no {{{name}}}" for name in apart}
    full = settings(_meant(backend, options))
    engine = options.get(ENGINE.name, ENGINE.default)
    reasons = {
        name: known.why_unused(backend, full) if has_axis(engine, name) else f"means nothing with engine {engine}"
        for name in options
        if (known := axis_of(name))
    }
    return {name: reason for name, reason in reasons.items() if reason}


def of_command(named: frozenset[str]) -> frozenset[str]:
    """Return the axes that mean something with a command that has these names in braces."""
    return named | OF_EVERY_ENGINE - {"batch", "threads"}


def has_axis(engine: str, name: str) -> bool:
    """Return whether an axis means anything with an engine."""
    if name not in AXES:
        return name.rpartition(".")[0] == engine
    return engine == ENGINE.default or (name in OF_EVERY_ENGINE and (engine, name) != ("wait", "threads"))


def _meant(backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that mean anything on a backend, with the engine among them."""
    engine = options.get(ENGINE.name, ENGINE.default)
    return {
        name: value
        for name, value in options.items()
        if (known := axis_of(name)) and backend in known.backends and has_axis(engine, name)
    }


def axis_value_text(name: str, value: object) -> str:
    """A value as people write it: `2 GB` of an axis in bytes."""
    axis = AXES.get(name)
    sized = axis is not None and axis.unit == "B" and isinstance(value, int) and value > 0
    return size_text(value) if sized and isinstance(value, int) else str(value)
