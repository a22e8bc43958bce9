"""Convolution and transposed convolution of one to three dimensions, by constant weights or by computed ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.steps import Steps

from . import numbers, padded, pads_of
from .computed_weights import by_columns, spread_columns


def conv(node: OnnxNode, to: Context) -> None:
    """Convolve in one or three dimensions: rows of an image, and images whose channels are those of all depths of a
    window. With computed weights, in one to three dimensions."""
    s = Steps(node, to)
    x, shape = s.operand(0), s.shape(s.operand(1))
    if len(shape) != len(s.shape(x)) or len(shape) not in (3, 4, 5):
        node.reject(f"a weight of shape {shape} for an input of shape {s.shape(x)}; supported: 1 to 3 dimensions")
    count = len(shape) - 2
    kernel, extents = shape[2:], s.shape(x)[2:]
    strides, dilations = numbers(s, "strides", count, 1), numbers(s, "dilations", count, 1)
    pads = pads_of(s, extents, kernel, strides, dilations)
    if min(min(pad) for pad in pads) < 0 or tuple(s.attribute("kernel_shape", kernel)) != kernel:
        node.reject(f"pads {pads} or kernel_shape of a weight of shape {shape}")
    groups = int(s.attribute("group", 1))
    if s.value(node.input(1)) is None:
        found = by_columns(s, padded(s, x, pads, 0.0), s.operand(1), strides, dilations, groups)
    else:
        found = _convolved(s, x, to.finite(node, 1), _constant_bias(s), strides, dilations, pads, groups)
    s.end(_with_computed_bias(s, found))


def _constant_bias(s: Steps) -> AnyArray | None:
    return s.to.finite(s.node, 2) if s.has(2) and s.value(s.node.input(2)) is not None else None


def _with_computed_bias(s: Steps, found: str) -> str:
    """The result with what was not added yet: a bias that is computed, or that of computed weights."""
    if not s.has(2) or (_constant_bias(s) is not None and s.value(s.node.input(1)) is not None):
        return found
    _, m, *counts = s.shape(found)
    return s.map(("add", "a", "b"), found, s.reshape(s.operand(2), (m, *(1 for _ in counts))))


def _convolved(
    s: Steps, x: str, weight: AnyArray, bias: AnyArray | None, strides: Sequence[int], dilations: Sequence[int],
    pads: Sequence[tuple[int, int]], groups: int,
) -> str:  # fmt: skip
    n, c, *extents = s.shape(x)
    count = len(extents)
    if count == 1:
        x, weight = s.reshape(x, (n, c, 1, extents[0])), weight[:, :, None]
        strides, dilations, pads = (1, *strides), (1, *dilations), ((0, 0), *pads)
    depth = 0
    if count == 3:
        x, depth = _depths(s, padded(s, x, [pads[0], (0, 0), (0, 0)], 0.0), weight, strides[0], dilations[0])
        weight = weight.reshape(weight.shape[0], -1, *weight.shape[3:])
        strides, dilations, pads = strides[1:], dilations[1:], pads[1:]
    inputs = [s.tensor(x), s.constant(weight, f"{s.node.input(1)}.window")]
    if bias is not None:
        inputs.append(s.constant(bias, s.node.input(2)))
    attributes = {
        "strides": tuple(strides), "dilations": tuple(dilations), "groups": groups,
        "pads": tuple(pads[axis][end] for end in (0, 1) for axis in (0, 1)),
    }  # fmt: skip
    found = s.emit("conv", inputs, attributes)
    _, k, oh, ow = s.shape(found)
    if count == 1:
        return s.reshape(found, (n, k, ow))
    if count == 2:
        return found
    turned = s.transpose(s.reshape(found, (n, depth, k, oh * ow)), (0, 2, 1, 3))
    return s.reshape(turned, (n, k, depth, oh, ow))


def _depths(s: Steps, x: str, weight: AnyArray, stride: int, dilation: int) -> tuple[str, int]:
    """(n * results along the depth, c * depths of a window, h, w), and how many results."""
    n, c, d, h, w = s.shape(x)
    size = weight.shape[2]
    count = (d - dilation * (size - 1) - 1) // stride + 1
    if count < 1:
        s.node.damaged(f"a window of {size} does not fit into a depth of {d}")
    shape = (n, count, c, size, h * w)
    strides = (c * d * h * w, stride * h * w, d * h * w, dilation * h * w, 1)
    return s.reshape(s.take(x, shape, [np.arange(k) for k in shape], strides), (n * count, c * size, h, w)), count


def conv_transpose(node: OnnxNode, to: Context) -> None:
    """A convolution of the input whose channels are the phases of the result: the outputs between two inputs, which
    lie `stride` apart and each see every `stride`-th tap only (sub-pixel convolution, Shi et al. 2016)."""
    s = Steps(node, to)
    x, shape = s.operand(0), s.shape(s.operand(1))
    _, c, *extents = s.shape(x)
    count, groups = len(extents), int(s.attribute("group", 1))
    if len(shape) != count + 2 or shape[0] != c or c % groups or not 1 <= count <= 3:
        node.damaged(f"a weight of shape {shape} does not fit {s.shape(x)}")
    kernel, m = shape[2:], groups * shape[1]
    strides, dilations = numbers(s, "strides", count, 1), numbers(s, "dilations", count, 1)
    cuts = _transposed_cuts(s, extents, kernel, strides, dilations)
    s.check_size((s.shape(x)[0], m, *(size for _, size in cuts)))
    if s.value(node.input(1)) is None:
        s.end(_with_computed_bias(s, spread_columns(s, x, s.operand(1), strides, dilations, groups, cuts)))
        return
    weight = to.finite(node, 1)
    between = [stride if dilation > 1 else 1 for stride, dilation in zip(strides, dilations, strict=True)]
    x = padded(s, x, [(0, 0)] * count, 0.0, between)  # taps that are dilated see no phase alone
    phases = [stride // step for stride, step in zip(strides, between, strict=True)]
    to.reserve(node, 4 * m * (c // groups) * prod(-(-k // p) * p for k, p in zip(kernel, phases, strict=True)))
    grouped = np.swapaxes(weight.reshape(groups, c // groups, m // groups, *kernel), 1, 2)
    window = _by_phase(grouped.reshape(m, c // groups, *kernel), phases)
    sides = []
    for extent, taps, dilation, phase, (begin, size) in zip(
        s.shape(x)[2:], window.shape[2:], dilations, phases, cuts, strict=True
    ):
        first, end = begin // phase, -(-(begin + size) // phase)
        sides.append((dilation * (taps - 1) - first, end - extent))
    x = padded(s, x, [(min(0, before), min(0, after)) for before, after in sides], 0.0)
    bias = _constant_bias(s)
    bias = None if bias is None else np.repeat(bias, prod(phases))
    pads = [(max(0, before), max(0, after)) for before, after in sides]
    found = _convolved(s, x, window, bias, (1,) * count, dilations, pads, groups)
    s.end(_with_computed_bias(s, _joined(s, found, phases, cuts) if prod(phases) > 1 else found))


def _joined(s: Steps, x: str, phases: Sequence[int], cuts: Sequence[tuple[int, int]]) -> str:
    """(n, m, sizes...) of (n, m * phases, extents...): the phases lie between each other, and `cuts` of all is left."""
    n, channels, *extents = s.shape(x)
    m, pixels = channels // prod(phases), prod(extents)
    tables: list[AnyArray] = [np.arange(n * m)]
    for k, (phase, (begin, size)) in enumerate(zip(phases, cuts, strict=True)):
        place = begin % phase + np.arange(size)
        apart = prod(phases[k + 1 :]) * prod(extents[: k + 1])
        tables.append(place // phase + place % phase * apart)
        if tables[-1].max() >= 1 << 24:
            s.node.reject(f"{pixels} elements of a channel; a table of fp32 tells phases that are closer")
    strides = (prod(phases) * pixels, *(prod(extents[k + 1 :]) for k in range(len(extents))))
    sizes = [size for _, size in cuts]
    return s.reshape(s.take(x, (n * m, *sizes), tables, strides), (n, m, *sizes))


def _by_phase(weight: AnyArray, phases: Sequence[int]) -> AnyArray:
    """(m * phases, c, taps of a phase...), mirrored, of (m, c, taps...)."""
    m, c, *kernel = weight.shape
    taps = [-(-size // phase) for size, phase in zip(kernel, phases, strict=True)]
    more = [(0, k * phase - size) for k, phase, size in zip(taps, phases, kernel, strict=True)]
    split = np.pad(weight, [(0, 0), (0, 0), *more]).reshape(
        m, c, *(n for pair in zip(taps, phases, strict=True) for n in pair)
    )
    of_taps, of_phases = range(2, split.ndim, 2), range(3, split.ndim, 2)
    turned = np.flip(split, tuple(of_taps)).transpose(0, *of_phases, 1, *of_taps)
    return np.ascontiguousarray(turned).reshape(m * prod(phases), c, *taps)


def _transposed_cuts(
    s: Steps, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Return for each axis of all that the taps reach where the result begins, and its size. Raises ModelError for a
    size that no input gives."""
    count = len(extents)
    more = numbers(s, "output_padding", count, 0)
    pads = numbers(s, "pads", 2 * count, 0)
    mode, wanted = str(s.attribute("auto_pad", "NOTSET")), s.attribute("output_shape")
    found = []
    for axis in range(count):
        reach = dilations[axis] * (kernel[axis] - 1)
        whole = strides[axis] * (extents[axis] - 1) + more[axis] + reach + 1
        begin, end = pads[axis], pads[count + axis]
        size = int(wanted[-count:][axis]) if wanted is not None else extents[axis] * strides[axis]
        if more[axis] >= max(strides[axis], dilations[axis]) or size - whole >= strides[axis]:
            s.node.damaged(
                f"{extents[axis]} inputs along axis {axis + 2} do not give {size} "
                f"outputs: the taps reach {whole}, {more[axis]} of them by output_padding"
            )
        if wanted is not None or mode.startswith("SAME"):
            total = whole - size
            half = int(total / 2)
            begin = 0 if total < 0 else half if mode == "SAME_UPPER" else total - half
            end = total - begin
        elif mode == "VALID":
            begin = end = 0
        found.append((begin, whole - begin - end))
    return found
