"""Weights of 8 bits in the order in which kernels read them, behind the sums of each stack's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array
from kernels.lower.cpu.packing import whole_numbers


@dataclass(frozen=True)
class WholeWeights:
    """Weights of k output channels: a weight is its whole number times its channel's scale."""

    weight: npt.NDArray[np.int8]
    """(k, c, kh, kw)."""
    scale: Array
    """(k,)."""
    sums: npt.NDArray[np.int32]
    """(k,): what a value of 1 everywhere gives."""


def whole_weights(weight: Array, *, on_grid: bool) -> WholeWeights:
    """(k, c, kh, kw); the same numbers as on the CPU. `on_grid`: as in its `pack_int8`."""
    k = len(weight)
    whole, scale, sums = whole_numbers(weight, weight.shape[1], on_grid=on_grid)
    return WholeWeights(whole[:k], scale.reshape(-1)[:k], sums.reshape(-1)[:k])


def pack_products(whole: WholeWeights, groups: int, vectors: int) -> npt.NDArray[np.int32]:
    """Vectors (.., 4): sums [stack][4], then [group][tile][tap][in stack][vector][4 outputs], words of four inputs."""
    k, c, kh, kw = whole.weight.shape
    split = whole.weight.reshape(groups, k // groups, c, kh * kw)
    full = _filled(_filled(split, 1, 4 * vectors), 2, 4)
    tiles, stacks = full.shape[1] // (4 * vectors), full.shape[2] // 4
    parts = full.reshape(groups, tiles, vectors, 4, stacks, 4, kh * kw).transpose(0, 1, 6, 4, 2, 3, 5)
    return _behind_sums(whole.sums, np.ascontiguousarray(parts).view(np.int32).reshape(-1, 4))


def pack_depthwise(whole: WholeWeights) -> npt.NDArray[np.int32]:
    """Vectors (.., 4): sums [stack][4], then [stack][tap][4 channels], a number each."""
    full = _filled(whole.weight.reshape(len(whole.weight), -1), 0, 4).astype(np.int32)
    taps = full.reshape(-1, 4, full.shape[1]).transpose(0, 2, 1)
    return _behind_sums(whole.sums, taps.reshape(-1, 4))


def _behind_sums(sums: npt.NDArray[np.int32], vectors: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    return np.concatenate([_filled(sums, 0, 4).reshape(-1, 4), vectors])


def _filled(array: npt.NDArray[np.generic], axis: int, multiple: int) -> npt.NDArray[np.generic]:
    """Fill up with zeros to a multiple."""
    widths = [(0, -array.shape[axis] % multiple if i == axis else 0) for i in range(array.ndim)]
    return np.pad(array, widths)
