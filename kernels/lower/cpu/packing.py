"""Weights in the order in which the agent's `..._nc16` operations read them: sixteen output channels side by side.

Everything here happens once, when the plan is made. The depth of a product goes channel block by channel block, tap by
tap inside a block, channel by channel inside a tap, as the agent gathers the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernels.catalog.convolution.winograd.matrices import transform_filters
from kernels.ir.graph import Array

BLOCK = 16
"""Channels of a block."""
WINOGRAD_TILE = 4
"""Outputs of a tile in each direction."""
_INT8_MOST = 127
_OFF_GRID = 1e-4
"""The tolerance in steps; rounding weights, scale and a factor of a normalisation to fp32 makes half of it at most."""
_SAMPLE = 16
"""Weights of a channel that are tried first."""


def blocks(channels: int) -> int:
    """Blocks that hold so many channels."""
    return -(-channels // BLOCK)


def pack_bias(bias: Array) -> Array:
    """(k) -> (k blocks, 16), zeros beyond the last channel."""
    return _to_blocks(bias.reshape(-1, 1))[:, 0]


def pack_product(weight: Array, *, plain_source: bool) -> Array:
    """(k, c, kh, kw) -> (k blocks, depth, 16). A plain source is gathered channel by channel, tap by tap."""
    k, c = weight.shape[:2]
    if plain_source:
        return _to_blocks(weight.reshape(k, -1))
    parts = [weight[:, first : first + BLOCK] for first in range(0, c, BLOCK)]
    return _to_blocks(np.concatenate([part.transpose(0, 2, 3, 1).reshape(k, -1) for part in parts], axis=1))


def join_groups(weight: Array, groups: int, together: int) -> Array:
    """(k, c / groups, kh, kw) -> (k, c / groups * together, kh, kw): zeros for the inputs of a group's neighbours."""
    if together == 1:
        return weight
    k, c, kh, kw = weight.shape
    out = np.zeros((groups // together, together, k // groups, together, c, kh, kw), np.float32)
    apart = weight.reshape(groups // together, together, k // groups, c, kh, kw)
    for group in range(together):
        out[:, group, :, group] = apart[:, group]
    return out.reshape(k, together * c, kh, kw)


def pack_depthwise(weight: Array) -> Array:
    """(c, channels of a group, kh, kw) -> (c blocks, taps, channels of a group, 16)."""
    return _to_blocks(weight.transpose(0, 2, 3, 1).reshape(weight.shape[0], -1))


def pack_dense(weight: Array) -> Array:
    """(c, m) -> (m blocks, c, 16)."""
    return _to_blocks(weight.T)


def pack_winograd(weight: Array) -> Array:
    """(k, c, 3, 3) -> (36, k blocks, c, 16): transformed in double precision."""
    return np.stack([_to_blocks(matrix) for matrix in transform_filters(weight, WINOGRAD_TILE)])


@dataclass(frozen=True)
class Int8Weights:
    """Weights of a product in 8 bits: a weight is its whole number times its output channel's scale."""

    weight: npt.NDArray[np.int8]
    """(k blocks, depth / 4, 16, 4), or (k blocks, taps, 16) of a depthwise one."""
    scale: Array
    """(k blocks, 16)."""
    sums: npt.NDArray[np.int32]
    """(k blocks, 16): what a value of 1 everywhere gives."""


def pack_int8(weight: Array, *, plain_source: bool, on_grid: bool = False) -> Int8Weights:
    """(k, c, kh, kw): depth by blocks of channels, by taps, by channels; a plain source has one block.

    `on_grid`: the weights were whole numbers of 8 bits already, and become the same again.
    """
    c, kh, kw = weight.shape[1:]
    lanes = -(-c // 4) * 4 if plain_source else BLOCK
    whole, scale, sums = whole_numbers(weight, -(-c // lanes) * lanes, on_grid=on_grid)
    rows = whole.reshape(len(whole), -1, lanes, kh, kw).transpose(0, 1, 3, 4, 2).reshape(len(sums), BLOCK, -1, 4)
    return Int8Weights(np.ascontiguousarray(rows.transpose(0, 2, 1, 3)), scale, sums)


def pack_int8_depthwise(weight: Array, *, on_grid: bool = False) -> Int8Weights:
    """(k, 1, kh, kw) -> weight (k blocks, taps, 16)."""
    whole, scale, sums = whole_numbers(weight, 1, on_grid=on_grid)
    taps = whole.reshape(len(sums), BLOCK, -1).transpose(0, 2, 1)
    return Int8Weights(np.ascontiguousarray(taps), scale, sums)


def whole_numbers(
    weight: Array, depth: int, *, on_grid: bool
) -> tuple[npt.NDArray[np.int8], Array, npt.NDArray[np.int32]]:
    """Weights with zeros up to whole blocks and so many input channels; of each output its scale and its sum."""
    k, c, kh, kw = weight.shape
    padded = np.zeros((blocks(k) * BLOCK, depth, kh, kw))
    padded[:k, :c] = weight
    most = np.abs(padded).max(axis=(1, 2, 3))
    scale = (np.where(most > 0, most, 1.0) / _INT8_MOST).astype(np.float32)
    scale = np.where(scale > 0, scale, np.float32(1))
    if on_grid:
        scale = _grid_scales(padded.reshape(len(padded), -1), scale)
    whole = np.clip(np.rint(padded / scale[:, None, None, None]), -_INT8_MOST - 1, _INT8_MOST).astype(np.int8)
    sums = whole.sum(axis=(1, 2, 3), dtype=np.int32).reshape(-1, BLOCK)
    return whole, scale.reshape(-1, BLOCK), sums


def _grid_scales(rows: npt.NDArray[np.float64], scales: Array) -> Array:
    """Return for each row the number of which all weights are multiples by -128 to 127, or the given scale if there is
    none."""
    found, most = scales.copy(), np.abs(rows).max(axis=1)
    left = np.flatnonzero(most > 0)
    some = rows[:, :: max(1, rows.shape[1] // _SAMPLE)]
    for largest in range(_INT8_MOST + 1, 0, -1):
        step = (most / largest).astype(np.float32)
        near = left[_are_whole(some[left], step[left])]
        near = near[_are_whole(rows[near], step[near])]
        found[near] = step[near]
        left = np.setdiff1d(left, near, assume_unique=True)
    return found


def _are_whole(rows: npt.NDArray[np.float64], step: Array) -> npt.NDArray[np.bool_]:
    """Return whether the multiples in each row are whole numbers of 8 bits, but for their rounding to fp32."""
    multiples = rows / np.where(step > 0, step, np.float32(1))[:, None]
    whole = np.abs(multiples - np.rint(multiples)).max(axis=1) < _OFF_GRID
    return np.asarray(whole & (multiples.max(axis=1) < _INT8_MOST + 0.5) & (step > 0))


def pack_image(image: Array) -> Array:
    """(n, c, h, w) -> (n, c blocks, h * w, 16)."""
    return np.stack([_to_blocks(picture.reshape(picture.shape[0], -1)) for picture in image])


def _to_blocks(matrix: Array) -> Array:
    """(k, depth) -> (k blocks, depth, 16)."""
    k, depth = matrix.shape
    padded = np.zeros((blocks(k) * BLOCK, depth), np.float32)
    padded[:k] = matrix
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, depth).transpose(0, 2, 1))
