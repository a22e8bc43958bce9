"""Windows that slide over the axes behind the channels: their attributes, the pads around them, their elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray
from kernels.frontend.onnx.steps import Steps


def numbers(s: Steps, name: str, count: int, usual: int) -> list[int]:
    values = [int(value) for value in s.attribute(name, [usual] * count)]
    if len(values) != count:
        s.node.damaged(f"{name} {values} has not {count} numbers")
    if min(values, default=1) < 1 and name in ("strides", "dilations", "kernel_shape"):
        s.node.damaged(f"{name} {values}; expected positive numbers")
    return values


def pads_of(
    s: Steps, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the padding before and after each axis."""
    mode, count = str(s.attribute("auto_pad", "NOTSET")), len(extents)
    if mode == "VALID":
        return [(0, 0)] * count
    if mode == "NOTSET":
        pads = numbers(s, "pads", 2 * count, 0)
        return [(pads[axis], pads[count + axis]) for axis in range(count)]
    found = []
    for extent, k, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        total = max(0, (-(-extent // stride) - 1) * stride + dilation * (k - 1) + 1 - extent)
        found.append((total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2))
    return found


def padded(s: Steps, x: str, pads: Sequence[tuple[int, int]], value: float, spread: Sequence[int] = ()) -> str:
    """x with its last axes padded, or cropped where a pad is negative, and spread with zeros between elements."""
    shape = s.shape(x)
    tables: list[AnyArray] = [np.arange(extent) for extent in shape]
    steps = spread or [1] * len(pads)
    ends = zip(shape[-len(pads) :], steps, pads, strict=True)
    s.check_size((*shape[: -len(pads)], *((extent - 1) * step + 1 + sum(pad) for extent, step, pad in ends)))
    for k, ((begin, end), step) in enumerate(zip(pads, steps, strict=True)):
        axis = len(shape) - len(pads) + k
        places = np.arange(-begin, (shape[axis] - 1) * step + 1 + end)
        inside = (places >= 0) & (places <= (shape[axis] - 1) * step) & (places % step == 0)
        tables[axis] = np.where(inside, places // step, -1)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if all(len(t) == extent and (t == np.arange(extent)).all() for t, extent in zip(tables, shape, strict=True)):
        return s.tensor(x)
    return s.take(x, [len(table) for table in tables], tables, strides, value)


def windows_of(
    s: Steps, x: str, counts: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> str:
    """(rows, places of the window..., elements of the window...)"""
    rows, *extents = s.shape(x)
    steps = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
    shape = (rows, *counts, *kernel)
    lengths = [
        prod(extents),
        *(step * stride for step, stride in zip(steps, strides, strict=True)),
        *(step * dilation for step, dilation in zip(steps, dilations, strict=True)),
    ]
    return s.take(x, shape, [np.arange(k) for k in shape], lengths)
