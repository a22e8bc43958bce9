"""Windows added up into an image: a transposed convolution in which each element of a window is one channel."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.steps import Steps

from .convolutions import conv_transpose


def col2im(node: OnnxNode, to: Context) -> None:
    """Join windows, overlaps added, like PyTorch's Fold, in one to three dimensions."""
    s = Steps(node, to)
    x = s.operand(0)
    image, block = s.whole_numbers(1) or [], s.whole_numbers(2) or []
    axes = len(block)
    n, channels, windows = s.shape(x)
    strides, dilations = s.attribute("strides", [1] * axes), s.attribute("dilations", [1] * axes)
    pads = s.attribute("pads", [0] * 2 * axes)
    sides = zip(pads[:axes], pads[axes:], strict=True)
    room = [
        extent + sum(pad) - dilation * (size - 1) - 1
        for extent, pad, dilation, size in zip(image, sides, dilations, block, strict=True)
    ]
    counts = [left // stride + 1 for left, stride in zip(room, strides, strict=True)]
    if min([*counts, *block]) < 1 or prod(counts) != windows or channels % prod(block):
        node.damaged(f"{s.shape(x)} are not {counts} windows of {block} of an image of {image}")
    groups, name = channels // prod(block), to.fresh(f"{node.outputs[0]}.block")
    to.reserve(node, 4 * channels * prod(block))
    to.constants[name] = np.tile(np.eye(prod(block), dtype=np.float32), (groups, 1)).reshape(channels, 1, *block)
    attributes = {
        "strides": strides, "dilations": dilations, "pads": pads, "group": groups,
        "output_padding": [left % stride for left, stride in zip(room, strides, strict=True)],
    }  # fmt: skip
    given = s.reshape(x, (n, channels, *counts))
    conv_transpose(replace(node, inputs=(given, name), attributes=attributes), to)
