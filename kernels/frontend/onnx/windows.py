"""Convolution and pooling: what slides a window over the image."""

from __future__ import annotations

import numpy as np

from kernels.errors import ModelError
from kernels.ir.shapes import Shape

from .context import Context, OnnxNode

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]


def conv(node: OnnxNode, to: Context) -> None:
    x = image(node, to)
    weight = to.weight(node, 1)
    shape = to.shapes[weight]
    if len(shape) != 4:
        node.reject(f"a weight of shape {shape}; only two-dimensional convolution is supported")
    kernel = (shape[2], shape[3])
    declared = tuple(node.attributes.get("kernel_shape", kernel))
    if declared != kernel:
        raise ModelError(f"node {node.name!r} (Conv): kernel_shape {declared} does not match the weight {shape}")
    strides, dilations = _pair(node, "strides"), _pair(node, "dilations")
    bias = to.weight(node, 2)
    attributes = {
        "strides": strides,
        "pads": _pads(node, to.shapes[x], kernel, strides, dilations),
        "dilations": dilations,
        "groups": int(node.attributes.get("group", 1)),
    }
    to.emit(node, "conv", (x, weight, bias) if bias else (x, weight), attributes)


def max_pool(node: OnnxNode, to: Context) -> None:
    if _pair(node, "dilations") != (1, 1):
        node.reject("dilations other than 1 are not supported")
    _pool(node, to, "max_pool", {})


def average_pool(node: OnnxNode, to: Context) -> None:
    if _pair(node, "dilations") != (1, 1):
        node.reject("dilations other than 1 are not supported")
    _pool(node, to, "average_pool", {"count_include_pad": int(node.attributes.get("count_include_pad", 0))})


def global_average_pool(node: OnnxNode, to: Context) -> None:
    to.emit(node, "global_average_pool", (image(node, to),))


def reduce_mean(node: OnnxNode, to: Context) -> None:
    """Take only the mean over height and width, which is global average pooling."""
    x = image(node, to)
    if np.issubdtype(to.type_of(x), np.integer):
        node.reject("the mean of whole numbers is cut off")
    stored = node.attributes.get("axes") or to.optional_constant(node, 1)
    axes = sorted(node.axis(axis, 4) for axis in stored) if stored is not None else []
    if axes != [2, 3]:
        node.reject(f"the mean over axes {axes or 'of all dimensions'}; only height and width (2, 3) is supported")
    if node.attributes.get("keepdims", 1):
        to.emit(node, "global_average_pool", (x,))
        return
    pooled = to.emit(node, "global_average_pool", (x,), output=to.fresh(node.outputs[0] + ".mean"))
    to.reshape(node, pooled, to.shapes[x][:2])


def _pool(node: OnnxNode, to: Context, op: str, attributes: dict[str, int]) -> None:
    x = image(node, to)
    kernel = _pair(node, "kernel_shape", default=None)
    strides = _pair(node, "strides")
    pads = _pads(node, to.shapes[x], kernel, strides, (1, 1))
    if any(pad >= k for pad, k in zip(pads, kernel * 2, strict=True)):
        raise ModelError(f"node {node.name!r} ({node.op}): pads {pads} are not smaller than the window {kernel}")
    ceil = bool(node.attributes.get("ceil_mode", 0)) and _auto_pad(node) == "NOTSET"
    to.emit(node, op, (x,), {"kernel": kernel, "strides": strides, "pads": pads, **attributes}, ceil=ceil)


def image(node: OnnxNode, to: Context) -> str:
    """Name of the first input, which must be an image."""
    x = to.activation(node)
    if len(to.shapes[x]) != 4:
        node.reject(f"input {x!r} has shape {to.shapes[x]}; only images (N, C, H, W) are supported")
    return x


def _pair(node: OnnxNode, name: str, default: Pair | None = (1, 1)) -> Pair:
    values = node.attributes.get(name, default)
    if values is None or len(values) != 2 or min(values) < 1:
        node.reject(f"attribute {name} is {values}; two positive numbers are needed")
    return (int(values[0]), int(values[1]))


def _auto_pad(node: OnnxNode) -> str:
    return str(node.attributes.get("auto_pad", "NOTSET"))


def _pads(node: OnnxNode, shape: Shape, kernel: Pair, strides: Pair, dilations: Pair) -> Pads:
    """Pads (t, l, b, r), after auto_pad."""
    mode = _auto_pad(node)
    if mode == "NOTSET":
        pads = tuple(int(p) for p in node.attributes.get("pads", (0, 0, 0, 0)))
        if len(pads) != 4 or min(pads) < 0:
            node.reject(f"attribute pads is {pads}; four numbers (t, l, b, r), none negative, are needed")
        return (pads[0], pads[1], pads[2], pads[3])
    if mode == "VALID":
        return (0, 0, 0, 0)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        node.reject(f"auto_pad {mode!r}; supported: NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    totals = [_same_total(shape[2 + i], kernel[i], strides[i], dilations[i]) for i in range(2)]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    first, last = (small, large) if mode == "SAME_UPPER" else (large, small)
    return (first[0], first[1], last[0], last[1])


def _same_total(extent: int, kernel: int, stride: int, dilation: int) -> int:
    """Padding along one axis so that the result has ceil(extent / stride) elements."""
    count = -(-extent // stride)
    return max(0, (count - 1) * stride + dilation * (kernel - 1) + 1 - extent)
