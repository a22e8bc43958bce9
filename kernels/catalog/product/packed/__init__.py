"""Products of packed weights, which work-items unpack in registers: a matrix is read once, at its own size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.panels import LANES, layout_of
from kernels.catalog.product.kernel_parts import BOUNDS
from kernels.catalog.product.one_row import UNITS, RowTile, normalising
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.ir.packed import PackedFormat
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.texts import text_of
from kernels.source.tile import Tile, derived

_SPAN, _VECTOR = 32, 16
"""Columns that are unpacked at once, at most, and bytes of a vector of four words."""
_HERE = Path(__file__).parent
_GROUP, _ACROSS, _ACROSS_OF_A_CPU = 256, 4, 16
"""Work-items of a work-group, and those side by side: a panel each; a CPU's vectors want more, and no barrier."""
_IN_FLIGHT, _IN_FLIGHT_OF_FEW = 8, 16
"""Vectors of codes that a work-item reads at once at most, and where a compute unit has one or two work-groups."""
_FEW_GROUPS, _MANY_GROUPS = 512, 8
"""Work-items of a work-group where there are fewer than two a compute unit; and work-groups a unit that are many."""
_FEW_ROWS = 4
"""The most rows whose sums a work-item holds."""
_EACH_ROW = re.compile(r"^EACH_ROW\n(.*?)^END_ROW\n", re.MULTILINE | re.DOTALL)
_EACH_MATRIX = re.compile(r"^EACH_MATRIX\n(.*?)^END_MATRIX\n", re.MULTILINE | re.DOTALL)
_OWN = re.compile(r"\b(?:LOAD_src|STORE_dst|depth|columns4)\b")
_DECLARED = re.compile(r"\b(?:WIDE4|float|int) (\w+)")
_MEANING, _EXAMPLE = "work-items across x down x turns", "4x64x2"


@dataclass(frozen=True)
class BlockTile(Tile):
    """A packed format, as `layout_of` tells of it; places within a block are in vectors of four words."""

    bits: int
    block: int
    group_size: int
    zero_code: int
    fields: int

    span = derived(lambda tile: min(_SPAN, tile.group_size))
    """Columns that are unpacked at once: of one group, and of whole words."""
    span_vectors = derived(lambda tile: tile.span // 4)
    span_words = derived(lambda tile: tile.span * tile.bits // 32)
    """Vectors that hold the codes of four outputs in a span."""
    field_vectors = derived(lambda tile: 1 + (tile.fields >> 1).bit_count())
    """Vectors of what four outputs have in a span beside codes."""
    offsets = derived(lambda tile: LANES * (4 if tile.fields & 1 else 2) // _VECTOR)
    factors = derived(lambda tile: tile.offsets * (2 if tile.fields & 4 else 1))
    offset_factors = derived(lambda tile: tile.factors + tile._groups * bool(tile.fields & 2))
    zeros = derived(lambda tile: tile.offset_factors + tile._groups * bool(tile.fields & 8))
    codes = derived(lambda tile: tile.zeros + tile._groups * bool(tile.fields & 16))
    block_vectors = derived(lambda tile: tile.codes + tile.block * LANES * tile.bits // (8 * _VECTOR))

    @property
    def _groups(self) -> int:
        return self.block // self.group_size


@dataclass(frozen=True)
class PackedTile(RowTile, BlockTile):
    """`cx` x `ky` work-items, each with four outputs, of `turns` spans of the depth at once."""

    @property
    def words(self) -> str:
        """The text that `--product 'packed 4x64x2'` takes."""
        return f"{self.cx}x{self.ky}x{self.turns}"

    reads = derived(lambda tile: tile.turns * tile.matrices * tile.span_words)
    field_reads = derived(lambda tile: tile.turns * tile.matrices * tile.field_vectors)


@dataclass(frozen=True)
class FewRowsTile(PackedTile):
    """Each work-item has its outputs of `rows` rows, for which it unpacks a span once."""

    rows: int = 2


def _each_row(text: str, constants: Mapping[str, int]) -> str:
    """Write out what the body marks from `EACH_ROW` to `END_ROW` for each row, with names of its own; of a single row
    it is the text between."""
    count = constants.get("ROWS", 1)
    if count == 1:
        return _EACH_ROW.sub(r"\1", text)
    names = {name for each in _EACH_ROW.findall(text) for name in _DECLARED.findall(each)} - {"other"}  # of an ending
    known = re.compile(rf"\b({'|'.join(sorted(names))})\b")

    def written(match: re.Match[str]) -> str:
        rows = [known.sub(rf"\1_{row}", match[1]).replace("GROUP_ID(1)", str(row)) for row in range(count)]
        return ("    BARRIER;\n" if "BARRIER" in match[1] else "").join(rows)  # local memory serves the next row again

    return _EACH_ROW.sub(written, text)


def _each_matrix(text: str, constants: Mapping[str, int]) -> str:
    """Write out what the body marks from `EACH_MATRIX` to `END_MATRIX` for each, with parameters of its own."""
    count = constants.get("MATRICES", 1)
    own = _OWN if count > 1 else re.compile("$^")
    return _EACH_MATRIX.sub(lambda match: "".join(own.sub(rf"\g<0>{i}", match[1]) for i in range(count)), text)


_UNPACKING = text_of(_HERE / "blocks.c")
KERNEL = Kernel(
    "packed_product",
    _HERE / "kernel.c",
    (Buffer("a"), Buffer("b", storage="i32"), Buffer("bias"), result("dst")),
    ("depth", "columns4", "a_start", "a_stride", "dst_start", "dst_stride", "has_bias", "activation"),
    BOUNDS,
    PackedTile,
    (LocalArray("partial", "WAITING"), LocalArray("met", "MET")),
    whole_numbers=True,
    rewrite=_each_row,
    functions=_UNPACKING,
)
UNPACK = Kernel(
    "unpack_rows",
    _HERE / "unpack.c",
    (Buffer("src", storage="i32"), result("dst")),
    ("depth", "columns4"),
    tile=BlockTile,
    whole_numbers=True,
    rewrite=_each_matrix,
    functions=_UNPACKING,
)


class Packed:
    """Work-items side by side read the words of a panel, those behind each other spans of the depth."""

    name = "packed"
    summary = f"few rows and packed weights, unpacked in registers; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does. Raises OptionError for a tile that is not known."""
        if product.packed is None:
            return "its weights are not packed"
        shape = _tile(product.packed, tile) if tile else _default(product, product.packed, limits)
        local = normalising(KERNEL).local_bytes(shape.twin.constants)
        return group_conflict(limits.within(KERNEL.name), group=shape.group, local_bytes=local)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        if product.packed is None or self.why_not(product, options, limits) is not None:
            return []
        others = [
            f"{across}x{size // across}x{turns}"
            for size in (64, 128, 256, 512)
            for across in (4, 8, 16)
            for turns in (1, 2, 4)
            if size // across <= 2 * product.depth // _SPAN
        ]
        fitting = [words for words in others if self.why_not(product, options, limits, words) is None]
        return list(dict.fromkeys([_default(product, product.packed, limits).words, *fitting]))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        assert product.packed is not None
        shape = _tile(product.packed, tile) if tile else _default(product, product.packed, limits)
        switches = {"NORMED": 0, "RAGGED": int(product.depth % shape.span > 0)}
        switches |= {"LAST_LANES": product.depth % 4} if product.depth % 4 else {}
        items = (-(-product.columns4 // shape.cx) * shape.group, 1, 1)
        kernel = KERNEL if _fills(product, shape, limits) else KERNEL.in_order("b")
        if product.rows > 1:
            shape = FewRowsTile(**vars(shape), rows=product.rows)
        return (Call(kernel, items, shape, switches, group=shape.group),)


def is_of_few_rows(product: Product) -> bool:
    """Return whether a work-item holds the sums of all rows."""
    return product.rows <= _FEW_ROWS


def holds_copy(product: Product, options: Options, limits: Limits) -> bool:
    """Return whether a buffer holds an unpacked copy of the matrix."""
    size = product.depth * 4 * product.columns4 * (2 if options.half else 4)
    return not 0 < limits.max_buffer_bytes < size


def block_tile(packed: PackedFormat) -> BlockTile:
    """Return what kernels are compiled for to read a format."""
    return BlockTile(*layout_of(packed).values())


def _tile(packed: PackedFormat, tile: str) -> PackedTile:
    across, down, turns = numbers(tile, _MEANING, _EXAMPLE)
    bits, block, group, zero, fields = layout_of(packed).values()
    return PackedTile(bits, block, group, zero, fields, across, down, 1, turns)


def _default(product: Product, packed: PackedFormat, limits: Limits) -> PackedTile:
    """Return a tile that has all of the depth on its way: in as many turns as registers hold; on a GPU with memory of
    its own that work-groups do not fill, in as many work-items, each of which has less to unpack one after another."""
    shape = _tile(packed, f"{_ACROSS_OF_A_CPU}x1x1")
    turns = max(1, _IN_FLIGHT // shape.span_words)
    if limits.cpu_device:
        return replace(shape, turns=turns)
    most = min((limits.within(KERNEL.name).max_work_group or 64, *limits.max_work_item_sizes[:1]))
    across, spans = min(_ACROSS, most), -(-product.depth // shape.span)
    groups, units = -(-product.columns4 // across), limits.compute_units or UNITS
    if _fills(product, replace(shape, cx=across), limits):
        return replace(shape, cx=across, ky=_down(-(-spans // turns), min(_GROUP, most) // across), turns=turns)
    is_few = groups < 2 * units
    ky = _down(spans, min(_FEW_GROUPS if is_few else _GROUP, most) // across)
    in_flight = (_IN_FLIGHT_OF_FEW if is_few else _IN_FLIGHT) // shape.span_words
    return replace(shape, cx=across, ky=ky, turns=max(1, min(in_flight, -(-spans // ky))))


def _fills(product: Product, shape: PackedTile, limits: Limits) -> bool:
    """Return whether many work-groups on a compute unit, or a phone's own caches, hide that each waits for memory."""
    groups = -(-product.columns4 // shape.cx)
    return limits.unified_memory or limits.cpu_device or groups >= _MANY_GROUPS * (limits.compute_units or UNITS)


def _down(wanted: int, most: int) -> int:
    """Return the power of two that is enough, or as many as there may be."""
    return max(1, min(1 << (wanted - 1).bit_length(), 1 << (most.bit_length() - 1)))
