"""Operators whose windows slide over the axes behind the channels."""

from __future__ import annotations

from kernels.frontend.onnx.counted_rows.rules import passed
from kernels.frontend.onnx.operator import CHANNELS, Operator

from . import images
from .col2im import col2im
from .convolutions import conv, conv_transpose
from .deformable import deform_conv
from .pooling import global_pool, pool
from .unpooling import max_unpool

OPERATORS = (
    Operator("AveragePool", operands=CHANNELS, import_=pool, direct=images.average_pool, rows=passed),
    Operator("Col2Im", import_=col2im),
    Operator("Conv", operands=("N C ...", "M c ...", "M"), import_=conv, direct=images.conv, rows=passed),
    Operator("ConvTranspose", import_=conv_transpose, rows=passed),
    Operator("DeformConv", import_=deform_conv),
    Operator(
        "GlobalAveragePool", operands=CHANNELS, import_=global_pool, direct=images.global_average_pool, rows=passed
    ),
    Operator("GlobalLpPool", import_=global_pool),
    Operator("GlobalMaxPool", import_=global_pool, rows=passed),
    Operator("LpPool", import_=pool),
    Operator("MaxPool", operands=CHANNELS, import_=pool, direct=images.max_pool, rows=passed),
    Operator("MaxUnpool", import_=max_unpool),
)
