"""The options that a cell asks of the compiler, and the limits of a device."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.options import COMPILE_AXES, Limits, Options, matrix_units
from kernels.training import TrainingOptions
from orchestrator.model.axes import AXES
from orchestrator.model.base import like
from orchestrator.model.device import Api, ApiFacts, DeviceFacts, Precision
from orchestrator.model.errors import SpecError, Unsupported
from orchestrator.model.experiment import Training
from orchestrator.model.job import Cell
from workers.devices.probe import gpu_vendor


def options_of(cell: Cell) -> Options:
    """The cell's axes as the compiler takes them, nothing tuned yet. Raises SpecError for an unknown one."""
    if unknown := cell.options.keys() - AXES.keys():
        known = ", ".join(AXES)
        raise SpecError(f"{cell.label}: no axis `{min(unknown)}`", remedy=f"axes that the farm knows: {known}")
    asked: dict[str, Any] = {name: value for name, value in cell.options.items() if name in COMPILE_AXES}
    return Options(backend=cell.backend.value, precision=cell.precision.value, **asked)


def training_options(training: Training, dtype: npt.DTypeLike) -> TrainingOptions:
    """Return the training's options as the compiler takes them."""
    return like(
        TrainingOptions,
        training,
        samples=training.dataset.trained,
        decay=training.schedule,
        pretrain_epochs=training.pretraining,
        input_dtype="u8" if np.dtype(dtype) == np.uint8 else "f32",
        scale=training.dataset.scale or 0.0,
    )


def threads_a_layer(cell: Cell, cpus: int = 0) -> int:
    """Threads of the CPU backend that work on one layer; 0: one a core. Stages of a pipeline have one each."""
    if cell.options.get("pipeline", "none") != "none":
        return 1
    return options_of(cell).threads or cpus


def limits_of(device: DeviceFacts, backend: Api, precision: Precision) -> Limits:
    """Return the compiler's limits on this device. Raises Unsupported where it lacks the API or the precision."""
    api = device.api(backend)
    if api is None:
        has = ", ".join(facts.api for facts in device.apis) or "none"
        raise Unsupported(f"it has no {backend}; it has: {has}", device=device.serial)
    if precision not in api.precisions:
        raise Unsupported(
            f"its {backend} has no {precision}; it has: {', '.join(api.precisions)}", device=device.serial
        )
    return like(
        Limits,
        api,
        memory_budget_bytes=api.global_bytes,
        precisions=tuple(each.value for each in api.precisions),
        cpu_device=api.api == Api.CPU or gpu_vendor(api.device_name, api.vendor, api.driver) == "cpu",
        opencl_c=opencl_c(api),
        matrix_units=matrix_units(api.matrix_units),
        dot_product=api.dot_product if api.dot_product in ("khr", "ptx") else "",
        int8_layers=api.api != Api.CPU or bool(api.dot_product),
    )


def opencl_c(api: ApiFacts) -> str:
    """Newest OpenCL C of a device by its version string, e.g. `OpenCL 2.1 AMD-APP` -> 2.0."""
    match = re.search(r"OpenCL (\d)\.(\d)", api.version)
    version = (int(match[1]), int(match[2])) if match else (1, 2)
    return next(f"{a}.{b}" for a, b in ((3, 0), (2, 0), (1, 2), (1, 1), (0, 0)) if version >= (a, b)).replace(
        "0.0", "1.1"
    )
