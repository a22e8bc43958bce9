"""Operators of onnxruntime's own (`com.microsoft`), as its quantiser and its optimiser write them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx

from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.operator import Operator, always
from kernels.ir.packed import PackedMatrix, few_bits

from . import attention, dynamic, grouped

DOMAIN = "com.microsoft"
Write = Callable[[Nodes], None]


def _float(n: Nodes, index: int, axis: int = 1) -> str:
    """An input of whole numbers with its scale and zero behind it, in floating point."""
    zero = [n.node.input(index + 2)] if n.node.input(index + 2) else []
    return n.dequantize_linear(n.node.input(index), n.node.input(index + 1), *zero, axis=axis)


def _whole(n: Nodes, x: str, index: int) -> None:
    """The result, by the scale that this input holds and the zero behind it."""
    zero = [n.node.input(index + 1)] if n.node.input(index + 1) else []
    n.quantize_linear(x, n.node.input(index), *zero, to_output=0)


def _linear(n: Nodes) -> None:
    n.add_node(n.node.op, *n.node.inputs, to_output=0, axis=n.attribute("axis", 1))


def _standard(n: Nodes) -> Callable[..., str]:
    """The operator that is meant, of floating-point numbers."""
    return partial(n.add_node, n.node.op.removeprefix("QLinear"))


def _two(n: Nodes) -> None:
    _whole(n, _standard(n)(_float(n, 0), _float(n, 3)), 6)


def _one(n: Nodes, *kept: str) -> None:
    if n.attribute("channels_last", 0):
        n.node.reject("channels_last = 1 is not supported; quantise the model with its channels first")
    attributes = {key: n.node.attributes[key] for key in kept if key in n.node.attributes}
    _whole(n, _standard(n)(_float(n, 0), **attributes), 3)


def _concat(n: Nodes) -> None:
    parts = [_float(n, index) for index in range(2, len(n.node.inputs), 3)]
    _whole(n, n.concat(*parts, axis=n.attribute("axis", None)), 0)


def _where(n: Nodes) -> None:
    _whole(n, n.where(n.node.input(0), _float(n, 1), _float(n, 4)), 7)


def _gemm(n: Nodes) -> None:
    turned = {key: n.attribute(key, 0) for key in ("transA", "transB")}
    a, b = _float(n, 0), _float(n, 3, axis=0 if turned["transB"] else 1)
    y = n.gemm(a, b, alpha=n.attribute("alpha", 1.0), **turned)
    if n.node.input(6):
        scale = n.mul(n.node.input(1), n.node.input(4))
        y = n.add(y, n.mul(n.cast(n.node.input(6), to=onnx.TensorProto.FLOAT), scale))
    if n.node.input(7):
        _whole(n, y, 7)
    else:
        n.end(y)


def _to_float(n: Nodes) -> None:
    """MatMulIntegerToFloat."""
    a, b, a_scale, b_scale, *more = n.node.inputs
    y = n.cast(n.matmul_integer(a, b, *more[:2]), to=onnx.TensorProto.FLOAT)
    y = n.mul(y, n.mul(a_scale, b_scale))
    n.end(n.add(y, n.node.input(6)) if n.node.input(6) else y)


def _few_bits(n: Nodes) -> None:
    """MatMulNBits: weights of few bits in blocks, each with a scale and a zero."""
    k, count, bits, block = (int(n.attribute(key, 0)) for key in ("K", "N", "bits", "block_size"))
    if bits not in (2, 4, 8) or n.node.input(4):
        n.node.reject(f"bits = {bits} with or without an order of its own (g_idx); 2, 4 and 8 bits in order are known")
    blocks = -(-k // block)
    if (matrix := _packed(n, k, blocks, bits, block)) is not None:
        y = n.matmul(n.node.input(0), n.store(matrix.T, np.float32))
        n.end(n.add(y, n.node.input(5)) if n.node.input(5) else y)
        return
    weight = _unpacked(n.constant(1).reshape(count, blocks, -1), bits)[..., :block].astype(np.float32)
    scales = n.constant(2).reshape(count, blocks, 1).astype(np.float32)
    zeros = np.full((count, blocks, 1), 2.0 ** (bits - 1), np.float32)
    if n.node.input(3):
        given = n.constant(3)
        packed = given.dtype == np.uint8
        zeros = (_unpacked(given.reshape(count, -1), bits) if packed else given.reshape(count, -1))[:, :blocks, None]
    whole = ((weight - zeros.astype(np.float32)) * scales).reshape(count, -1)[:, :k].T
    y = n.matmul(n.node.input(0), n.store(whole, np.float32))
    n.end(n.add(y, n.node.input(5)) if n.node.input(5) else y)


def _packed(n: Nodes, columns: int, blocks: int, bits: int, block: int) -> PackedMatrix | None:
    """The weights as they are stored, where kernels know such blocks."""
    codes, scales, zeros = n.constant(1), n.constant(2), n.constant(3) if n.node.input(3) else None
    known = bits in _PACKED_BITS and block in _PACKED_BLOCKS and scales.dtype in (np.float16, np.float32)
    if not known or (zeros is not None and zeros.dtype != np.uint8):
        return None
    packed = few_bits(bits, block, scales.dtype, zeros=zeros is not None)
    rows = np.empty((codes.size // (blocks * block * bits // 8), blocks), packed.stored)
    rows["q"], rows["d"] = codes.reshape(*rows.shape, -1), scales.reshape(rows.shape)
    if zeros is not None:
        rows["z"] = _unpacked(zeros.reshape(len(rows), -1), bits)[:, :blocks]
    return PackedMatrix(packed, (rows.view(np.uint8).reshape(len(rows), -1),), columns)


def _unpacked(array: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of few bits, the lowest first, from bytes along the last axis."""
    parts = [(array >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*array.shape[:-1], -1)


def _gelu(n: Nodes, approximate: str) -> None:
    x, bias = n.node.input(0), n.node.input(1)
    n.end(n.gelu(n.add(x, bias) if bias else x, approximate=approximate))


def _quick_gelu(n: Nodes) -> None:
    x = n.node.input(0)
    scaled = n.mul(x, n.store(n.attribute("alpha", 1.702), np.float32))
    n.end(n.mul(x, n.sigmoid(scaled)))


def _matmul(n: Nodes) -> None:
    """FusedMatMul. Of batches that are transposed the first axis lies behind them: it is their rows."""
    sides = []
    for index, side in enumerate("AB"):
        name, rank = n.node.input(index), len(n.shape(n.node.input(index)))
        order = [*range(1, rank - 1), 0, rank - 1] if n.attribute(f"transBatch{side}", 0) else [*range(rank)]
        order[-2:] = order[:-3:-1] if n.attribute(f"trans{side}", 0) else order[-2:]
        sides.append(n.transpose(name, perm=order) if order != [*range(rank)] else name)
    y, alpha = n.matmul(*sides), n.attribute("alpha", 1.0)
    n.end(y if alpha == 1 else n.mul(y, n.store(alpha, np.float32)))


_PACKED_BITS, _PACKED_BLOCKS = (4, 8), (16, 32, 64, 128, 256)
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def _conv(n: Nodes) -> None:
    attributes = {key: n.node.attributes[key] for key in _CONV if key in n.node.attributes}
    y = n.conv(*filter(None, n.node.inputs[:3]), **attributes)
    y = n.add(y, n.node.input(3)) if n.node.input(3) else y
    n.end(_activated(n, y, [float(number) for number in n.attribute("activation_params", [])]))


def _fused_gemm(n: Nodes) -> None:
    attributes = {
        key: n.node.attributes[key] for key in ("alpha", "beta", "transA", "transB") if key in n.node.attributes
    }
    y = n.gemm(*filter(None, n.node.inputs), **attributes)
    n.end(_activated(n, y, [float(n.attribute("activation_alpha", 0.01)), float(n.attribute("activation_beta", 0.0))]))


def _activated(n: Nodes, x: str, numbers: list[float]) -> str:
    name = str(n.attribute("activation", ""))
    if name in ("Relu", "Sigmoid", "Tanh", "HardSwish"):
        return n.add_node(name, x)
    if name == "LeakyRelu":
        return n.add_node(name, x, alpha=numbers[0])
    if name == "HardSigmoid":
        return n.add_node(name, x, alpha=numbers[0], beta=numbers[1])
    if name == "Clip":
        return n.add_node(name, x, *(n.store(number, np.float32) for number in numbers[:2]))
    if name:
        n.node.reject(f"activation {name!r} is not known")
    return x


def _skip_norm(n: Nodes, norm: str) -> None:
    x, skip, gamma, *more = n.node.inputs
    beta, bias = (more[:1], more[1:2]) if norm == "layer_normalization" else ([], more[:1])
    total = n.add(x, skip)
    total = n.add(total, bias[0]) if bias and bias[0] else total
    n.end(getattr(n, norm)(total, gamma, *filter(None, beta), axis=-1, epsilon=n.attribute("epsilon", 1e-12)))
    if n.wants(1) or n.wants(2):
        n.node.reject("the mean and the deviation are read; only its first and fourth output are supported")
    n.end(total, 3)


def simplified_norm(n: Nodes) -> None:
    """SimplifiedLayerNormalization, which onnxruntime keeps among ONNX's operators."""
    usual = {"axis": n.attribute("axis", -1), "epsilon": n.attribute("epsilon", 1e-5)}
    if n.wants(1):
        n.node.reject("the deviation is read; only its first output is supported")
    n.end(n.rms_normalization(*n.node.inputs[:2], **usual))


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_RUNTIME: dict[str, Write] = {
    "Attention": attention.attention,
    "BiasGelu": partial(_gelu, approximate="none"),
    "DequantizeLinear": _linear,
    "DynamicQuantizeLSTM": dynamic.lstm,
    "DynamicQuantizeMatMul": dynamic.matmul,
    "EmbedLayerNormalization": attention.embedding,
    "FastGelu": partial(_gelu, approximate="tanh"),
    "FusedConv": _conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _matmul,
    "Gelu": partial(_gelu, approximate="none"),
    "GroupQueryAttention": grouped.grouped,
    "MatMulIntegerToFloat": _to_float,
    "MatMulNBits": _few_bits,
    "MultiHeadAttention": attention.multi_head,
    "QGemm": _gemm,
    "QLinearAdd": _two,
    "QLinearAveragePool": lambda n: _one(n, *_POOL),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _one,
    "QLinearLeakyRelu": lambda n: _one(n, "alpha"),
    "QLinearMul": _two,
    "QLinearSigmoid": _one,
    "QLinearSoftmax": lambda n: _one(n, "axis"),
    "QLinearWhere": _where,
    "QuantizeLinear": _linear,
    "QuickGelu": _quick_gelu,
    "RotaryEmbedding": grouped.rotary,
    "SkipLayerNormalization": partial(_skip_norm, norm="layer_normalization"),
    "SkipSimplifiedLayerNormalization": partial(_skip_norm, norm="rms_normalization"),
}
OPERATORS = (
    *(Operator(name, DOMAIN, write=write, writes=always) for name, write in _RUNTIME.items()),
    Operator("SimplifiedLayerNormalization", write=simplified_norm),
)
