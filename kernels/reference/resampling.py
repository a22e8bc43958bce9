"""Padding and resizing of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.resampling import Ratio, ratio

from .expressions import number_as

AnyArray = npt.NDArray[np.floating[Any]]


def pad(x: AnyArray, pads: Sequence[int], mode: str, value: float) -> AnyArray:
    """Surround the last two axes; pads are (t, l, b, r)."""
    top, left, bottom, right = pads
    widths = ((0, 0), (0, 0), (top, bottom), (left, right))
    if mode == "constant":
        return np.pad(x, widths, constant_values=number_as(value, x.dtype))
    return np.pad(x, widths, mode="reflect" if mode == "reflect" else "edge")


def resize(x: AnyArray, size: Sequence[int], mode: str, coordinates: str) -> AnyArray:
    """x (N,C,H,W) -> (N,C,*size): one axis after the other."""
    for axis, extent in ((2, size[0]), (3, size[1])):
        way = ratio(mode, coordinates, x.shape[axis], extent)
        x = _nearest(x, axis, extent, way) if mode == "nearest" else _linear(x, axis, extent, way)
    return x


def _places(source: int, size: int, way: Ratio) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Index of the element at or before each coordinate, and what remains, in parts of the divisor."""
    scaled = np.clip(np.arange(size) * way.step + way.start, 0, (source - 1) * way.divisor)
    return scaled // way.divisor, scaled % way.divisor


def _nearest(x: AnyArray, axis: int, size: int, way: Ratio) -> AnyArray:
    return np.take(x, _places(x.shape[axis], size, way)[0], axis)


def _linear(x: AnyArray, axis: int, size: int, way: Ratio) -> AnyArray:
    index, rest = _places(x.shape[axis], size, way)
    shape = [1] * x.ndim
    shape[axis] = size
    share = (rest / way.divisor).astype(x.dtype).reshape(shape)
    after = np.minimum(index + 1, x.shape[axis] - 1)
    out: AnyArray = np.take(x, index, axis) * (1 - share) + np.take(x, after, axis) * share
    return out
