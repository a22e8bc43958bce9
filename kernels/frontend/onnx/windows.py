"""Convolution and pooling: what slides a window over the image."""

from __future__ import annotations

import numpy as np

from kernels.errors import ModelError
from kernels.ir.shapes import Shape

from .context import Context, OnnxNode

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]


def conv(node: OnnxNode, to: Context) -> bool:
    """Convolve images by constant weights."""
    x, weight, bias = image(node, to), to.known_finite(node, 1), to.known_finite(node, 2)
    if x is None or weight is None or weight.ndim != 4 or (bias is None and node.input(2)):
        return False
    kernel = (weight.shape[2], weight.shape[3])
    declared = tuple(node.attributes.get("kernel_shape", kernel))
    if declared != kernel:
        shape = weight.shape
        raise ModelError(f"node {node.name!r} ({node.op}): kernel_shape {declared} does not match the weight {shape}")
    strides, dilations = _pair(node, "strides"), _pair(node, "dilations")
    if strides is None or dilations is None:
        return False
    pads = _pads(node, to.shapes[x], kernel, strides, dilations)
    if pads is None:
        return False
    inputs = (x, *(to.add_weight(name, to.constants[name]) for name in filter(None, node.inputs[1:3])))
    attributes = {
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "groups": int(node.attributes.get("group", 1)),
    }
    to.emit(node, "conv", inputs, attributes)
    return True


def max_pool(node: OnnxNode, to: Context) -> bool:
    return _pool(node, to, "max_pool", {})


def average_pool(node: OnnxNode, to: Context) -> bool:
    include = int(node.attributes.get("count_include_pad", 0))
    return _pool(node, to, "average_pool", {"count_include_pad": include})


def global_average_pool(node: OnnxNode, to: Context) -> bool:
    x = image(node, to)
    return x is not None and bool(to.emit(node, "global_average_pool", (x,)))


def reduce_mean(node: OnnxNode, to: Context) -> bool:
    """Take only the mean over height and width, which is global average pooling; that of whole numbers is cut off."""
    x, stored = image(node, to), node.attributes.get("axes") or to.constants.get(node.input(1))
    if x is None or stored is None or np.issubdtype(to.type_of(x), np.integer):
        return False
    if sorted(node.axis(axis, 4) for axis in stored) != [2, 3]:
        return False
    if node.attributes.get("keepdims", 1):
        to.emit(node, "global_average_pool", (x,))
        return True
    pooled = to.emit(node, "global_average_pool", (x,), output=to.fresh(node.outputs[0] + ".mean"))
    to.reshape(node, pooled, to.shapes[x][:2])
    return True


def _pool(node: OnnxNode, to: Context, op: str, attributes: dict[str, int]) -> bool:
    x, kernel, strides = image(node, to), _pair(node, "kernel_shape", default=None), _pair(node, "strides")
    if x is None or kernel is None or strides is None or _pair(node, "dilations") != (1, 1):
        return False
    pads = _pads(node, to.shapes[x], kernel, strides, (1, 1))
    if pads is None:
        return False
    if any(pad >= k for pad, k in zip(pads, kernel * 2, strict=True)):
        raise ModelError(f"node {node.name!r} ({node.op}): pads {pads} are not smaller than the window {kernel}")
    ceil = bool(node.attributes.get("ceil_mode", 0)) and _auto_pad(node) == "NOTSET"
    to.emit(node, op, (x,), {"kernel": kernel, "strides": strides, "pads": pads, **attributes}, ceil=ceil)
    return True


def image(node: OnnxNode, to: Context) -> str | None:
    """Name of the first input, where that is an activation of the form (N, C, H, W)."""
    x = node.input(0)
    return x if to.is_activation(x) and len(to.shapes[x]) == 4 else None


def _pair(node: OnnxNode, name: str, default: Pair | None = (1, 1)) -> Pair | None:
    """Two positive numbers of an attribute; None of anything else."""
    values = node.attributes.get(name, default)
    return None if values is None or len(values) != 2 or min(values) < 1 else (int(values[0]), int(values[1]))


def _auto_pad(node: OnnxNode) -> str:
    return str(node.attributes.get("auto_pad", "NOTSET"))


def _pads(node: OnnxNode, shape: Shape, kernel: Pair, strides: Pair, dilations: Pair) -> Pads | None:
    """Pads (t, l, b, r), after auto_pad; None of others than four that are not negative."""
    mode = _auto_pad(node)
    if mode == "NOTSET":
        pads = tuple(int(p) for p in node.attributes.get("pads", (0, 0, 0, 0)))
        return None if len(pads) != 4 or min(pads) < 0 else (pads[0], pads[1], pads[2], pads[3])
    if mode == "VALID":
        return (0, 0, 0, 0)
    totals = [_same_total(shape[2 + i], kernel[i], strides[i], dilations[i]) for i in range(2)]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    first, last = (small, large) if mode == "SAME_UPPER" else (large, small)
    return (first[0], first[1], last[0], last[1])


def _same_total(extent: int, kernel: int, stride: int, dilation: int) -> int:
    """Padding along one axis so that the result has ceil(extent / stride) elements."""
    count = -(-extent // stride)
    return max(0, (count - 1) * stride + dilation * (kernel - 1) + 1 - extent)
