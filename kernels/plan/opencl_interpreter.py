"""Run an OpenCL plan on this machine through pyopencl: a plan can be checked without the native agent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy as np

from kernels.errors import InputError, PlanError
from kernels.ir.graph import Array
from kernels.plan.port_values import NUMPY, as_port

from .model import (
    BufferArgument,
    Bundle,
    Copy,
    FloatArgument,
    IntArgument,
    Plan,
    Pool,
    Port,
    Program,
    Stage,
    Step,
    SwapIn,
    SwapOut,
    Transfer,
)

BLOB = "blob.bin"


_R = TypeVar("_R")


@dataclass(frozen=True)
class StepTime:
    """Device time of one step, from the queue's profiling events."""

    layer: str
    program: str
    duration_ns: int


@dataclass(frozen=True)
class Run:
    """The results of a run."""

    outputs: dict[str, Array]
    device: str = ""
    """Its name, as OpenCL tells it."""
    timings: dict[str, int] = field(default_factory=dict)
    """`build_ns`, `upload_ns`, `inference_ns` (the last inference, wall time)."""
    steps: tuple[StepTime, ...] = ()
    """The last inference, step by step; only with `profile`."""


def run_opencl(
    bundle: Bundle,
    inputs: Mapping[str, Array],
    *,
    platform: str = "",
    device_index: int = 0,
    repeats: int = 1,
    profile: bool = False,
) -> Run:
    """Run a plan `repeats` times on the device_index-th device of the platforms whose name contains `platform`.

    Raises InputError (an input of the wrong name or shape), PlanError (not an OpenCL plan, or OpenCL refuses it).
    """
    if bundle.plan.stages:
        raise PlanError("this plan trains: give it to train_opencl")
    arrays = _all_checked(bundle.plan, inputs)
    return _with_session(bundle, platform, device_index, profile, lambda session: session.run(arrays, repeats))


@dataclass(frozen=True)
class EpochSums:
    """The sums of an epoch of training, as the agent reports them."""

    stage: str
    loss: float
    """Mean over its samples."""
    error: float | None
    """Share of wrong answers, where there are answers."""


@dataclass(frozen=True)
class Trained:
    """Epochs that were run, and what lies in every variable behind the last."""

    epochs: tuple[EpochSums, ...]
    variables: dict[str, bytes]


def train_opencl(bundle: Bundle, inputs: Mapping[str, Array], *, platform: str = "", device_index: int = 0) -> Trained:
    """Run a plan that trains from its beginning to its end. `inputs`: the whole data set. Raises as `run_opencl`."""
    arrays = _all_checked(bundle.plan, inputs)
    return _with_session(bundle, platform, device_index, False, lambda session: session.train(arrays))


def _all_checked(plan: Plan, inputs: Mapping[str, Array]) -> dict[str, Array]:
    if plan.api != "opencl":
        raise PlanError(f"this is a plan for {plan.api}; only OpenCL plans run here")
    arrays = {port.name: _checked(port, inputs) for port in plan.inputs}
    surplus = sorted(set(inputs) - set(arrays))
    if surplus:
        raise InputError(f"inputs {surplus} are not known; the plan has: {', '.join(arrays)}")
    return arrays


def _with_session(bundle: Bundle, platform: str, index: int, profile: bool, act: Callable[[_Session], _R]) -> _R:
    import pyopencl as cl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers' remarks
            return act(_Session(cl, bundle, _device(cl, platform, index), profile))
    except cl.Error as e:
        raise PlanError(f"OpenCL refused the plan {bundle.plan.name!r}: {e}") from e


def _checked(port: Port, inputs: Mapping[str, Array]) -> Array:
    if port.name not in inputs:
        raise InputError(f"input {port.name!r} of shape {port.shape} is missing")
    array = np.asarray(inputs[port.name])
    if array.shape != port.shape:
        raise InputError(f"input {port.name!r} has shape {array.shape}; the model wants {port.shape}")
    return as_port(port, array)


def _device(cl: Any, platform: str, index: int) -> Any:
    platforms = [found for found in cl.get_platforms() if platform.lower() in found.name.lower()]
    devices = [device for found in platforms for device in found.get_devices()]
    if index >= len(devices):
        raise PlanError(f"there is no OpenCL device {index} here ({len(devices)} found on platforms like {platform!r})")
    return devices[index]


@cache
def _context(cl: Any, device: Any) -> Any:
    return cl.Context([device])


@lru_cache(maxsize=512)
def _built(cl: Any, context: Any, text: str, options: str) -> Any:
    """A program's text, built once in this process: plans of like layers have the same texts."""
    return cl.Program(context, text).build(options=options.split())


class _Session:
    """The plan's programs, built in the context of its device, and its pools."""

    def __init__(self, cl: Any, bundle: Bundle, device: Any, profile: bool) -> None:
        self._cl, self._plan, self._profile = cl, bundle.plan, profile
        self._context = _context(cl, device)
        properties = cl.command_queue_properties.PROFILING_ENABLE if profile else 0
        self._queue = cl.CommandQueue(self._context, device, properties=properties)
        start = perf_counter_ns()
        self._kernels = {program.id: self._build(bundle, program) for program in self._plan.programs}
        built = perf_counter_ns()
        self._buffers = self._allocate(self._plan)
        self._swapped: dict[str, np.ndarray[Any, Any]] = {}
        """Host memory of the buffers that are swapped out, as bytes."""
        self._upload(bundle)
        self._timings = {"build_ns": built - start, "upload_ns": perf_counter_ns() - built}

    def run(self, inputs: Mapping[str, Array], repeats: int) -> Run:
        for port in self._plan.inputs:
            self._cl.enqueue_copy(self._queue, self._buffers[port.buffer], inputs[port.name])
        events: list[Any] = []
        for _ in range(repeats):
            self._queue.finish()
            start = perf_counter_ns()
            events = [self._step(step) for step in self._plan.steps]
            self._queue.finish()
            self._timings["inference_ns"] = perf_counter_ns() - start
        outputs = {port.name: self._read(port) for port in self._plan.outputs}
        return Run(outputs, self._context.devices[0].name, self._timings, self._times(events))

    def train(self, inputs: Mapping[str, Array]) -> Trained:
        for port in self._plan.inputs:
            self._cl.enqueue_copy(self._queue, self._buffers[port.buffer], inputs[port.name])
        epochs = [self._epoch(stage) for stage in self._plan.stages for _ in range(stage.epochs)]
        kept = [buffer for buffer in self._plan.buffers if buffer.role == "variable"]
        return Trained(tuple(epochs), {buffer.id: self._bytes(buffer.id, buffer.bytes) for buffer in kept})

    def _epoch(self, stage: Stage) -> EpochSums:
        for _ in range(stage.batches):
            for step in self._plan.steps[stage.begin : stage.end]:
                self._step(step)
            self._queue.flush()
        loss, wrong = (float(each) / stage.samples for each in np.frombuffer(self._bytes(stage.report, 8), np.float32))
        return EpochSums(stage.name, loss, wrong if stage.classifies else None)

    def _bytes(self, buffer: str, size: int) -> bytes:
        array = np.empty(size, np.uint8)
        self._cl.enqueue_copy(self._queue, array, self._buffers[buffer])
        return array.tobytes()

    def _build(self, bundle: Bundle, program: Program) -> Any:
        assert program.opencl is not None
        text = bundle.files[program.opencl.file].decode()
        built = _built(self._cl, self._context, text, program.opencl.options)
        return self._cl.Kernel(built, program.kernel)

    def _allocate(self, plan: Plan) -> dict[str, Any]:
        flags = self._cl.mem_flags.READ_WRITE
        pools = {pool.id: self._pool(pool, flags) for pool in plan.pools}
        return {
            b.id: pools[b.pool] if b.image else pools[b.pool].get_sub_region(b.offset, b.bytes) for b in plan.buffers
        }

    def _pool(self, pool: Pool, flags: int) -> Any:
        if pool.image is None:
            return self._cl.Buffer(self._context, flags, pool.bytes)
        kind = self._cl.channel_type.HALF_FLOAT if pool.image.format == "rgba16f" else self._cl.channel_type.FLOAT
        form = self._cl.ImageFormat(self._cl.channel_order.RGBA, kind)
        return self._cl.create_image(self._context, flags, form, shape=(pool.image.width, pool.image.height))

    def _upload(self, bundle: Bundle) -> None:
        blob = np.frombuffer(bundle.files[BLOB], np.uint8)
        for buffer in self._plan.buffers:
            if buffer.blob_offset is not None:
                content = blob[buffer.blob_offset : buffer.blob_offset + buffer.bytes]
                if buffer.role == "offloaded":
                    self._swapped[buffer.id] = content
                    continue
                self._cl.enqueue_copy(self._queue, self._buffers[buffer.id], content)
        self._queue.finish()

    def _step(self, step: Step) -> Any:
        if isinstance(step, Copy):
            return self._cl.enqueue_copy(
                self._queue,
                self._buffers[step.target],
                self._buffers[step.source],
                byte_count=step.bytes,
                src_offset=step.source_offset,
                dst_offset=step.target_offset,
            )
        if isinstance(step, SwapOut):
            buffer = self._buffers[step.buffer]
            host = self._swapped.setdefault(step.host or step.buffer, np.empty(buffer.size, np.uint8))
            return self._cl.enqueue_copy(self._queue, host, buffer, is_blocking=False)
        if isinstance(step, SwapIn):
            host = self._swapped[step.host or step.buffer]
            return self._cl.enqueue_copy(self._queue, self._buffers[step.buffer], host, is_blocking=False)
        if isinstance(step, Transfer):
            raise PlanError(f"the plan is partly for cpu ({step.layer}); only the agent runs it")
        group = next(program.work_group for program in self._plan.programs if program.id == step.program)
        kernel = self._kernels[step.program]
        kernel.set_args(*self._arguments(step.arguments))
        items = tuple(-(-count // size) * size for count, size in zip(step.work_items, group, strict=True))
        return self._cl.enqueue_nd_range_kernel(self._queue, kernel, items, group)

    def _arguments(self, given: Sequence[BufferArgument | IntArgument | FloatArgument]) -> list[Any]:
        """Buffers, then one structure of all scalars."""
        buffers = [self._buffers[one.buffer] for one in given if isinstance(one, BufferArgument)]
        scalars = [
            np.int32(one.i32).tobytes() if isinstance(one, IntArgument) else np.float32(one.f32).tobytes()
            for one in given
            if not isinstance(one, BufferArgument)
        ]
        return [*buffers, *([np.frombuffer(b"".join(scalars), np.uint8)] if scalars else [])]

    def _read(self, port: Port) -> Array:
        array = np.empty(port.shape, NUMPY[port.dtype])
        self._cl.enqueue_copy(self._queue, array, self._buffers[port.buffer])
        return array

    def _times(self, events: list[Any]) -> tuple[StepTime, ...]:
        if not self._profile:
            return ()
        return tuple(
            StepTime(step.layer, getattr(step, "program", step.kind), event.profile.end - event.profile.start)
            for step, event in zip(self._plan.steps, events, strict=True)
        )
