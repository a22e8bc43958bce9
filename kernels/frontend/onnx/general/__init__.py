"""Operators in general operations: map, take, gather, reduce and products (`kernels/ir/graph.py`), of any rank.

What has kernels of its own is tried first (`operators.py`); what these do not know comes here.
"""

from __future__ import annotations

from collections.abc import Callable

from kernels.frontend.onnx.context import Context, OnnxNode

from . import (
    functions,
    ordering,
    placing,
    products,
    quantized,
    recurrent,
    reductions,
    resizing,
    sampling,
    suppressing,
    windows,
)

GENERAL: dict[str, Callable[[OnnxNode, Context], None]] = {
    **dict.fromkeys(functions.UNARY, functions.unary),
    **dict.fromkeys(functions.BINARY, functions.binary),
    **dict.fromkeys(functions.VARIADIC, functions.variadic),
    **dict.fromkeys(reductions.REDUCTIONS, reductions.reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), reductions.argument),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), windows.pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), windows.global_pool),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent.recurrent),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), reductions.group_normalization),
    **dict.fromkeys(("Resize", "Upsample"), resizing.resize),
    "BatchNormalization": reductions.batch_normalization,
    "Cast": functions.cast,
    "CastLike": functions.cast,
    "Clip": functions.clip,
    "Compress": placing.compress,
    "Concat": placing.concat,
    "Conv": windows.conv,
    "ConvTranspose": windows.conv_transpose,
    "ConvInteger": quantized.conv_integer,
    "CumSum": reductions.cumulated_sum,
    "DepthToSpace": placing.depth_to_space,
    "DequantizeLinear": quantized.dequantize_linear,
    "Dropout": functions.dropout,
    "Einsum": products.einsum,
    "Expand": placing.expand,
    "EyeLike": placing.eye_like,
    "Gather": placing.gather,
    "GatherElements": placing.gather_elements,
    "GatherND": placing.gather_nd,
    "Gemm": products.gemm,
    "GridSample": sampling.grid_sample,
    "Hardmax": reductions.hardmax,
    "LayerNormalization": reductions.layer_normalization,
    "LogSoftmax": reductions.log_softmax,
    "LpNormalization": reductions.lp_normalization,
    "MatMul": products.matmul,
    "MatMulInteger": quantized.matmul_integer,
    "Mod": functions.mod,
    "NonMaxSuppression": suppressing.non_max_suppression,
    "OneHot": functions.one_hot,
    "Pad": placing.pad,
    "QLinearConv": quantized.qlinear_conv,
    "QLinearMatMul": quantized.qlinear_matmul,
    "QuantizeLinear": quantized.quantize_linear,
    "RMSNormalization": reductions.rms_normalization,
    "ReduceLogSumExp": reductions.log_sum_exp,
    "ReverseSequence": placing.reverse_sequence,
    **dict.fromkeys(("Scatter", "ScatterElements"), placing.scatter_elements),
    "ScatterND": placing.scatter_nd,
    "Size": placing.size,
    "Slice": placing.slice_,
    "SpaceToDepth": placing.space_to_depth,
    "Tile": placing.tile,
    "TopK": ordering.top_k,
    "Transpose": placing.transpose,
    "Trilu": functions.trilu,
    "Where": functions.where,
}
