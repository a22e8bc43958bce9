"""Random ranks, shapes, attributes and broadcasts for an operator; and pairs that hand places on."""

from __future__ import annotations

from onnx import TensorProto

from .arrays import Draw, ints, normal
from .axes import along, channel_norm, cumulated, layer_norm, reduction
from .elementwise import binary, bits, clip, flipped, shift, truths, unary, where
from .layers import (
    einsum,
    gemm,
    grid_sample,
    matmul,
    moved_taps,
    places_of_maxima,
    resize,
    roi_align,
    squares,
    unpool,
    windows,
)
from .moving import (
    blocks,
    concat,
    expand,
    gather,
    gather_elements,
    gather_nd,
    pad,
    scatter_elements,
    slices,
    tensor_scatter,
    tile,
    top_k,
    transpose,
    triangle,
)
from .places import PAIRS, Chain
from .quantized import integer_product, integer_window, linear

__all__ = ["OPERATORS", "PAIRS", "SINCE", "STORED", "TWO_RESULTS", "Chain", "ints", "normal"]

OPERATORS: dict[str, Draw] = {
    **dict.fromkeys(("Abs", "Asinh", "Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Identity", "IsNaN",
                     "Mish", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign",
                     "Tanh"), unary()),
    **dict.fromkeys(("Log", "Sqrt", "Reciprocal"), unary(positive=True)),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Tan"), unary(most=0.9)),
    "Sinh": unary(), "Cosh": unary(),
    "Celu": unary(alpha=(0.5, 2.0)), "Elu": unary(alpha=(0.5, 2.0)), "Selu": unary(),
    "LeakyRelu": unary(alpha=(0.1, 0.5)),
    "ThresholdedRelu": unary(alpha=(0.5, 1.0)), "Shrink": unary(lambd=(0.5, 1.0), bias=(0.0, 0.3)),
    "HardSigmoid": unary(alpha=(0.2, 0.3), beta=(0.5, 0.1)), "Gelu": unary(approximate=("none", "tanh")),
    **dict.fromkeys(("Add", "Div", "Max", "Min", "Mul", "Sub", "Sum", "Mean"), binary()),
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), binary(whole=True)),
    "Pow": binary(positive=True), "PRelu": binary(one_way=True), "Mod": binary(fmod=1),
    **dict.fromkeys(("And", "Or", "Xor"), truths),
    "Where": where, "Clip": clip, "Cast": unary(to=(TensorProto.FLOAT16, TensorProto.INT32, TensorProto.BOOL)),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                     "ReduceProd", "ReduceSumSquare"), reduction()),
    "ReduceSum": reduction(),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along()),
    **dict.fromkeys(("ArgMax", "ArgMin"), along(keepdims=(0, 1), select_last_index=(0, 1))),
    "Flatten": along(), "LpNormalization": along(p=(1, 2)),
    "LayerNormalization": layer_norm, "InstanceNormalization": channel_norm("instance"),
    "BatchNormalization": channel_norm("batch"),
    "Transpose": transpose, "Slice": slices, "Pad": pad, "Tile": tile, "Expand": expand, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements,
    "TopK": top_k, "GridSample": grid_sample, "RoiAlign": roi_align, "Concat": concat, "Conv": windows("conv"),
    "ConvTranspose": windows("transposed"),
    "MaxPool": windows("max"), "AveragePool": windows("average"), "MatMul": matmul, "Gemm": gemm, "Resize": resize,
    "DepthToSpace": blocks(to_depth=False), "SpaceToDepth": blocks(to_depth=True), "CumSum": cumulated,
    "CumProd": cumulated, "DeformConv": moved_taps, "TensorScatter": tensor_scatter,
    "Trilu": triangle, "Det": squares, "MaxPool places": places_of_maxima, "MaxUnpool": unpool,
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), bits), "BitwiseNot": flipped, "BitShift": shift,
    "Einsum": einsum,
    "QuantizeLinear": linear(dequantize=False), "DequantizeLinear": linear(dequantize=True),
    "MatMulInteger": integer_product(scaled=False), "QLinearMatMul": integer_product(scaled=True),
    "ConvInteger": integer_window(scaled=False), "QLinearConv": integer_window(scaled=True),
}  # fmt: skip
STORED = {
    "Clip",
    "CumProd",
    "CumSum",
    "Expand",
    "Pad",
    "ReduceL1",
    "Resize",
    "Slice",
    "Tile",
    "TopK",
    "Trilu",
} | {op for op in OPERATORS if op.startswith(("Reduce", "QLinear")) or op.endswith("Integer")}
"""Operators whose inputs after the first must be constants."""
SINCE = {"CumProd": 26, "TensorScatter": 24}
"""The opset of those that are newer than the fuzzer's."""
TWO_RESULTS = {"MaxPool places", "TopK"}
"""Operators of which both results are read. What stands behind the operator's name says which kind of it is meant."""
