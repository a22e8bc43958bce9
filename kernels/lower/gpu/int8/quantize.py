"""An activation in whole numbers of 8 bits: by a step that the model gives, else by the range of each picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernels.ir.graph import Array
from kernels.lower.cpu.codes import Steps
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import packed
from kernels.lower.gpu.values import CodeBuffer, View
from kernels.plan.model import Tensor
from kernels.source.dot_products import dot_switch
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import SharedSum

_RANGE = Kernel(
    "int8_range", Path(__file__).with_name("range.c"), (Buffer("src"), result("ranges", storage="f32")),
    (*view("src"), "stacks", "hw", "span", "chunks"), tile=SharedSum, locals=(LocalArray("partial", "SHARED"),),
)  # fmt: skip
_QUANTIZE = Kernel(
    "int8_quantize", Path(__file__).with_name("quantize.c"),
    (Buffer("src"), Buffer("ranges", storage="f32"), result("steps", storage="f32"), result("codes", 1, "i32")),
    (*view("src"), "hw", "count", "chunks"), whole_numbers=True,
)  # fmt: skip
_GIVEN = Kernel(
    "int8_quantize_given", Path(__file__).with_name("quantize_given.c"), (Buffer("src"), result("codes", 1, "i32")),
    (*view("src"), "hw", "count"), ("step_size", "zero"), whole_numbers=True,
)  # fmt: skip
_CHUNKS, _CHUNKS_OF_A_CPU, _CHUNK = 32, 4, 1024
"""The most chunks into which a picture is divided, and the fewest vectors of one."""
_RUN = 4
"""Vectors of a work-item, which looks through the ranges first."""


def quantized(context: GpuContext, tensor: str, steps: Steps | None) -> CodeBuffer:
    """A tensor as a layer in 8 bits reads it; made where it does not exist yet."""
    if (tensor, steps) not in context.code_buffers:
        source = packed(context, tensor)
        made = _given(context, tensor, source, steps) if steps else _by_range(context, tensor, source)
        context.code_buffers[tensor, steps] = made
    return context.code_buffers[tensor, steps]


def new_codes(context: GpuContext, tensor: str) -> str:
    """A buffer for the whole numbers of a tensor."""
    dims = context.dims(tensor)
    described = Tensor(shape=(dims.n, dims.stacks, dims.hw, 4), dtype="i8", layout="packed")
    return context.draft.add_buffer(f"{tensor}:int8", dims.packed_elements, "scratch", described)


def given_steps(context: GpuContext, tensor: str, steps: Steps) -> str:
    """Steps of the model, for kernels."""
    return single(context, f"{tensor}:steps", np.array([[steps[0], steps[1] - 128, 0, 0]]))


def single(context: GpuContext, name: str, vectors: Array) -> str:
    """Vectors (.., 4) of constants."""
    content = vectors.astype(np.float32)
    return context.draft.add_weight(name, content.tobytes(), Tensor(shape=content.shape, dtype="f32", layout="packed"))


def _given(context: GpuContext, tensor: str, source: View, steps: Steps) -> CodeBuffer:
    dims, words = context.dims(tensor), new_codes(context, tensor)
    count = dims.stacks * dims.hw
    context.dispatch(
        _GIVEN, f"{tensor}:quantize", {"src": source, "codes": words},
        {**source.ints("src"), "hw": dims.hw, "count": count}, (count, dims.n, 1),
        floats={"step_size": steps[0], "zero": float(steps[1])}, switches=dot_switch(""),
        traffic=5 * dims.packed_elements,
    )  # fmt: skip
    return CodeBuffer(words, given_steps(context, tensor, steps), by_picture=False)


def _by_range(context: GpuContext, tensor: str, source: View) -> CodeBuffer:
    dims, words = context.dims(tensor), new_codes(context, tensor)
    count = dims.stacks * dims.hw
    most = _CHUNKS_OF_A_CPU if context.limits.cpu_device else _CHUNKS
    chunks = max(1, min(most, count // _CHUNK))
    span = -(-count // chunks)
    group = context.sharing(_RANGE, span) or 1
    ranges, steps = _vectors(context, f"{tensor}:ranges", dims.n * chunks), _vectors(context, f"{tensor}:steps", dims.n)
    lanes = dims.c % 4
    context.dispatch(
        _RANGE, f"{tensor}:range", {"src": source, "ranges": ranges},
        {**source.ints("src"), "stacks": dims.stacks, "hw": dims.hw, "span": span, "chunks": chunks},
        (chunks * group, dims.n, 1), tile=SharedSum(1, group), switches={"LAST_LANES": lanes} if lanes else {},
        group=group, traffic=4 * dims.packed_elements,
    )  # fmt: skip
    context.dispatch(
        _QUANTIZE, f"{tensor}:quantize", {"src": source, "ranges": ranges, "steps": steps, "codes": words},
        {**source.ints("src"), "hw": dims.hw, "count": count, "chunks": chunks}, (-(-count // _RUN), dims.n, 1),
        switches={"RUN": _RUN, **dot_switch("")}, traffic=5 * dims.packed_elements,
    )  # fmt: skip
    return CodeBuffer(words, steps, by_picture=True)


def _vectors(context: GpuContext, name: str, count: int) -> str:
    return context.draft.add_buffer(name, 16 * count, "scratch", Tensor(shape=(count, 4), dtype="f32"))
