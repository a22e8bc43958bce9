"""A register tile a work-item, from weights that lie in the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import pack_panels
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.registers import RegisterTile, default_tile, parse_tile, register_tiles, tail
from kernels.catalog.product.sizes import Product
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel

_ROW_VECTORS = 4
"""Vectors of four lanes a work-item for one row, on a CPU behind Vulkan; PoCL's one of sixteen is as much."""


@dataclass(frozen=True)
class PanelTile(RegisterTile):
    """`panel` vectors of four columns of the right operand lie together."""

    panel: int


KERNEL = Kernel(
    "matmul_panels",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *(name for name in BATCHED if name != "b_stride" and not name.endswith("_batch"))),
    BOUNDS,
    PanelTile,
    computes_in_half=True,
)


class Panels:
    """Weights packed offline, a panel of columns for each work-item, which so reads memory from front to back.

    The packed operand of Goto and van de Geijn (2008). Rows of a large matrix lie pages apart, and a CPU that walks
    down a few columns waits for each. A GPU's work-items side by side want rows.
    """

    name = "panels"
    summary = "weights packed panel by panel, for CPUs; tile: rows x vectors x lanes (4, 8, 16), e.g. 1x1x16"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        if not product.right_is_constant:
            return "its right operand is computed, so that nobody can pack it beforehand"
        shape = parse_tile(tile) if tile else _default(product, options, limits)
        size = _packed_elements(product, shape) * (2 if options.half else 4)
        if limits.max_buffer_bytes and size > limits.max_buffer_bytes:
            return f"packed it has {size} bytes, the largest allocation is {limits.max_buffer_bytes}"
        return shape.why_not(product, options)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first; on a GPU no other."""
        if self.why_not(product, options, limits):
            return []
        default = _default(product, options, limits).words
        others = register_tiles(product, options, limits) if limits.cpu_device else []
        fitting = [tile.words for tile in others if self.why_not(product, options, limits, tile.words) is None]
        return list(dict.fromkeys([default, *fitting]))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (depth, columns). `tile` empty: the default. Raises OptionError."""
        shape = parse_tile(tile) if tile else _default(product, options, limits)
        whole = PanelTile(shape.rows, shape.columns, shape.lanes, shape.columns4)
        work_items = -(-product.columns4 // shape.columns4), -(-product.rows // shape.rows), 1
        weight = pack_panels(constants["weight"], whole.panel)
        return (Call(KERNEL, work_items, whole, tail(product), weight=weight),)


def _packed_elements(product: Product, shape: RegisterTile) -> int:
    panels = -(-product.columns4 // shape.columns4)
    return -(-product.depth // 4) * 4 * panels * 4 * shape.columns4


def _default(product: Product, options: Options, limits: Limits) -> RegisterTile:
    """Return the default tile of the rows as they lie, without rows that are not there."""
    usual = default_tile(product, options, limits)
    if product.rows == 1 and limits.cpu_device and options.backend == "vulkan":
        return replace(usual, columns=min(_ROW_VECTORS, product.columns4))
    return replace(usual, rows=min(usual.rows, 1 << (product.rows - 1).bit_length()))
