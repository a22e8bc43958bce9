"""Quantized operators: products in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx import folding
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.operands import result_types
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.operators import products
from kernels.frontend.onnx.operators.windows import convolutions
from kernels.frontend.onnx.steps import Operand, Steps
from kernels.ir.compositions import ROUNDED, SCALE, ZERO, clip

from .scales import check_blocks, dequantized, limits, shape_along, spread

_MOST = 255
"""The size of a number of 8 bits less its zero point."""


def quantize_linear(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    _end(s, x, _along(s, 1, s.shape(x)), _along(s, 2, s.shape(x)))


def dequantize_linear(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    s.end(s.map(("mul", ("sub", "a", "b"), "c"), x, _along(s, 2, shape), _along(s, 1, shape)))


def dynamic_quantize_linear(node: OnnxNode, to: Context) -> None:
    """Round to 8 bits as onnxruntime does: nothing but zeros has the scale 1, where ONNX divides 0 by 0."""
    s = Steps(node, to)
    x = s.operand(0)
    scale, zero = dynamic_steps(s, x)
    to.types[zero] = np.dtype(np.uint8)
    s.end(s.map(ROUNDED, x, scale, zero))
    s.end(scale, 1)
    s.end(zero, 2)


def dynamic_steps(s: Steps, x: str) -> tuple[str, str]:
    """Return the scale and the zero of a tensor's own range."""
    axes = range(len(s.shape(x)))
    low, high = (s.reduce(x, axes, kind, keep=False) for kind in ("min", "max"))
    scale = s.map(SCALE, high, low)
    return scale, s.map(ZERO, low, scale)


def matmul_integer(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(_product(s, "MatMul", products.matmul, (0, _rows(s, 2)), (1, _columns(s, 3))))


def qlinear_matmul(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    found = _product(s, "MatMul", products.matmul, (0, _rows(s, 2)), (3, _columns(s, 5)))
    _end(s, _scaled(s, found, _rows(s, 1), _columns(s, 4)), _rows(s, 6), _rows(s, 7))


def conv_integer(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    rank = len(s.shape(s.operand(1)))
    s.end(_product(s, "Conv", convolutions.conv, (0, _rows(s, 2)), (1, _channels(s, 3, rank))))


def qlinear_conv(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    rank = len(s.shape(s.operand(3)))
    factors = (0, _rows(s, 2)), (3, _channels(s, 5, rank))
    found = _product(s, "Conv", convolutions.conv, *factors, bias=_centred(s, 8, 0.0) if s.has(8) else "")
    _end(s, _scaled(s, found, _rows(s, 1), _channels(s, 4, rank - 1)), _rows(s, 6), _rows(s, 7))


def _product(
    s: Steps, op: str, emit: Callable[[OnnxNode, Context], None], *factors: tuple[int, Operand], bias: str = ""
) -> str:
    """Multiply two inputs by number, each less its zero point, in whole numbers."""
    result = s.to.fresh(f"{s.node.outputs[0]}.{op}.{len(s.to.nodes)}")
    inputs = (*(_centred(s, *factor) for factor in factors), *filter(None, [bias]))
    node = replace(s.node, op=op, inputs=inputs, outputs=(result,))
    if all(name in s.to.constants for name in inputs):
        folding.compute(node, s.to)
    else:
        emit(node, s.to)
    weight, axis = s.value(inputs[1]), tuple(range(1, len(s.shape(inputs[1])))) if op == "Conv" else -2
    terms = np.abs(np.full(s.shape(inputs[1]), _MOST) if weight is None else weight).astype(np.float64)
    most = float(terms.sum(axis if terms.ndim > 1 else 0).max(initial=0)) * _most(s, *factors[0])
    s.to.sums = max(s.to.sums, int(most))
    return result


def _most(s: Steps, index: int, zero: Operand) -> float:
    """Return the largest size of an input less its zero point."""
    off = s.value(zero) if isinstance(zero, str) else np.asarray(zero)
    low, high = limits(s.node, s.to.type_of(s.operand(index)))
    first, last = (low, high) if off is None else (float(off.min()), float(off.max()))
    return max(high - first, last - low)


def _scaled(s: Steps, found: str, *scales: Operand) -> str:
    """Whole numbers times the scales of both factors."""
    known = [s.value(scale) if isinstance(scale, str) else np.asarray(scale) for scale in scales]
    if known[0] is None or known[1] is None:
        return s.map(("mul", "a", ("mul", "b", "c")), found, *scales)
    return s.map(("mul", "a", "b"), found, known[0].astype(np.float32) * known[1].astype(np.float32))


def _end(s: Steps, real: str, scale: Operand, zero: Operand) -> None:
    """Saturated round(real / scale) + zero is the node's output; of two nearest numbers it is the even one."""
    low, high = limits(s.node, result_types(s.node, s.to)[s.node.outputs[0]])
    s.end(s.map(clip(("add", ("round", ("div", "a", "b")), "c"), low, high), real, scale, zero))


def _centred(s: Steps, index: int, zero: Operand) -> str:
    """An input less its zero point; the name of a constant where both are."""
    x = s.operand(index)
    value, off = s.value(x), s.value(zero) if isinstance(zero, str) else np.asarray(zero)
    if value is None or off is None:
        return s.map(("sub", "a", "b"), x, zero) if off is None or off.any() else x
    name = s.to.fresh(f"{x}.whole")
    s.to.constants[name] = value.astype(np.int32) - off.astype(np.int32)
    return name


def _shaped(s: Steps, index: int, shape: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Operand:
    """A scale or zero point in another shape; 0 where it is absent."""
    if not s.has(index):
        return 0.0
    name = s.operand(index)
    value, wanted = s.value(name), shape(s.shape(name))
    return s.reshape(name, wanted) if value is None else value.reshape(wanted)


def _along(s: Steps, index: int, shape: tuple[int, ...]) -> Operand:
    """Return an operand like `shape_along`; repeat those of blocks. Raises ModelError for zero points unlike their
    scales."""
    if index == 2 and s.has(2) and prod(s.shape(s.operand(2))) != prod(s.shape(s.operand(1))):
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): zero points of shape {s.shape(s.operand(2))} do not fit scales of "
            f"shape {s.shape(s.operand(1))}"
        )
    block = s.attribute("block_size", 0)
    if s.has(index) and block:
        name = s.operand(index)
        value = s.value(name)
        if value is not None:
            return spread(s.node, value, shape)
        axis = check_blocks(s.node, s.shape(name), shape)
        return s.pick(name, axis, np.arange(shape[axis]) // block)
    return _shaped(s, index, lambda given: shape_along(s.node, given, shape))


def _rows(s: Steps, index: int) -> Operand:
    """One for all, or for each row of a matrix."""
    return _shaped(s, index, lambda given: () if given in ((), (1,)) else (*given, 1) if len(given) == 1 else given)


def _columns(s: Steps, index: int) -> Operand:
    """One for all, or for each column of a matrix."""
    return _shaped(s, index, lambda given: () if given in ((), (1,)) else given)


def _channels(s: Steps, index: int, rank: int) -> Operand:
    """One for all, or for each filter of a weight of this rank."""
    return _shaped(s, index, lambda given: () if given in ((), (1,)) else (*given, *(1,) * (rank - 1)))


OPERATORS = (
    Operator("ConvInteger", import_=conv_integer),
    Operator(
        "DequantizeLinear", import_=dequantize_linear, fold=lambda node, values: dequantized(node, *values),
        fold_bytes=lambda _, values: int(values[0].size) * np.dtype(np.float32).itemsize,
    ),
    Operator("DynamicQuantizeLinear", import_=dynamic_quantize_linear),
    Operator("MatMulInteger", import_=matmul_integer),
    Operator("QLinearConv", import_=qlinear_conv),
    Operator("QLinearMatMul", import_=qlinear_matmul),
    Operator("QuantizeLinear", import_=quantize_linear),
)  # fmt: skip
