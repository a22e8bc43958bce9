"""Run an OpenCL plan on this machine through pyopencl: a plan can be checked without the native agent."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

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
    Port,
    Program,
    Step,
    SwapIn,
    SwapOut,
    Transfer,
)

BLOB = "blob.bin"


@dataclass(frozen=True)
class Run:
    """The results of a run."""

    outputs: dict[str, Array]
    device: str = ""
    """Its name, as OpenCL tells it."""


def run_opencl(bundle: Bundle, inputs: Mapping[str, Array], *, repeats: int = 1) -> Run:
    """Run a plan `repeats` times on the first device.

    Raises InputError (an input of the wrong name or shape), PlanError (not an OpenCL plan that infers, no device, or
    OpenCL refuses the plan).
    """
    import pyopencl as cl

    if bundle.plan.loops:
        raise PlanError("this plan trains or generates: only the agent runs it")
    arrays = _all_checked(bundle.plan, inputs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers' remarks
            return _Session(cl, bundle, _device(cl)).run(arrays, repeats)
    except cl.Error as e:
        raise PlanError(f"OpenCL refused the plan {bundle.plan.name!r}: {e}") from e


def _all_checked(plan: Plan, inputs: Mapping[str, Array]) -> dict[str, Array]:
    if plan.api != "opencl":
        raise PlanError(f"this is a plan for {plan.api}; only OpenCL plans run here")
    arrays = {port.name: _checked(port, inputs) for port in plan.inputs}
    surplus = sorted(set(inputs) - set(arrays))
    if surplus:
        raise InputError(f"inputs {surplus} are not known; the plan has: {', '.join(arrays)}")
    return arrays


def _checked(port: Port, inputs: Mapping[str, Array]) -> Array:
    if port.name not in inputs:
        raise InputError(f"input {port.name!r} of shape {port.shape} is missing")
    array = np.asarray(inputs[port.name])
    if array.shape != port.shape:
        raise InputError(f"input {port.name!r} has shape {array.shape}; the model wants {port.shape}")
    return as_port(port, array)


def _device(cl: Any) -> Any:
    device = next((device for platform in cl.get_platforms() for device in platform.get_devices()), None)
    if device is None:
        raise PlanError("there is no OpenCL device here")
    return device


@cache
def _context(cl: Any, device: Any) -> Any:
    return cl.Context([device])


@lru_cache(maxsize=512)
def _built(cl: Any, context: Any, text: str, options: str) -> Any:
    """A program's text, built once in this process: plans of like layers have the same texts."""
    return cl.Program(context, text).build(options=options.split())


class _Session:
    """The plan's programs, built in the context of its device, and its pools."""

    def __init__(self, cl: Any, bundle: Bundle, device: Any) -> None:
        self._cl, self._plan = cl, bundle.plan
        self._context = _context(cl, device)
        self._queue = cl.CommandQueue(self._context, device)
        self._kernels = {program.id: self._build(bundle, program) for program in self._plan.programs}
        self._buffers = self._allocate(self._plan)
        self._swapped: dict[str, np.ndarray[Any, Any]] = {}
        """Host memory of the buffers that are swapped out, as bytes."""
        self._upload(bundle)

    def run(self, inputs: Mapping[str, Array], repeats: int) -> Run:
        for port in self._plan.inputs:
            self._cl.enqueue_copy(self._queue, self._buffers[port.buffer], inputs[port.name])
        for _ in range(repeats):
            for step in self._plan.steps:
                self._step(step)
            self._queue.finish()
        return Run({port.name: self._read(port) for port in self._plan.outputs}, self._context.devices[0].name)

    def _build(self, bundle: Bundle, program: Program) -> Any:
        assert program.opencl is not None
        text = bytes(bundle.files[program.opencl.file]).decode()
        built = _built(self._cl, self._context, text, program.opencl.options)
        return self._cl.Kernel(built, program.kernel)

    def _allocate(self, plan: Plan) -> dict[str, Any]:
        flags = self._cl.mem_flags.READ_WRITE
        pools = {pool.id: self._cl.Buffer(self._context, flags, pool.bytes) for pool in plan.pools}
        return {b.id: pools[b.pool].get_sub_region(b.offset, b.bytes) for b in plan.buffers}

    def _upload(self, bundle: Bundle) -> None:
        blob = np.frombuffer(bundle.files[BLOB], np.uint8)
        for buffer in self._plan.buffers:
            if buffer.role == "variable" and buffer.blob_offset is None:
                self._cl.enqueue_copy(self._queue, self._buffers[buffer.id], np.zeros(buffer.bytes, np.uint8))
            if buffer.blob_offset is not None:
                content = blob[buffer.blob_offset : buffer.blob_offset + buffer.bytes]
                if buffer.role == "offloaded":
                    self._swapped[buffer.id] = content
                    continue
                self._cl.enqueue_copy(self._queue, self._buffers[buffer.id], content)
        self._queue.finish()

    def _step(self, step: Step) -> None:
        if isinstance(step, Copy):
            self._cl.enqueue_copy(
                self._queue,
                self._buffers[step.target],
                self._buffers[step.source],
                byte_count=step.bytes,
                src_offset=step.source_offset,
                dst_offset=step.target_offset,
            )
            return
        if isinstance(step, SwapOut):
            buffer = self._buffers[step.buffer]
            host = self._swapped.setdefault(step.host or step.buffer, np.empty(buffer.size, np.uint8))
            self._cl.enqueue_copy(self._queue, host, buffer, is_blocking=False)
            return
        if isinstance(step, SwapIn):
            host = self._swapped[step.host or step.buffer]
            self._cl.enqueue_copy(self._queue, self._buffers[step.buffer], host, is_blocking=False)
            return
        if isinstance(step, Transfer):
            raise PlanError(f"the plan is partly for cpu ({step.layer}); only the agent runs it")
        group = next(program.work_group for program in self._plan.programs if program.id == step.program)
        kernel = self._kernels[step.program]
        kernel.set_args(*self._arguments(step.arguments))
        items = tuple(-(-count // size) * size for count, size in zip(step.work_items, group, strict=True))
        self._cl.enqueue_nd_range_kernel(self._queue, kernel, items, group)

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
