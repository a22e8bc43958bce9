"""Winograd's minimal filtering: fewer multiplications for windows of 3x3 and more.

Larger windows are cut into parts, for which tiles stay large: a window of 9x9 is nine windows of 3x3 that look at the
input from other places, and whose results add up. So a part is one more set of input channels (`Winograd.lower`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from kernels.catalog.convolution.group_tile import (
    GroupTile,
    StackProduct,
    group_tile,
    group_tile_words,
)
from kernels.catalog.convolution.kernel_parts import BOUNDS, ENDING
from kernels.catalog.convolution.output_tile import OutputTile, choose_tile, parse_tile, tile_words
from kernels.catalog.convolution.pointwise import KERNEL as POINTWISE
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.convolution.stack_product import KERNEL as PRODUCT
from kernels.catalog.convolution.stack_product import stack_product, work_items
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import pack_filters, padded
from kernels.ir.graph import Array
from kernels.options import Limits, Options, Precision
from kernels.source.kernel import Buffer, Kernel, result, view
from kernels.source.tile import Tile, derived

from .matrices import expand, transform_filters
from .workspace import Division, Need, divide

_SINGLE = {3: 4, 5: 2}
_HALF = {3: 2, 5: 2}
"""Window -> outputs of a tile in each direction; larger ones lose too many bits in half storage."""
_PARTS = {7: 4, 9: 3}
"""Window -> window of its parts. For 8x8 inputs, products an output and values to transform were the fewest so."""
_LARGEST_IN_HALF: Mapping[Precision, int] = {"fp16": 6, "fp16_arithmetic": 4}
"""Inputs of a tile in each direction: with 8 the values grow by up to 5.25 squared and lose the last bits; with
products in half, 6 lose up to 1.2 %."""
_CACHED_BYTES = 8 << 20
"""Bytes of transformed values in one round on a CPU, so that the caches hold them."""


@dataclass(frozen=True)
class TransformTile(Tile):
    """Outputs and inputs of a tile in each direction; `wide` 1: a work-item transforms four channels."""

    tile: int
    alpha: int
    wide: int

    positions = derived(lambda tile: tile.alpha**2)
    half_positions = derived(lambda tile: tile.alpha * tile.tile)
    """Values of a tile of which one direction is transformed."""


_TILES = ("tiles_x", "tiles_y", "tile_row0", "pictures")


def _input_kernel(name: str, lanes: Literal[1, 4]) -> Kernel:
    return Kernel(
        name,
        Path(__file__).with_name("input.c"),
        (Buffer("src", lanes), result("dst", lanes)),
        (*view("src"), "first_stack", "in_stacks", "h", "w", "pad_t", "pad_l", *_TILES),
        tile=TransformTile,
        rewrite=expand,
    )


def _output_kernel(name: str, lanes: Literal[1, 4]) -> Kernel:
    return Kernel(
        name,
        Path(__file__).with_name("output.c"),
        (Buffer("src", lanes), Buffer("bias", lanes), Buffer("residual", lanes), result("dst", lanes)),
        (*view("dst"), *view("residual"), "out_stacks", "oh", "ow", *_TILES, *ENDING),
        BOUNDS,
        TransformTile,
        rewrite=expand,
    )


INPUT, INPUT_WIDE = _input_kernel("winograd_input", 1), _input_kernel("winograd_input_wide", 4)
OUTPUT, OUTPUT_WIDE = _output_kernel("winograd_output", 1), _output_kernel("winograd_output_wide", 4)


class Winograd:
    """Input and filters transformed, one matrix product a position of the tile, the sums transformed back (study M).

    The product goes through local memory; on a CPU behind a GPU interface through registers, and a work-item transforms
    four channels. The workspace is kept small by rows of tiles or by input channels (`workspace.py`): each part is one
    round of dispatches. By channels, a part's products are added to those of the parts before it.
    """

    def __init__(self, name: str, detail: str, sizes: Mapping[int, int]) -> None:
        """`sizes`: window -> outputs of a tile in each direction; empty: by precision."""
        self.name, self._sizes = name, sizes
        self.summary = f"minimal filtering, {detail}; square windows, stride and dilation 1, one group"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit, or would lose too many bits in a precision; None: it fits."""
        window = conv.kernel[0]
        if conv.kernel != (window, window) or window not in (self._sizes or _SINGLE):
            return f"its window is {conv.kernel[0]}x{conv.kernel[1]}"
        if conv.strides != (1, 1) or conv.dilations != (1, 1):
            return "it has a stride or dilation"
        if conv.groups != 1:
            return f"it has {conv.groups} groups"
        return self._why_inexact(window, options.precision)

    def _why_inexact(self, window: int, precision: Precision) -> str | None:
        inputs = (self._sizes or _HALF)[window] + _part_of(window) - 1
        most = _LARGEST_IN_HALF.get(precision, inputs)
        if inputs <= most:
            return None
        return f"its tiles of {inputs}x{inputs} inputs lose too many bits in {precision}, which bears {most}x{most}"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles of the matrix product worth trying, the default first."""
        grid = self._grid(conv, options, limits)
        if grid.wide:
            return tile_words(options, limits, width=grid.tiles(grid.part.rows), stacks=conv.out_stacks)
        return group_tile_words(options, limits.within(PRODUCT.name), grid.product)

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatches; constants: weight (K, C, r, r), bias (K). Raises OptionError."""
        grid = self._grid(conv, options, limits)
        filters = _filters(constants["weight"], grid)
        return tuple(_rounds(grid, filters, constants["bias"], options, limits, tile))

    def products(self, conv: Convolution, options: Options) -> int:
        """Multiplications for each pair of channels: as many as positions of all its tiles."""
        grid = self._grid(conv, options, Limits())
        return grid.positions * grid.copies * grid.tiles(grid.rows)

    def weight_bytes(self, conv: Convolution, options: Options) -> int:
        """Return the bytes of the transformed filters, a matrix a position."""
        grid = self._grid(conv, options, Limits())
        return grid.positions * grid.copies * 16 * conv.in_stacks * conv.out_stacks * (2 if options.half else 4)

    def _grid(self, conv: Convolution, options: Options, limits: Limits) -> _Grid:
        size = (self._sizes or (_HALF if options.half else _SINGLE))[conv.kernel[0]]
        whole = _Grid(conv, size, Division(-(-conv.oh // size), conv.in_stacks), wide=limits.cpu_device)
        stack_bytes = whole.positions * whole.columns * conv.n * 4 * (2 if options.half else 4)
        need = Need(conv.key, whole.rows, stack_bytes, conv.in_stacks, conv.out_stacks, whole.copies)
        cached = whole.wide and options.workspace_split == "rows"
        return replace(whole, part=divide(need, options, _cached(limits) if cached else limits))


def _cached(limits: Limits) -> Limits:
    """Limits under which the caches of a CPU hold a round."""
    return replace(limits, max_buffer_bytes=min(limits.max_buffer_bytes or _CACHED_BYTES, _CACHED_BYTES))


@dataclass(frozen=True)
class _Grid:
    """The tiles of one convolution."""

    conv: Convolution
    size: int
    """Outputs of a tile in each direction."""
    part: Division
    """The part that one round covers."""
    wide: bool = False
    """A work-item transforms four channels, not one."""

    @property
    def parts(self) -> int:
        """Parts of the window in each direction."""
        return -(-self.conv.kernel[0] // _part_of(self.conv.kernel[0]))

    @property
    def copies(self) -> int:
        """Times that each input channel is transformed: once for each part of the window."""
        return self.parts**2

    @property
    def alpha(self) -> int:
        """Inputs of a tile in each direction."""
        return self.size + _part_of(self.conv.kernel[0]) - 1

    @property
    def positions(self) -> int:
        return self.alpha**2

    @property
    def columns(self) -> int:
        return -(-self.conv.ow // self.size)

    @property
    def rows(self) -> int:
        return -(-self.conv.oh // self.size)

    @property
    def tile(self) -> TransformTile:
        """The tile of the transforms' kernels."""
        return TransformTile(self.size, self.alpha, int(self.wide))

    def transforms(self, rows: int) -> int:
        """Work-items that transform one stack of one picture."""
        return self.columns * rows * (1 if self.wide else 4)

    def tiles(self, rows: int) -> int:
        return self.columns * rows * self.conv.n

    @property
    def product(self) -> StackProduct:
        """The product of one round, a matrix a position."""
        depth = self.part.stacks * self.copies
        return StackProduct(self.tiles(self.part.rows), self.conv.out_stacks, depth, self.positions)

    def scratch(self, stacks: int) -> int:
        """Elements of a buffer for one round's transformed values."""
        return self.positions * stacks * self.tiles(self.part.rows) * 4


def _part_of(window: int) -> int:
    return _PARTS.get(window, window)


def _filters(weight: Array, grid: _Grid) -> Array:
    """(K, C, r, r) -> (positions, K, parts of the window, C)."""
    k, c, window, _ = weight.shape
    part = _part_of(window)
    whole = np.zeros((k, c, grid.parts * part, grid.parts * part), np.float32)
    whole[:, :, :window, :window] = weight
    cut = whole.reshape(k, c, grid.parts, part, grid.parts, part).transpose(0, 2, 4, 1, 3, 5)
    found = transform_filters(cut.reshape(k, -1, part, part), grid.size)
    return found.reshape(grid.positions, k, grid.copies, c)


def _rounds(grid: _Grid, filters: Array, bias: Array, options: Options, limits: Limits, words: str) -> Iterator[Call]:
    conv, part = grid.conv, grid.part
    tile = _tile(grid, options, limits, words)
    starts = range(0, conv.in_stacks, part.stacks)
    products = [_product(grid, filters[..., 4 * at : 4 * (at + part.stacks)], tile, adds=at > 0) for at in starts]
    for row0 in range(0, grid.rows, part.rows):
        rows = min(part.rows, grid.rows - row0)
        band = {"tiles_x": grid.columns, "tiles_y": rows, "tile_row0": row0, "pictures": conv.n}
        for stack0, call in zip(starts, products, strict=True):
            yield _input(grid, band, stack0, min(part.stacks, conv.in_stacks - stack0))
            yield _of_rows(grid, call, tile, rows)
        yield _output(grid, band, bias)


def _tile(grid: _Grid, options: Options, limits: Limits, words: str) -> OutputTile | GroupTile:
    if grid.wide:
        width, stacks = grid.tiles(grid.part.rows), grid.conv.out_stacks
        return parse_tile(words) if words else choose_tile(options, limits, width=width, stacks=stacks)
    return group_tile(words, options, limits.within(PRODUCT.name), grid.product)


def _of_rows(grid: _Grid, call: Call, tile: OutputTile | GroupTile, rows: int) -> Call:
    """A product for some rows of tiles."""
    pixels, stacks = grid.tiles(rows), grid.conv.out_stacks
    if isinstance(tile, OutputTile):
        items = (-(-pixels // tile.pixels), -(-stacks // tile.stacks), grid.positions)
        return replace(call, ints={**call.ints, "hw": pixels}, work_items=items)
    items = work_items(tile, pixels, stacks, grid.positions)
    return replace(call, ints={**call.ints, "pixels": pixels}, work_items=items)


def _input(grid: _Grid, band: Mapping[str, int], stack0: int, stacks: int) -> Call:
    conv = grid.conv
    sizes = {"h": conv.h, "w": conv.w, "pad_t": conv.pads[0], "pad_l": conv.pads[1]}
    return Call(
        INPUT_WIDE if grid.wide else INPUT,
        (grid.transforms(band["tiles_y"]), stacks * grid.copies, conv.n),
        grid.tile,
        {**conv.padding, **({"PARTS": grid.parts} if grid.copies > 1 else {})},
        {"in_stacks": stacks * grid.copies, "first_stack": stack0, **sizes, **band},
        writes="transformed",
        scratch_elements=grid.scratch(grid.part.stacks * grid.copies),
        is_last=False,
    )


def _product(grid: _Grid, filters: Array, tile: OutputTile | GroupTile, *, adds: bool) -> Call:
    """The products of some input channels, for a whole round."""
    conv, stacks = grid.conv, -(-filters.shape[3] // 4) * grid.copies
    spare = stacks // grid.copies * 4 - filters.shape[3]  # a stack has channels of one part only
    filters = np.pad(filters, ((0, 0), (0, 0), (0, 0), (0, spare))).reshape(*filters.shape[:2], -1)
    if isinstance(tile, OutputTile):
        call = _in_registers(filters, tile, in_stacks=stacks, out_stacks=conv.out_stacks)
    else:
        call = stack_product(
            tile, filters, None, pixels=grid.tiles(grid.part.rows), in_stacks=stacks, out_stacks=conv.out_stacks,
            batch=grid.positions,
        )  # fmt: skip
    views = {
        "src_stacks": stacks, "src_stack0": 0, "dst_stacks": conv.out_stacks, "dst_stack0": 0,
        "residual_stacks": conv.out_stacks, "residual_stack0": 0, "has_residual": int(adds),
    }  # fmt: skip
    return replace(
        call,
        ints={**call.ints, **views},
        reads="transformed",
        writes="products",
        adds="products" if adds else "",
        scratch_elements=grid.scratch(conv.out_stacks),
        is_last=False,
    )


def _in_registers(filters: Array, tile: OutputTile, *, in_stacks: int, out_stacks: int) -> Call:
    """A 1x1 convolution with weights of its own for each position; the caller sets its pixels."""
    packed = np.stack([pack_filters(one[..., np.newaxis, np.newaxis], tile.vectors, tile.lanes) for one in filters])
    groups = -(-out_stacks // tile.stacks)
    return Call(
        POINTWISE,
        (0, groups, len(filters)),
        tile,
        ints={"in_stacks": in_stacks, "out_stacks": out_stacks, "weight_batch": packed[0].size // tile.lanes},
        weight=packed,
        bias=np.zeros(groups * 4 * tile.stacks, np.float32),
    )


def _output(grid: _Grid, band: Mapping[str, int], bias: Array) -> Call:
    conv = grid.conv
    return Call(
        OUTPUT_WIDE if grid.wide else OUTPUT,
        (grid.transforms(band["tiles_y"]), conv.out_stacks, conv.n),
        grid.tile,
        ints={"out_stacks": conv.out_stacks, "oh": conv.oh, "ow": conv.ow, **band},
        bias=padded(bias, 0, 4),
        reads="products",
    )
