"""Fourier transforms, as products with a matrix of waves."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.steps import Steps


def dft(node: OnnxNode, to: Context) -> None:
    """Transform along one axis; the last one holds real and imaginary parts, or real ones alone."""
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    given = s.whole_numbers(2) if node.opset >= 20 else [int(s.attribute("axis", 1))]
    axis = node.axis((given or [-2])[0], len(shape))
    if axis == len(shape) - 1 or shape[-1] not in (1, 2):
        node.damaged(f"axis {axis} of {shape}; the last one, of 1 or 2, is no signal")
    inverse, half = bool(s.attribute("inverse", 0)), bool(s.attribute("onesided", 0))
    lengths = s.whole_numbers(1) or [2 * (shape[axis] - 1) if inverse and half else shape[axis]]
    if lengths[0] < 1:
        node.damaged(f"{lengths[0]} values are no signal")
    rest = [other for other in range(len(shape) - 1) if other != axis]
    order = [*rest, axis, len(shape) - 1]
    turned = s.transpose(x, order)
    rows = min(shape[axis], lengths[0] // 2 + 1 if inverse and half else lengths[0])
    turned = s.slice(turned, len(rest), 0, rows)
    found = _transformed(s, turned, rows, lengths[0], inverse=inverse, half=half)
    s.end(s.transpose(found, [order.index(place) for place in range(len(shape))]))


def stft(node: OnnxNode, to: Context) -> None:
    """Transform frames, each by a constant window."""
    s = Steps(node, to)
    signal, steps = s.operand(0), s.whole_numbers(1) or [0]
    batch, length, parts = (*s.shape(signal), 1)[:3]
    window = to.finite(node, 2) if s.has(2) else None
    size = (s.whole_numbers(3) or [length if window is None else window.size])[0]
    if steps[0] < 1 or not 1 <= size <= length or (window is not None and window.shape != (size,)):
        node.damaged(f"frames of {size} every {steps[0]} do not fit a signal of {length}")
    shape = (batch, (length - size) // steps[0] + 1, size * parts)
    frames = s.take(signal, shape, [np.arange(n) for n in shape], (length * parts, steps[0] * parts, 1))
    half = bool(s.attribute("onesided", 1))
    s.end(_transformed(s, s.reshape(frames, (*shape[:2], size, parts)), size, size, half=half, window=window))


def _transformed(
    s: Steps, x: str, rows: int, length: int, *, inverse: bool = False, half: bool = False,
    window: AnyArray | None = None,
) -> str:  # fmt: skip
    """(..., bins, parts) of (..., rows, parts); `half`: of the bins that a real signal has twice only the first."""
    *lead, _, parts = s.shape(x)
    if half and not inverse and parts == 2:
        s.node.damaged("onesided of a complex signal")
    bins = length // 2 + 1 if half and not inverse else length
    given, made = 2 if inverse and half else parts, 1 if inverse and half else 2
    if given != parts:
        s.node.damaged("the spectrum has no imaginary part")
    s.to.reserve(s.node, 4 * rows * parts * bins * made)
    waves = _waves(rows, bins, length, 1 if inverse else -1)[:, :parts, :, :made]
    if inverse and half:
        twice = [1 if 2 * row % length == 0 else 2 for row in range(rows)]
        waves = waves * np.reshape(twice, (rows, 1, 1, 1))
    if window is not None:
        waves = waves * window.reshape(rows, 1, 1, 1)
    flat = s.reshape(x, (prod(lead), rows * parts))
    product = s.matmul(flat, s.constant(waves.reshape(rows * parts, bins * made)))
    return s.reshape(product, (*lead, bins, made))


def _waves(rows: int, bins: int, length: int, sign: int) -> AnyArray:
    """Return the amount that a part of a value (row, part) adds to a part of a bin (bin, part)."""
    angles = 2 * np.pi / length * (np.outer(np.arange(rows), np.arange(bins)) % length)
    cosine, sine = np.cos(angles), sign * np.sin(angles)
    waves = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], 1)
    return waves / length if sign > 0 else waves


OPERATORS = (Operator("DFT", import_=dft), Operator("STFT", import_=stft))
