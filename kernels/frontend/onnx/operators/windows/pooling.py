"""Pooling of any dimensions and dilations, and of all that lies behind the channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.pooled import Maxima
from kernels.frontend.onnx.steps import Steps

from . import numbers, padded, pads_of, windows_of
from .maxima import places_of

_LOWEST = -3.4028234663852886e38


def pool(node: OnnxNode, to: Context) -> None:
    """MaxPool, AveragePool and LpPool of any dimensions and dilations."""
    s = Steps(node, to)
    x = s.operand(0)
    n, c, *extents = s.shape(x)
    count = len(extents)
    kernel = numbers(s, "kernel_shape", count, 1)
    strides, dilations = numbers(s, "strides", count, 1), numbers(s, "dilations", count, 1)
    pads = pads_of(s, extents, kernel, strides, dilations)
    ceiled = bool(s.attribute("ceil_mode", 0)) and str(s.attribute("auto_pad", "NOTSET")) == "NOTSET"
    counts = [_count(*each, ceiled) for each in zip(extents, kernel, strides, dilations, pads, strict=True)]
    if min(counts) < 1:
        node.damaged(f"a window of {kernel} does not fit into {extents}")
    whole = [
        (begin, max(end, (k - 1) * stride + dilation * (size - 1) + 1 - extent - begin))
        for (begin, end), k, stride, dilation, size, extent in zip(
            pads, counts, strides, dilations, kernel, extents, strict=True
        )
    ]
    include = bool(s.attribute("count_include_pad", 0))
    separable = node.op == "MaxPool" or (node.op == "AveragePool" and (not include or whole == pads))
    fits = all(max(pad) < size for pad, size in zip(whole, kernel, strict=True))
    if separable and fits and len(node.outputs) < 2 and set(dilations) == {1} and count in (1, 3):
        s.end(_pooled(s, x, list(zip(kernel, strides, whole, strict=True)), include))
        return
    p = float(s.attribute("p", 2))
    if node.op == "LpPool":
        x = s.map(("abs", "a") if p == 1 else ("mul", "a", "a") if p == 2 else ("pow", ("abs", "a"), p), x)
    x = padded(s, x, whole, _LOWEST if node.op == "MaxPool" else 0.0)
    windows = windows_of(s, s.reshape(x, (n * c, *s.shape(x)[2:])), counts, kernel, strides, dilations)
    axes = range(1 + count, 1 + 2 * count)
    found = s.reshape(
        s.reduce(windows, list(axes), "max" if node.op == "MaxPool" else "sum", keep=False), (n, c, *counts)
    )
    if node.op == "LpPool":
        found = found if p == 1 else s.map(("sqrt", "a") if p == 2 else ("pow", "a", 1 / p), found)
    if node.op == "AveragePool":
        sizes = _sizes(extents, counts, kernel, strides, dilations, pads, include=include)
        found = s.map(("div", "a", "b"), found, sizes)
    s.end(found)
    if len(node.outputs) > 1:
        of = Maxima(
            n * c, tuple(extents), tuple(counts), tuple(kernel), tuple(strides), tuple(dilations),
            tuple(begin for begin, _ in whole), by_column=bool(s.attribute("storage_order", 0)),
        )  # fmt: skip
        _tell_places(s, windows, of, (n, c, *counts))


def _tell_places(s: Steps, windows: str, of: Maxima, shape: tuple[int, ...]) -> None:
    """The node's second output."""
    places = places_of(s, windows, of)
    if isinstance(places, str):
        s.end(s.reshape(places, shape), 1)
        if not of.by_column:  # whoever puts elements back counts by rows
            s.to.pooled[s.node.outputs[1]] = of
    else:
        s.to.constants[s.node.outputs[1]] = places.reshape(shape).astype(np.int64)


Along = tuple[int, int, tuple[int, int]]
"""A window along an axis: its size, its stride, the pads before and after."""


def _pooled(s: Steps, x: str, window: Sequence[Along], include: bool) -> str:
    """Pooling of rows; of images and then along their depth, since a maximum is the same by parts, and so is a mean
    whose number of elements is a product of numbers along the axes."""
    n, c, *extents = s.shape(x)
    alone = (1, 1, (0, 0))
    if len(window) == 1:
        found = _flat_pool(s, s.reshape(x, (n, c, 1, *extents)), (alone, *window), include)
        return s.reshape(found, (n, c, s.shape(found)[3]))
    flat = _flat_pool(s, s.reshape(x, (n, c * extents[0], *extents[1:])), window[1:], include)
    oh, ow = s.shape(flat)[2:]
    found = _flat_pool(s, s.reshape(flat, (n, c, extents[0], oh * ow)), (window[0], alone), include)
    return s.reshape(found, (n, c, s.shape(found)[2], oh, ow))


def _flat_pool(s: Steps, x: str, window: Sequence[Along], include: bool) -> str:
    kernel, strides, pads = zip(*window, strict=True)
    attributes = {"kernel": kernel, "strides": strides, "pads": tuple(pad[end] for end in (0, 1) for pad in pads)}
    if s.node.op == "MaxPool":
        return s.emit("max_pool", (s.tensor(x),), attributes)
    return s.emit("average_pool", (s.tensor(x),), {**attributes, "count_include_pad": int(include)})


def _count(extent: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], ceiled: bool) -> int:
    room = extent + sum(pads) - dilation * (kernel - 1) - 1
    if not ceiled or room < 0:
        return room // stride + 1
    count = ceil(room / stride) + 1
    return count - 1 if (count - 1) * stride >= extent + pads[0] else count


def _sizes(
    extents: Sequence[int], counts: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int], pads: Sequence[tuple[int, int]], *, include: bool,
) -> AnyArray:  # fmt: skip
    """Elements of each window that count: those of the input, or those of the pads as well."""
    total = np.ones(())
    for extent, count, size, stride, dilation, (begin, end) in zip(
        extents, counts, kernel, strides, dilations, pads, strict=True
    ):
        places = np.arange(count)[:, None] * stride - begin + np.arange(size) * dilation
        low, high = (-begin, extent + end) if include else (0, extent)
        total = total[..., None] * np.count_nonzero((places >= low) & (places < high), axis=1)
    return np.maximum(total, 1)


def global_pool(node: OnnxNode, to: Context) -> None:
    """Pool over all axes behind the channels."""
    s = Steps(node, to)
    x = s.operand(0)
    axes = list(range(2, len(s.shape(x))))
    if node.op == "GlobalLpPool":
        p = float(s.attribute("p", 2))
        total = s.reduce(s.map(("pow", ("abs", "a"), p), x), axes, "sum")
        s.end(s.map(("pow", "a", 1 / p), total))
    else:
        s.end(s.reduce(x, axes, "max" if node.op == "GlobalMaxPool" else "mean"))
