"""Products of many rows with packed weights, as a prompt has: a work-group unpacks a span of them for all its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.product.kernel_parts import BOUNDS
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.ir.packed import PackedFormat
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel, LocalArray
from kernels.source.tile import derived

from . import KERNEL as _OF_A_ROW
from . import BlockTile, block_tile

_ACROSS, _DOWN, _ROWS = 16, 8, 8
"""Vectors of columns of a work-group, its work-items that have other rows, and rows of each."""
_MEANING, _EXAMPLE = "work-items across x down x rows of each", "16x8x8"


@dataclass(frozen=True)
class RowsTile(BlockTile):
    """`cx` x `down` work-items, each with four outputs of `rows` rows."""

    cx: int
    down: int
    rows: int

    @property
    def words(self) -> str:
        """The text that `--product 'packed_rows 16x8x8'` takes."""
        return f"{self.cx}x{self.down}x{self.rows}"

    group = derived(lambda tile: tile.cx * tile.down)
    sums = derived(lambda tile: tile.rows)
    unpacked = derived(lambda tile: 2 * tile.span * tile.cx if tile.down > 1 else 1)
    """Vectors of two sides of local memory."""


KERNEL = Kernel(
    "packed_rows_product",
    Path(__file__).with_name("rows.c"),
    _OF_A_ROW.buffers,
    ("rows", *_OF_A_ROW.ints),
    BOUNDS,
    RowsTile,
    (LocalArray("unpacked", "UNPACKED", storage="computed"),),
    computes_in_half=True,
    whole_numbers=True,
    functions=_OF_A_ROW.functions,
)


class PackedRows:
    """Each number is unpacked once for all rows of a work-group, and no copy of the matrix is in memory.

    Kernels of llama.cpp and of GPTQ multiply prompts in this way: the blocks of a tile go unpacked to shared memory.
    With a copy matrix units are faster on an H200, 20 ms against 57 for 512 tokens of Llama 3.2 1B in Q4_0, and so are
    its tiles in fp32, 17 against 29 with 0.5 B.
    """

    name = "packed_rows"
    summary = f"many rows and packed weights, unpacked by work-groups; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does. Raises OptionError for a tile that is not known."""
        if product.packed is None:
            return "its weights are not packed"
        shape = _parse(product.packed, tile) if tile else _default(product, product.packed, options, limits)
        local = KERNEL.local_bytes(shape.constants, options.precision)
        return group_conflict(limits.within(KERNEL.name), group=shape.group, local_bytes=local)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        if product.packed is None or self.why_not(product, options, limits) is not None:
            return []
        downs = (1,) if limits.cpu_device else (2, 4, 8, 16)
        others = [f"{across}x{down}x{rows}" for across in (8, 16) for down in downs for rows in (4, 8, 16)]
        fitting = [words for words in others if self.why_not(product, options, limits, words) is None]
        return list(dict.fromkeys([_default(product, product.packed, options, limits).words, *fitting]))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        assert product.packed is not None
        packed = product.packed
        shape = _parse(packed, tile) if tile else _default(product, packed, options, limits)
        across, down = -(-product.columns4 // shape.cx), -(-product.rows // (shape.down * shape.rows))
        switches = {"RAGGED": int(product.depth % shape.span > 0)}
        return (Call(KERNEL, (across * shape.group, down, 1), shape, switches, group=shape.group),)


def _parse(packed: PackedFormat, tile: str) -> RowsTile:
    return _tile(packed, *numbers(tile, _MEANING, _EXAMPLE))


def _tile(packed: PackedFormat, across: int, down: int, rows: int) -> RowsTile:
    block = block_tile(packed)
    return RowsTile(block.bits, block.block, block.group_size, block.zero_code, block.fields, across, down, rows)


def _default(product: Product, packed: PackedFormat, options: Options, limits: Limits) -> RowsTile:
    """Return a tile of no more rows than there are; a CPU unpacks for each work-item, which needs no barrier."""
    rows = min(_ROWS, 1 << (product.rows - 1).bit_length())
    if limits.cpu_device:
        return _tile(packed, _ACROSS, 1, rows)
    within = limits.within(KERNEL.name)
    most = min(within.max_work_group or 64, *limits.max_work_item_sizes[:1], _ACROSS * _DOWN)
    down = min(_DOWN, 1 << (-(-product.rows // rows) - 1).bit_length())
    across = _ACROSS
    while across > 1 and within.local_bytes and _local_bytes(packed, across, down, rows, options) > within.local_bytes:
        across //= 2
    while across * down > most and down > 1:
        down //= 2
    return _tile(packed, min(across, most), down, rows)


def _local_bytes(packed: PackedFormat, across: int, down: int, rows: int, options: Options) -> int:
    return KERNEL.local_bytes(_tile(packed, across, down, rows).constants, options.precision)
