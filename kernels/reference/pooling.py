"""Pooling over windows that may hang over the end of the input (ceil_mode)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from .convolution import pad

AnyArray = npt.NDArray[np.floating[Any]]
Shape = tuple[int, ...]


def max_pool(x: AnyArray, out: Shape, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int]) -> AnyArray:
    """Largest valid element of each window: x (N,C,H,W) -> `out`; pads never win."""
    result: AnyArray = np.full(out, -np.inf, x.dtype)
    for tap in _taps(x, out, kernel, strides, pads, outside=-np.inf):
        np.maximum(result, tap, out=result)
    return result


def average_pool(
    x: AnyArray,
    out: Shape,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    *,
    count_include_pad: bool,
) -> AnyArray:
    """Mean of each window: x (N,C,H,W) -> `out`.

    The divisor counts the window's elements inside the input, or with `count_include_pad` those inside the padded
    input; what hangs over the padded input (ceil_mode) never counts.
    """
    total: AnyArray = np.zeros(out, x.dtype)
    for tap in _taps(x, out, kernel, strides, pads, outside=0.0):
        total += tap
    rows, columns = (
        _window_sizes(x.shape[2 + i], out[2 + i], kernel[i], strides[i], pads[i], pads[i + 2], count_include_pad)
        for i in range(2)
    )
    return total / (rows[:, None] * columns[None, :]).astype(x.dtype)


def _taps(
    x: AnyArray, out: Shape, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], *, outside: float
) -> Iterator[AnyArray]:
    """Yield for each position in the window the (N,C,OH,OW) elements that all windows see there."""
    (oh, ow), (sh, sw) = out[2:], strides
    reach_h, reach_w = (oh - 1) * sh + kernel[0], (ow - 1) * sw + kernel[1]
    bottom, right = max(0, reach_h - x.shape[2] - pads[0]), max(0, reach_w - x.shape[3] - pads[1])
    padded = pad(x, (pads[0], pads[1], bottom, right), outside)
    for i, j in product(range(kernel[0]), range(kernel[1])):
        yield padded[:, :, i : i + (oh - 1) * sh + 1 : sh, j : j + (ow - 1) * sw + 1 : sw]


def _window_sizes(
    extent: int, count: int, kernel: int, stride: int, pad_begin: int, pad_end: int, include_pad: bool
) -> npt.NDArray[np.int64]:
    """Elements of each window along one axis that count for the mean."""
    first = np.arange(count) * stride - pad_begin
    low, high = (-pad_begin, extent + pad_end) if include_pad else (0, extent)
    return np.minimum(first + kernel, high) - np.maximum(first, low)
