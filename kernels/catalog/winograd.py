"""Winograd's minimal filtering: fewer multiplications for 3x3 and 5x5 windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from kernels.graph import Array
from kernels.options import Limits, Options
from kernels.source.winograd import transform_filters

from .convolution import Call, Convolution
from .group_tile import choose_group_tile
from .implicit_gemm import product
from .packing import padded

WINDOWS = (3, 5)
_SINGLE = {3: 4, 5: 2}
_HALF = {3: 2, 5: 2}
"""Larger tiles lose too many bits in half storage."""


class Winograd:
    """Input and filters transformed, one matrix product a position of the tile, the sums transformed back (study M).

    The workspace is kept below the device's largest buffer by rows of tiles (study M's method P): each band of rows is
    one round of the three dispatches.
    """

    def __init__(self, name: str, detail: str, tiles: Mapping[int, int]) -> None:
        """`tiles`: window -> outputs of a tile in each direction; empty: by precision."""
        self.name, self.tiles = name, tiles
        self.summary = f"minimal filtering, {detail}; windows 3x3 or 5x5, stride and dilation 1, one group"

    def misfit(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        window = conv.kernel[0]
        if conv.kernel != (window, window) or window not in (self.tiles or _SINGLE):
            return f"its window is {conv.kernel[0]}x{conv.kernel[1]}"
        if conv.strides != (1, 1) or conv.dilations != (1, 1):
            return "it has a stride or dilation"
        return f"it has {conv.groups} groups" if conv.groups != 1 else None

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits
    ) -> tuple[Call, ...]:
        """The dispatches for one convolution; weight (K, C, r, r), bias (K). Raises OptionError."""
        window = conv.kernel[0]
        tile = (self.tiles or (_HALF if options.precision == "fp16" else _SINGLE))[window]
        filters = transform_filters(weight, tile).astype(np.float32)
        return tuple(self._bands(conv, filters, bias, tile, options, limits))

    def _bands(
        self, conv: Convolution, filters: Array, bias: Array, tile: int, options: Options, limits: Limits
    ) -> Iterator[Call]:
        columns, rows = -(-conv.ow // tile), -(-conv.oh // tile)
        band = band_rows(conv, tile, limits.max_buffer_bytes, 2 if options.precision == "fp16" else 4)
        for row0 in range(0, rows, band):
            yield from self._round(conv, filters, bias, tile, limits, columns, min(band, rows - row0), row0, band)

    def _round(
        self, conv: Convolution, filters: Array, bias: Array, tile: int, limits: Limits, columns: int, rows: int,
        row0: int, band: int,
    ) -> tuple[Call, ...]:  # fmt: skip
        size, tiles = tile + conv.kernel[0] - 1, columns * rows * conv.n
        most = columns * band * conv.n
        grid = {"tiles_x": columns, "tiles_y": rows, "tile_row0": row0, "pictures": conv.n}
        tunables = {"TILE": tile, "ALPHA": size}
        items = 4 * columns * rows
        group_tile = choose_group_tile(limits, pixels=tiles, stacks=conv.out_stacks, matrices=size * size)
        multiply = product(
            group_tile, filters, None, pixels=tiles, in_stacks=conv.in_stacks, out_stacks=conv.out_stacks,
            batch=size * size,
        )  # fmt: skip
        views = {
            "src_stacks": conv.in_stacks, "src_stack0": 0, "dst_stacks": conv.out_stacks, "dst_stack0": 0,
            "residual_stacks": 0, "residual_stack0": 0,
        }  # fmt: skip
        return (
            Call(
                kernel="winograd_input", tunables=tunables,
                ints={"in_stacks": conv.in_stacks, "h": conv.h, "w": conv.w, "pad_t": conv.pads[0],
                      "pad_l": conv.pads[1], **grid},
                work_items=(items, conv.in_stacks, conv.n), writes="transformed",
                scratch_elements=size * size * conv.in_stacks * most * 4, is_last=False,
            ),
            replace(
                multiply, reads="transformed", writes="products", is_last=False, ints={**multiply.ints, **views},
                scratch_elements=size * size * conv.out_stacks * most * 4,
            ),
            Call(
                kernel="winograd_output", tunables=tunables, bias=padded(bias, 0, 4),
                ints={"out_stacks": conv.out_stacks, "oh": conv.oh, "ow": conv.ow, **grid},
                work_items=(items, conv.out_stacks, conv.n), reads="products",
            ),
        )  # fmt: skip


def band_rows(conv: Convolution, tile: int, largest: int, item_bytes: int) -> int:
    """Rows of tiles whose transformed values fit into one buffer of `largest` bytes (0: any size); at least one."""
    rows = -(-conv.oh // tile)
    if not largest:
        return rows
    size = tile + conv.kernel[0] - 1
    stacks = max(conv.in_stacks, conv.out_stacks)
    row_bytes = size * size * stacks * -(-conv.ow // tile) * conv.n * 4 * item_bytes
    return max(1, min(rows, largest // row_bytes))
