"""Quantized operators in whole numbers, which fp32 holds exactly up to 2^24."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.operands import result_types
from kernels.frontend.onnx.operator import Operator, Values
from kernels.frontend.onnx.operators.quantized.scales import dequantized
from kernels.frontend.onnx.steps import Operand, Steps
from kernels.ir.compositions import clip

from . import products
from .scales import check_blocks, limits, shape_along, spread


def quantize_linear(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    _end(s, x, _along(s, 1, s.shape(x)), _along(s, 2, s.shape(x)))


def dequantize_linear(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    s.end(s.map(("mul", ("sub", "a", "b"), "c"), x, _along(s, 2, shape), _along(s, 1, shape)))


def matmul_integer(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(_matmul(s, (0, _rows(s, 2)), (1, _columns(s, 3)))[0])


def qlinear_matmul(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    found, _ = _matmul(s, (0, _rows(s, 2)), (3, _columns(s, 5)))
    real = s.map(("mul", "a", ("mul", "b", "c")), found, _rows(s, 1), _columns(s, 4))
    _end(s, real, _rows(s, 6), _rows(s, 7))


def conv_integer(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    rank = len(s.shape(s.operand(1)))
    s.end(_conv(s, (0, _rows(s, 2)), (1, _channels(s, 3, rank)))[0])


def qlinear_conv(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    rank = len(s.shape(s.operand(3)))
    found, _ = _conv(s, (0, _rows(s, 2)), (3, _channels(s, 5, rank)), _centred(s, 8, 0.0) if s.has(8) else "")
    real = s.map(("mul", "a", ("mul", "b", "c")), found, _rows(s, 1), _channels(s, 4, rank - 1))
    _end(s, real, _rows(s, 6), _rows(s, 7))


def _matmul(s: Steps, *factors: tuple[int, Operand]) -> tuple[str, float]:
    """Multiply two inputs by number, each less its zero point; return also how large the result is at most."""
    a, b = (_centred(s, *factor) for factor in factors)
    return products.matmul(s, a, b, (_most(s, *factors[0]), _most(s, *factors[1])))


def _conv(s: Steps, x: tuple[int, Operand], weight: tuple[int, Operand], bias: str = "") -> tuple[str, float]:
    return products.conv(s, _centred(s, *x), _centred(s, *weight), bias, (_most(s, *x), _most(s, *weight)))


def _end(s: Steps, real: str, scale: Operand, zero: Operand) -> None:
    """Saturated round(real / scale) + zero is the node's output; of two nearest numbers it is the even one."""
    low, high = limits(s.node, result_types(s.node, s.to)[s.node.outputs[0]])
    s.end(s.map(clip(("add", ("round", ("div", "a", "b")), "c"), low, high), real, scale, zero))


def _most(s: Steps, index: int, zero: Operand) -> float:
    """The largest size of an input less its zero point."""
    name = s.operand(index)
    known, off = s.value(name), s.value(zero) if isinstance(zero, str) else np.asarray(zero)
    low, high = limits(s.node, s.to.type_of(name))
    if known is not None and known.size:
        low, high = float(known.min()), float(known.max())
    first, last = (low, high) if off is None else (float(off.min()), float(off.max()))
    return max(high - first, last - low)


def _centred(s: Steps, index: int, zero: Operand) -> str:
    """An input less its zero point; the name of a constant where both are."""
    x = s.operand(index)
    value, off = s.value(x), s.value(zero) if isinstance(zero, str) else np.asarray(zero)
    if value is None or off is None:
        return s.map(("sub", "a", "b"), x, zero) if off is None or off.any() else x
    name = s.to.fresh(f"{x}.whole")
    s.to.constants[name] = value.astype(np.float32) - off.astype(np.float32)
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


def _dequantized_bytes(_: OnnxNode, values: Values) -> int:
    return int(values[0].size) * np.dtype(np.float32).itemsize


OPERATORS = (
    Operator("ConvInteger", import_=conv_integer),
    Operator(
        "DequantizeLinear", import_=dequantize_linear, fold=lambda node, values: dequantized(node, *values),
        fold_bytes=_dequantized_bytes,
    ),
    Operator("MatMulInteger", import_=matmul_integer),
    Operator("QLinearConv", import_=qlinear_conv),
    Operator("QLinearMatMul", import_=qlinear_matmul),
    Operator("QuantizeLinear", import_=quantize_linear),
)  # fmt: skip
