"""Kernels of products in 8 bits, and how much a work-item computes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, WINDOW
from kernels.options import Limits
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import Tile, derived

_BUFFERS = (
    Buffer("src", 1, "i32"), Buffer("steps", storage="f32"), Buffer("weight", storage="i32"),
    Buffer("ending", storage="f32"), Buffer("residual"), result("dst"),
)  # fmt: skip
_ENDING = (*view("dst"), *view("residual"), "per_picture", "last_stack", "activation")


@dataclass(frozen=True)
class ProductTile(Tile):
    """The tile of a work-group of `cx` x `ky` work-items: `cx` x `pixels` outputs of `vectors` stacks of channels.

    `ky` of them share out a sum.
    """

    pixels: int
    vectors: int
    cx: int
    ky: int

    sums = derived(lambda tile: tile.pixels * tile.vectors)
    shared = derived(lambda tile: tile.sums * tile.cx * tile.ky if tile.ky > 1 else 1)

    @property
    def words(self) -> str:
        return f"{self.pixels}x{self.vectors}x{self.cx}x{self.ky}"


@dataclass(frozen=True)
class PixelTile(Tile):
    """Outputs of a work-item."""

    pixels: int


PRODUCT = Kernel(
    "int8_product", Path(__file__).with_name("product.c"), _BUFFERS,
    ("in_stacks", "out_stacks", "groups", "count", *WINDOW, *DILATION, *_ENDING), BOUNDS, ProductTile,
    (LocalArray("partial", "SHARED", storage="i32"),), whole_numbers=True,
)  # fmt: skip
DEPTHWISE = Kernel(
    "int8_depthwise", Path(__file__).with_name("depthwise.c"), _BUFFERS,
    ("channels", "in_stacks", *WINDOW, *DILATION, *_ENDING), BOUNDS, PixelTile, whole_numbers=True,
)  # fmt: skip

_ACROSS, _MOST_ITEMS, _FEWEST_PAIRS = 32, 256, 4
"""Work-items side by side on a GPU, of a work-group, and pairs that one of those who share out a sum has at least."""
_ITEMS_OF_A_UNIT, _ITEMS_OF_A_PHONE = 512, 4096
"""Work-items that keep a compute unit of a desktop GPU busy, and a whole phone's."""
_LOCAL_BYTES = 16 << 10


def product_tile(limits: Limits, count: int, stacks: int, groups: int, pairs: int) -> ProductTile:
    """Return the tile for `count` outputs of so many stacks of channels in each group, sums of `pairs` words.

    Large tiles read an operand less often; smaller ones where they would leave a GPU idle; then a sum is shared out.
    """
    most = limits.within(PRODUCT.name).max_work_group or _ACROSS
    across = min(16 if limits.cpu_device else _ACROSS, 1 << (most.bit_length() - 1), 1 << (count - 1).bit_length())
    vectors = min(4, 1 << (stacks - 1).bit_length())
    pixels = 2 if limits.cpu_device else 4
    while pixels > 1 and across * pixels > count:
        pixels //= 2
    if limits.cpu_device:
        return ProductTile(pixels, vectors, across, 1)
    wanted = limits.compute_units * _ITEMS_OF_A_UNIT if not limits.unified_memory else _ITEMS_OF_A_PHONE

    def items() -> int:
        return -(-count // (pixels * across)) * across * -(-stacks // vectors) * groups

    while items() < wanted and pixels * vectors > 2:
        if pixels >= vectors and pixels > 1:
            pixels //= 2
        else:
            vectors //= 2
    ky, most = 1, limits.within(PRODUCT.name).max_work_group
    local = min(limits.local_bytes or _LOCAL_BYTES, _LOCAL_BYTES)
    while items() * ky < wanted and pairs >= 2 * ky * _FEWEST_PAIRS:
        if 2 * ky * across > min(most, _MOST_ITEMS) or 2 * ky * across * pixels * vectors * 16 > local:
            break
        ky *= 2
    return ProductTile(pixels, vectors, across, ky)
