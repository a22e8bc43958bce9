"""Weights in the order in which the agent's `..._nc16` operations read them: sixteen output channels side by side.

Everything here happens once, when the plan is made. The depth of a product goes channel block by channel block, tap by
tap inside a block, channel by channel inside a tap, as the agent gathers the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernels.catalog.convolution.winograd.matrices import transform_filters
from kernels.ir.graph import Array, Graph, Node

BLOCK = 16
"""Channels of a block."""
WINOGRAD_TILE = 4
"""Outputs of a tile in each direction."""
_INT8_MOST = 127
MOST_WITH_OFFSETS = 32768
"""Products of an output whose weights have an offset."""
_LEVELS = 255
"""Steps between the least and the largest number of 8 bits."""
_OFF_GRID = 1e-4
"""The tolerance in steps; rounding weights, scale and a factor of a normalisation to fp32 makes half of it at most."""
_SAMPLE = 4
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
    """(k blocks, 16): what a value of 1 everywhere gives; of weights with offsets, these behind them."""


def pack_int8(weight: Array, *, plain_source: bool, on_grid: bool = False, offsets: bool = False) -> Int8Weights:
    """(k, c, kh, kw): depth by blocks of channels, by taps, by channels; a plain source has one block.

    `on_grid`: the weights were whole numbers of 8 bits already, and become the same again, or with `offsets` become
    such numbers and one that is added to all of an output.
    """
    c, kh, kw = weight.shape[1:]
    lanes = -(-c // 4) * 4 if plain_source else BLOCK
    whole, scale, sums = whole_numbers(weight, -(-c // lanes) * lanes, on_grid=on_grid, offsets=offsets)
    rows = whole.reshape(len(whole), -1, lanes, kh, kw).transpose(0, 1, 3, 4, 2).reshape(len(scale), BLOCK, -1, 4)
    return Int8Weights(np.ascontiguousarray(rows.transpose(0, 2, 1, 3)), scale, sums)


def pack_int8_depthwise(weight: Array, *, on_grid: bool = False, offsets: bool = False) -> Int8Weights:
    """(k, 1, kh, kw) -> weight (k blocks, taps, 16)."""
    whole, scale, sums = whole_numbers(weight, 1, on_grid=on_grid, offsets=offsets)
    taps = whole.reshape(len(scale), BLOCK, -1).transpose(0, 2, 1)
    return Int8Weights(np.ascontiguousarray(taps), scale, sums)


def whole_numbers(
    weight: Array, depth: int, *, on_grid: bool, offsets: bool = False
) -> tuple[npt.NDArray[np.int8], Array, npt.NDArray[np.int32]]:
    """Weights with zeros up to whole blocks and so many input channels; of each output its scale and its sum."""
    k, c, kh, kw = weight.shape
    scales, offset = np.ones(blocks(k) * BLOCK, np.float32), np.zeros((blocks(k) * BLOCK, 1, 1, 1))
    most = np.abs(weight).reshape(k, -1).max(axis=1)
    scales[:k] = (np.where(most > 0, most, 1.0) / _INT8_MOST).astype(np.float32)
    scales = np.where(scales > 0, scales, np.float32(1))
    if on_grid:
        grid = grids(weight.reshape(k, -1), offsets=offsets)
        scales[:k] = np.where(grid.found, grid.scales, scales[:k])
        offset[:k, 0, 0, 0] = grid.offsets
    padded = np.zeros((len(scales), depth, kh, kw))
    padded[:k, :c] = np.rint(weight / scales[:k, None, None, None].astype(np.float64)) - offset[:k]
    whole = np.clip(padded, -_INT8_MOST - 1, _INT8_MOST).astype(np.int8)
    sums = whole.sum(axis=(1, 2, 3), dtype=np.int32).reshape(-1, BLOCK)
    if offset[:k].any():
        sums = np.stack([sums, offset.astype(np.int32).reshape(-1, BLOCK)])
    return whole, scales.reshape(-1, BLOCK), sums


@dataclass(frozen=True)
class Grids:
    """Rows of weights as multiples of a number each, by whole numbers of 8 bits plus an offset, where they are such."""

    scales: Array
    offsets: npt.NDArray[np.int32]
    found: npt.NDArray[np.bool_]


def grids(rows: Array, *, offsets: bool = False) -> Grids:
    """Return the grid of each row; without `offsets` multiples are from -128 to 127, with these any that lie within
    255."""
    rows = np.ascontiguousarray(rows)
    ends = rows.min(axis=1, initial=0), rows.max(axis=1, initial=0)
    most = np.maximum(-ends[0], ends[1]).astype(np.float64)
    found = Grids(np.ones(len(rows), np.float32), np.zeros(len(rows), np.int32), most == 0)
    some = rows[:, :: max(1, rows.shape[1] // _SAMPLE)]
    for largest in [*range(_INT8_MOST + 1, 0, -1), *(range(_INT8_MOST + 2, _LEVELS + 1) if offsets else ())]:
        left = np.flatnonzero(~found.found)
        if not left.size:
            break
        step = (most / largest).astype(np.float32)
        near = left[_are_whole(some[left], step[left], offsets=offsets)]
        near = near[_are_whole(rows[near], step[near], offsets=offsets)] if near.size else near
        found.scales[near], found.found[near] = step[near], True
    low, high = (np.rint(end / found.scales.astype(np.float64)) for end in ends)
    found.offsets[:] = np.where(found.found & ((low < -_INT8_MOST - 1) | (high > _INT8_MOST)), low + _INT8_MOST + 1, 0)
    return found


def has_grid(graph: Graph, node: Node) -> bool:
    """Return whether the weights of a layer become whole numbers of 8 bits, and none of them another number."""
    weight = graph.constants[node.inputs[1]]
    rows = weight.T if node.op == "dense" else weight.reshape(len(weight), -1)
    return bool(grids(rows, offsets=rows.shape[1] <= MOST_WITH_OFFSETS).found.all())


def _are_whole(rows: Array, step: Array, *, offsets: bool) -> npt.NDArray[np.bool_]:
    """Return whether the multiples in each row are whole numbers of 8 bits, but for their rounding to fp32."""
    multiples = rows / np.where(step > 0, step, np.float32(1)).astype(np.float64)[:, None]
    whole = np.abs(multiples - np.rint(multiples)).max(axis=1, initial=0) < _OFF_GRID
    low, high = multiples.min(axis=1, initial=0), multiples.max(axis=1, initial=0)
    fits = (high - low < _LEVELS + 0.5) if offsets else (high < _INT8_MOST + 0.5) & (low > -_INT8_MOST - 1.5)
    return np.asarray(whole & fits & (step > 0))


def pack_image(image: Array) -> Array:
    """(n, c, h, w) -> (n, c blocks, h * w, 16)."""
    return np.stack([_to_blocks(picture.reshape(picture.shape[0], -1)) for picture in image])


def _to_blocks(matrix: Array) -> Array:
    """(k, depth) -> (k blocks, depth, 16)."""
    k, depth = matrix.shape
    padded = np.zeros((blocks(k) * BLOCK, depth), np.float32)
    padded[:k] = matrix
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, depth).transpose(0, 2, 1))
