"""Stored right operands, read from memory as a subgroup's work-items have them.

They need no local memory, no barrier and no instruction that deals them out.
"""

from __future__ import annotations

import numpy as np

from kernels.catalog.desktop.units.tile import UnitTile
from kernels.catalog.packing import padded
from kernels.ir.graph import Array
from kernels.options import Backend


def fragments(weight: Array, tile: UnitTile, backend: Backend, *, paired: bool = False) -> Array:
    """(depth, columns) -> [columns / 16][steps, and one of zeros][32 work-items][8], zero-padded to whole stages.

    Work-item 4 i + j has of a matrix columns i and i + 8, and of each the rows 2 j, 2 j + 1, 2 j + 8 and 2 j + 9: what
    PTX says of `mma.m16n8k16`, twice. In Vulkan, with four and six sides, columns are in another order: of the sums a
    work-item has four that lie side by side. With six rows are, too, because of the left operand it has such four.
    `paired`: of two matrices of sums it has eight; columns are a multiple of 32.
    """
    full = padded(padded(weight, 1, 16), 0, tile.tile_depth)
    full = full if tile.straight or backend == "opencl" else _eights(full) if paired else _fours(full)
    full = _fours(full.T).T if tile.dealt else full
    full = np.concatenate([full, np.zeros((16, full.shape[1]), full.dtype)])
    steps, matrices = full.shape[0] // 16, full.shape[1] // 16
    places = full.reshape(steps, 2, 4, 2, matrices, 2, 8)  # step, half of it, j, pair, matrix, half of it, i
    return np.ascontiguousarray(places.transpose(4, 0, 6, 2, 5, 1, 3).reshape(matrices, steps, 32, 8))


def _fours(weight: Array) -> Array:
    """Permute columns for sums: of 16 columns work-item j of four has those at 2 j, 2 j + 1, 2 j + 8 and 2 j + 9, which
    are 4 j to 4 j + 3 of the weight's."""
    fours = weight.reshape(weight.shape[0], -1, 4, 2, 2)  # matrix, j, half of the matrix, pair
    return fours.transpose(0, 1, 3, 2, 4).reshape(weight.shape)


def _eights(weight: Array) -> Array:
    """Permute like `_fours`, of 32 columns: 8 j to 8 j + 3 in the first matrix, and the next four in the second."""
    eights = weight.reshape(weight.shape[0], -1, 4, 2, 4)  # pair of matrices, j, matrix
    return _fours(np.ascontiguousarray(eights.transpose(0, 1, 3, 2, 4)).reshape(weight.shape))


def straightened(weight: Array) -> Array:
    """(depth, columns) -> the same with rows in another order: of 32 a work-item 4 i + j has of the two matrices of
    `fragments` the rows 8 j to 8 j + 7, as it has of the left operand's."""
    rows = weight.reshape(-1, 4, 2, 2, 2, weight.shape[1])  # j, matrix, half of it, pair
    return rows.transpose(0, 2, 3, 1, 4, 5).reshape(weight.shape)
