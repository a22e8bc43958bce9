"""Packed matrices in the order in which kernels read them: sixteen outputs side by side, block after block.

A panel has the packed rows of sixteen outputs, and of each block, for all sixteen: the scales, the offsets, the groups'
factors, the offsets' factors, the zeros, the codes; what a format lacks is left out. An output's codes lie in words of
32 bits, the first column in the lowest bits: four columns of 8 bits or eight of 4. Of 5 or 6 bits the words with the
lower four come before one with the upper bits, of as many columns as it has room for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import checkpoint
from kernels.ir.packed import Fields, PackedFormat, PackedMatrix

LANES = 16
"""Outputs of a panel."""


def layout_of(packed: PackedFormat) -> dict[str, int]:
    """Return what a kernel is told of a format. `fields`: 1 scales in single, 2 factors, 4 offsets, 8 their factors,
    16 zeros of each group."""
    example = packed.fields_of(np.zeros(1, packed.stored))
    given = (example.factor, example.offset, example.offset_factor, example.zeros)
    fields = sum(2 << i for i, each in enumerate(given) if each is not None) + (example.scale.dtype.itemsize == 4)
    return {"bits": packed.bits, "block": packed.block, "group": packed.group, "zero": packed.zero, "fields": fields}


def panel_shape(matrix: PackedMatrix) -> tuple[int, int, int]:
    """Return (panels, blocks of a row, bytes)."""
    empty = matrix.format.fields_of(np.zeros((1, 1), matrix.format.stored))
    return -(-matrix.row_count // LANES), -(-matrix.columns // matrix.format.block), _panels(matrix.format, empty).size


def in_panels(matrix: PackedMatrix) -> Iterator[npt.NDArray[Any]]:
    """Yield the panels (see `panel_shape`): some of them after the other, each when it is asked for."""
    for _, fields in matrix.pieces(LANES):
        checkpoint()
        yield _panels(matrix.format, fields)


def _panels(packed: PackedFormat, fields: Fields) -> npt.NDArray[Any]:
    codes = _lanes(fields.codes)
    words = _words(codes & 15, 4) if packed.bits < 8 else _words(codes, 8)
    if 4 < packed.bits < 8:
        upper = _words(codes >> 4, packed.bits - 4)[..., None, :]
        words = np.concatenate([words.reshape(*upper.shape[:3], -1, LANES), upper], axis=3)
    parts = [fields.scale[..., None], fields.offset if fields.offset is None else fields.offset[..., None]]
    parts += [fields.factor, fields.offset_factor, fields.zeros]
    rows = [_lanes(part) for part in parts if part is not None]
    content = [np.ascontiguousarray(part).view(np.uint8).reshape(*part.shape[:2], -1) for part in (*rows, words)]
    return np.concatenate(content, axis=-1)


def _words(codes: npt.NDArray[Any], bits: int) -> npt.NDArray[np.uint32]:
    """(panels, blocks, columns, 16) -> (panels, blocks, words, 16)."""
    each = 32 // bits
    found = codes[:, :, ::each].astype("<u4")
    for i in range(1, each):
        found |= codes[:, :, i::each].astype("<u4") << (i * bits)
    return found


def _lanes(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(rows, blocks, n) -> (panels, blocks, n, 16), zeros behind the last row."""
    missing = -len(rows) % LANES
    padded = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)]) if missing else rows
    return padded.reshape(-1, LANES, *rows.shape[1:]).transpose(0, 2, 3, 1)
