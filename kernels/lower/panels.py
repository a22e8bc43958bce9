"""Packed matrices in the order in which kernels read them: sixteen outputs side by side, block after block.

A panel has the packed rows of sixteen outputs, and of each block, for all sixteen: the scales, the offsets, the groups'
factors, the offsets' factors, the zeros, the codes; what a format lacks is left out. Codes of 8 bits are a byte each;
of 4 bits a byte has those of a column and of its neighbour in the upper half; of 6 bits four columns have two such
bytes for the lower four bits, then one with the upper two of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.packed import Fields, PackedFormat, PackedMatrix

LANES = 16
"""Outputs of a panel."""


def panel_count(matrix: PackedMatrix) -> int:
    """Return how many panels hold the packed rows."""
    return -(-len(matrix.data) // LANES)


def layout_of(packed: PackedFormat) -> dict[str, int]:
    """Return what a kernel is told of a format. `fields`: 1 scales in single, 2 factors, 4 offsets, 8 their factors,
    16 zeros of each group."""
    example = packed.fields_of(np.zeros(1, packed.stored))
    given = (example.factor, example.offset, example.offset_factor, example.zeros)
    fields = sum(2 << i for i, each in enumerate(given) if each is not None) + (example.scale.dtype.itemsize == 4)
    return {"bits": packed.bits, "block": packed.block, "group": packed.group, "zero": packed.zero, "fields": fields}


def in_panels(matrix: PackedMatrix) -> npt.NDArray[np.uint8]:
    """Return (panels, blocks of a row, bytes): a piece of the matrix is packed anew at a time."""
    pieces = [_panels(matrix.format, fields) for _, fields in matrix.pieces(LANES)]
    return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]


def _panels(packed: PackedFormat, fields: Fields) -> npt.NDArray[np.uint8]:
    codes = _lanes(fields.codes)
    if packed.bits != 8:
        low = codes & 15
        low = low[:, :, ::2] | (low[:, :, 1::2] << 4)
        codes = low if packed.bits == 4 else _with_upper(low, codes >> 4)
    parts = [fields.scale[..., None], fields.offset if fields.offset is None else fields.offset[..., None]]
    parts += [fields.factor, fields.offset_factor, fields.zeros]
    rows = [_lanes(part) for part in parts if part is not None]
    content = [np.ascontiguousarray(part).view(np.uint8).reshape(*part.shape[:2], -1) for part in (*rows, codes)]
    return np.concatenate(content, axis=-1)


def _with_upper(low: npt.NDArray[np.uint8], high: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return groups of four columns: two bytes of the lower bits, one of the upper ones."""
    upper = sum((high[:, :, i::4] << (2 * i) for i in range(1, 4)), start=high[:, :, ::4])
    return np.stack([low[:, :, ::2], low[:, :, 1::2], upper], axis=3).reshape(*low.shape[:2], -1, LANES)


def _lanes(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(rows, blocks, n) -> (panels, blocks, n, 16), zeros behind the last row."""
    missing = -len(rows) % LANES
    padded = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)]) if missing else rows
    return padded.reshape(-1, LANES, *rows.shape[1:]).transpose(0, 2, 3, 1)
