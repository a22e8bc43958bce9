"""Convolution and pooling: what slides a window over the image."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.steps import Steps

from . import numbers, pads_of


def conv(node: OnnxNode, to: Context) -> bool:
    """Convolve images by constant weights."""
    x, weight, bias = image(node, to), to.known_finite(node, 1), to.known_finite(node, 2)
    if x is None or weight is None or weight.ndim != 4 or (bias is None and node.input(2)):
        return False
    kernel, s = weight.shape[2:], Steps(node, to)
    declared = tuple(node.attributes.get("kernel_shape", kernel))
    if declared != kernel:
        shape = weight.shape
        node.damaged(f"kernel_shape {declared} does not match the weight {shape}")
    strides, dilations = numbers(s, "strides", 2, 1), numbers(s, "dilations", 2, 1)
    pads = _pads(s, x, kernel, strides, dilations)
    if min(pads) < 0:
        return False
    inputs = (x, *(to.add_weight(name, to.constants[name]) for name in filter(None, node.inputs[1:3])))
    attributes = {
        "strides": tuple(strides),
        "pads": pads,
        "dilations": tuple(dilations),
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


def _pool(node: OnnxNode, to: Context, op: str, attributes: dict[str, int]) -> bool:
    x, s = image(node, to), Steps(node, to)
    if x is None or numbers(s, "dilations", 2, 1) != [1, 1]:
        return False
    kernel, strides = tuple(numbers(s, "kernel_shape", 2, 1)), tuple(numbers(s, "strides", 2, 1))
    pads = _pads(s, x, kernel, strides, (1, 1))
    if min(pads) < 0:
        return False
    if any(pad >= k for pad, k in zip(pads, kernel * 2, strict=True)):
        node.damaged(f"pads {pads} are not smaller than the window {kernel}")
    ceil = bool(s.attribute("ceil_mode", 0)) and s.attribute("auto_pad", "NOTSET") == "NOTSET"
    to.emit(node, op, (x,), {"kernel": kernel, "strides": strides, "pads": pads, **attributes}, ceil=ceil)
    return True


def image(node: OnnxNode, to: Context) -> str | None:
    """Name of the first input, where that is an activation of the form (N, C, H, W)."""
    x = node.input(0)
    return x if to.is_activation(x) and len(to.shapes[x]) == 4 else None


def _pads(s: Steps, x: str, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Pads (t, l, b, r), after auto_pad."""
    (top, bottom), (left, right) = pads_of(s, s.shape(x)[2:], kernel, strides, dilations)
    return top, left, bottom, right
