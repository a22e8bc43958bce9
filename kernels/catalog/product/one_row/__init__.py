"""A product of one row: the matrix is read once, at the memory's speed, and nothing else takes time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.product.kernel_parts import BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray
from kernels.source.tile import Tile, derived

_PIECES = 16
"""Work-items at most that add up the parts of one sum before a last one does."""
_LINES, _SECTOR = {256: 4, 64: 1}, 32
"""Bytes of a row of the matrix that a work-group reads side by side, by the work-groups that they leave each compute
unit; and at least."""
_GROUP, _FEW_GROUPS = 256, 512
"""Work-items of a work-group, and where there are fewer than two a compute unit."""
_TURNS = 2
UNITS, _UNITS_OF_A_PHONE = 64, 8
"""Compute units of a device that does not tell."""
_MEANING, _EXAMPLE = "work-items across x down x vectors of columns x turns", "2x128x2x2"


@dataclass(frozen=True)
class RowTile(Tile):
    """`cx` x `ky` work-items, each with `width` vectors of columns, of `turns` vectors of the depth at once.

    `matrices`: 2 where another one of the same size is multiplied as well."""

    cx: int
    ky: int
    width: int
    turns: int
    matrices: int = 1

    @property
    def words(self) -> str:
        """The text that `--product 'one_row 2x128x2x2'` takes."""
        return f"{self.cx}x{self.ky}x{self.width}x{self.turns}"

    @property
    def twin(self) -> RowTile:
        """Return the tile of two matrices: as much to read at once by a work-item, or by half as many of them."""
        if self.cx * self.ky > _GROUP:
            return replace(self, matrices=2, ky=max(self.width, self.ky // 2))
        return replace(self, matrices=2, turns=-(-self.turns // 2))

    group = derived(lambda tile: tile.cx * tile.ky)
    sums = derived(lambda tile: tile.width * tile.matrices)
    reads = derived(lambda tile: 4 * tile.turns * tile.matrices)
    outputs = derived(lambda tile: tile.cx * tile.width)
    pieces = derived(lambda tile: max(1, min(_PIECES, tile.ky // tile.width)))
    meetings = derived(lambda tile: -(-tile.ky // tile.pieces))
    waiting = derived(lambda tile: tile.width * tile.group)
    met = derived(lambda tile: tile.outputs * tile.pieces)


KERNEL = Kernel(
    "row_product",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("depth", "columns4", "a_start", "b_stride", "dst_start", "has_bias", "activation"),
    BOUNDS,
    RowTile,
    (LocalArray("partial", "WAITING"), LocalArray("met", "MET")),
)


def normalising(kernel: Kernel) -> Kernel:
    """Return the kernel that normalises its row."""
    *read, written = kernel.buffers
    return replace(
        kernel,
        name=f"{kernel.name}_normed",
        buffers=(*read, Buffer("norm"), written),
        floats=(*kernel.floats, "epsilon"),
        locals=(*kernel.locals, LocalArray("lengths", "KY", 1), LocalArray("squared", "PIECES", 1)),
    )


def doubled(kernel: Kernel) -> Kernel:
    """Return the kernel with a second matrix, whose product is `other` at the end."""
    *read, written = kernel.buffers
    twin = next(replace(buffer, name="twin") for buffer in read if buffer.name == "b")
    return replace(kernel, name=f"{kernel.name}_twin", buffers=(*read, twin, written))


class OneRow:
    """Work-items read as much of the matrix at once as registers hold, and as many of them as fill the device."""

    name = "one_row"
    summary = f"one row, with all reads on their way at once; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does. Raises OptionError for a tile that is not known."""
        if product.rows != 1 or product.batch != 1 or not product.right_is_constant:
            return "it is for one row and weights"
        if product.depth % 4:
            return f"its depth of {product.depth} is not in whole vectors of four"
        shape = _parse(tile) if tile else _default(product, options, limits)
        if shape.width > 2 or product.columns4 % shape.width:
            return f"{product.columns4} vectors of columns are not in {shape.width}s, or a work-item has more than two"
        if shape.ky < shape.width:
            return f"{shape.ky} work-items are too few to add up {shape.width} vectors each"
        local = normalising(KERNEL).local_bytes(shape.constants)
        return group_conflict(limits.within(KERNEL.name), group=shape.group, local_bytes=local)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        if self.why_not(product, options, limits) is not None:
            return []
        default = _default(product, options, limits)
        others = [
            RowTile(across, size // across, default.width, turns).words
            for size in (64, 128, 256, 512, 1024)
            for across in (2, 4, 8)
            for turns in (1, 2, 4)
            if size // across <= product.depth // 4
        ]
        fitting = [words for words in others if self.why_not(product, options, limits, words) is None]
        return list(dict.fromkeys([default.words, *fitting]))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        shape = _parse(tile) if tile else _default(product, options, limits)
        groups = -(-product.columns4 // shape.outputs)
        eights = int(options.half and shape.width == 2)
        kernel = KERNEL if limits.unified_memory else KERNEL.in_order("a", "b")
        return (Call(kernel, (groups * shape.group, 1, 1), shape, {"EIGHTS": eights, "NORMED": 0}, group=shape.group),)


def _default(product: Product, options: Options, limits: Limits) -> RowTile:
    """Return a tile whose work-groups read whole lines, or sectors where lines leave compute units without one."""
    vector = 8 if options.half else 16
    width = 2 if options.half and not limits.unified_memory and product.columns4 % 2 == 0 else 1
    units = limits.compute_units or (_UNITS_OF_A_PHONE if limits.unified_memory else UNITS)
    groups = {line: -(-product.columns4 * vector // line) for line in _LINES}
    cx = next((line for line, each in _LINES.items() if groups[line] >= each * units), _SECTOR) // (vector * width)
    few = -(-product.columns4 // (cx * width)) < 2 * units and not limits.unified_memory
    most = limits.within(KERNEL.name).max_work_group or 64
    group = min(_FEW_GROUPS if few else _GROUP, most, *limits.max_work_item_sizes[:1])
    cx = max(1, min(cx, 1 << (group.bit_length() - 1)))
    down = 1 << (-(-product.depth // (4 * _TURNS)) - 1).bit_length()
    return RowTile(cx, max(width, min(1 << ((group // cx).bit_length() - 1), down)), width, _TURNS)


def _parse(tile: str) -> RowTile:
    return RowTile(*numbers(tile, _MEANING, _EXAMPLE))
