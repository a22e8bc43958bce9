"""Small plans written by hand, the same for every API: `binary` of kernels/lower/cpu/agent_operations.py."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.codegen.spirv import compile_all
from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.plan.model import (
    Buffer,
    BufferArgument,
    Bundle,
    Dispatch,
    FloatArgument,
    IntArgument,
    OpenClSource,
    Plan,
    Pool,
    Port,
    Program,
    Requires,
    SpirvModule,
    Step,
)

Array = npt.NDArray[np.float32]
COUNT = 1000
"""Elements of every vector here: not a multiple of a work-group."""
ALIGNMENT = 4096
"""Offsets of buffers: above what any device here asks for."""

OPENCL = """
typedef struct { int op, mode, outer, axis, inner, activation; float lo, hi; } Scalars;
__kernel void binary(__global const float* a, __global const float* b, __global float* dst, const Scalars given) {
  int op = given.op, mode = given.mode, outer = given.outer, axis = given.axis, inner = given.inner;
  int activation = given.activation;
  float lo = given.lo, hi = given.hi;
  int i = get_global_id(0);
  if (i >= outer * axis * inner) return;
  float y = b[mode == 0 ? i : mode == 1 ? i / inner % axis : 0];
  float r = op == 0 ? a[i] + y : a[i] * y;
  dst[i] = activation == 1 ? fmax(r, 0.0f) : activation == 2 ? clamp(r, lo, hi) : r;
}
typedef struct { int rounds; } Rounds;
__kernel void spin(__global float* dst, const Rounds given) {
  int rounds = given.rounds;
  float x = dst[0];
  for (int i = 0; i < rounds; ++i)
    for (int j = 0; j < 1000000; ++j) x = x * 0.5f + dst[j & 7];
  dst[0] = x;
}
"""
GLSL_BINARY = """#version 450
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) readonly buffer B { float b[]; };
layout(std430, binding = 2) buffer D { float dst[]; };
layout(push_constant) uniform P { int op, mode, outer, axis, inner, activation; float lo, hi; };
void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i >= outer * axis * inner) return;
  float y = b[mode == 0 ? i : mode == 1 ? i / inner % axis : 0];
  float r = op == 0 ? a[i] + y : a[i] * y;
  dst[i] = activation == 1 ? max(r, 0.0) : activation == 2 ? clamp(r, lo, hi) : r;
}
"""
FILES = {"opencl": "programs/small.cl", "vulkan": "programs/binary.spv"}


@lru_cache
def spirv(source: str) -> bytes:
    with TemporaryDirectory() as folder:
        return compile_all([source], cache=Path(folder))[0]


def binary_program(api: str) -> Program:
    return Program(
        id="binary", kernel="binary", parameters=CPU_OPERATIONS["binary"],
        work_group=(1, 1, 1) if api == "cpu" else (64, 1, 1),
        opencl=OpenClSource(file=FILES["opencl"], options="-cl-std=CL1.2") if api == "opencl" else None,
        vulkan=SpirvModule(file=FILES["vulkan"]) if api == "vulkan" else None,
    )  # fmt: skip


def combine(a: str, b: str, target: str, *, op: int = 0, layer: str = "layer") -> Dispatch:
    """target = a + b (op 0) or a * b (op 1)."""
    ints = (op, 0, 1, COUNT, 1, 0)
    return Dispatch(
        program="binary", layer=layer, work_items=(COUNT, 1, 1),
        arguments=(
            *(BufferArgument(buffer=name) for name in (a, b, target)),
            *(IntArgument(i32=value) for value in ints),
            FloatArgument(f32=0.0), FloatArgument(f32=0.0),
        ),
    )  # fmt: skip


@dataclass
class Draft:
    """A plan under construction: vectors of COUNT floats, each with its own place in one pool."""

    api: str
    steps: list[Step] = field(default_factory=list)
    inputs: list[str] = field(default_factory=lambda: ["x"])
    outputs: list[str] = field(default_factory=lambda: ["y"])
    weights: dict[str, Array] = field(default_factory=dict)
    offloaded: set[str] = field(default_factory=set)
    """Weights that wait in host memory."""
    places: dict[str, int] = field(default_factory=dict)
    """Slot in the pool of a buffer that is to share bytes with another."""
    programs: list[Program] | None = None

    def bundle(self, **changes: Any) -> Bundle:
        """The finished plan; `changes` replace its members."""
        names = self._names()
        slots = {name: self.places.get(name, number) for number, name in enumerate(names)}
        blob = b"".join(self.weights[name].tobytes() for name in self.weights)
        files = self._files() | ({"blob.bin": blob} if blob else {})
        pool_bytes = ALIGNMENT * (max(slots.values()) + 1)
        members: dict[str, Any] = {
            "name": "hand-made", "api": self.api, "precision": "fp32", "blob_bytes": len(blob),
            "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
            "requires": Requires(total_bytes=pool_bytes, max_buffer_bytes=pool_bytes),
            "programs": tuple(self.programs or [binary_program(self.api)]),
            "pools": (Pool(id="pool", bytes=pool_bytes),),
            "buffers": tuple(self._buffer(name, slots[name]) for name in names),
            "steps": tuple(self.steps),
            "inputs": tuple(Port(name=name, buffer=name, shape=(1, COUNT)) for name in self.inputs),
            "outputs": tuple(Port(name=name, buffer=name, shape=(1, COUNT)) for name in self.outputs),
        }  # fmt: skip
        return Bundle(Plan.model_validate(members | changes), files)

    def _names(self) -> list[str]:
        used = [*self.inputs, *self.weights, *self.outputs, *_buffers(self.steps)]
        return list(dict.fromkeys(used))

    def _files(self) -> dict[str, bytes]:
        if self.api == "cpu":
            return {}
        content = OPENCL.encode() if self.api == "opencl" else spirv(GLSL_BINARY)
        return {FILES[self.api]: content}

    def _buffer(self, name: str, slot: int) -> Buffer:
        role = (
            "input" if name in self.inputs
            else "output" if name in self.outputs
            else "offloaded" if name in self.offloaded
            else "weight" if name in self.weights
            else "activation"
        )  # fmt: skip
        blob_offset = list(self.weights).index(name) * COUNT * 4 if name in self.weights else None
        return Buffer.model_validate(
            {
                "id": name, "pool": "pool", "offset": slot * ALIGNMENT, "bytes": COUNT * 4, "role": role,
                "blob_offset": blob_offset,
            }
        )  # fmt: skip


def _buffers(steps: list[Step] | tuple[Step, ...]) -> list[str]:
    names: list[str] = []
    for step in steps:
        if step.kind == "dispatch":
            names += [argument.buffer for argument in step.arguments if isinstance(argument, BufferArgument)]
        elif step.kind == "copy":
            names += [step.source, step.target]
        else:
            names.append(step.buffer)
    return names


def vector(seed: int) -> Array:
    """COUNT random floats."""
    return np.random.default_rng(seed).standard_normal(COUNT, dtype=np.float32)
