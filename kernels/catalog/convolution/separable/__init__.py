"""A depthwise convolution, or a gate of channels, and the 1x1 convolution behind it as one kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from kernels.catalog.convolution.group_tile import GroupTile, StackProduct, cheapest_tile
from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, TILES, VIEWS, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.convolution.stack_product import work_items
from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import pack_stages, padded
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result, view

_MOST_PRODUCTS = 1 << 25
"""Of the 1x1 convolution: some 6 us of a large GPU that so few do not fill, as long as a launch."""
_MOST_LOADS = 1 << 21
"""Vectors of windows, which each tile of channels reads anew: 33 MB in single, from caches."""


@dataclass(frozen=True)
class SeparableTile(GroupTile):
    """The same with the window of the depthwise convolution, whose loads are written out."""

    kh: int = 3
    kw: int = 3


KERNEL = Kernel(
    "conv_separable",
    Path(__file__).with_name("kernel.c"),
    (*map(Buffer, ("src", "inner_weight", "inner_bias", "weight", "bias", "residual")), result("dst")),
    (
        *VIEWS, "in_stacks", "out_stacks", "stages", "pictures",
        *(name for name in WINDOW if name not in ("kh", "kw")), *DILATION, *view("inner"), "inner_activation", *ENDING,
    ),
    ("inner_lo", "inner_hi", *BOUNDS),
    SeparableTile,
    TILES,
    computes_in_half=True,
)  # fmt: skip


def separable_tile(
    window: tuple[int, int], pointwise: Convolution, options: Options, limits: Limits
) -> SeparableTile | None:
    """The tile, of those that sum up windows again for few tiles of channels only; None: none, or too much work."""
    sizes, (kh, kw) = _sizes(pointwise), window
    if pointwise.flops > 2 * _MOST_PRODUCTS:
        return None

    def reads_little(tile: GroupTile) -> bool:
        times = -(-sizes.stacks // tile.tile_vectors)
        pixels = -(-sizes.pixels // tile.tile_pixels) * tile.tile_pixels
        return pixels * sizes.depth * kh * kw * times <= _MOST_LOADS

    found = cheapest_tile(options, limits.within(KERNEL.name), sizes, reads_little)
    return SeparableTile(**{**asdict(found), "kh": kh, "kw": kw}) if found else None


def separable_call(depthwise: Convolution, pointwise: Convolution, constants: Constants, tile: SeparableTile) -> Call:
    """The dispatch; constants of the 1x1 convolution: weight (K, C, 1, 1), bias (K)."""
    sizes = _sizes(pointwise)
    ints = {**depthwise.window, **depthwise.dilation}
    weight = constants["weight"].reshape(1, pointwise.k, pointwise.c, 1)
    return Call(
        KERNEL,
        work_items(tile, sizes.pixels, sizes.stacks, 1),
        tile,
        depthwise.padding,
        {
            "in_stacks": sizes.depth, "out_stacks": sizes.stacks, "pictures": pointwise.n,
            "stages": -(-sizes.depth // tile.depth), **{name: ints[name] for name in ints if name in KERNEL.ints},
        },
        tile.work_group,
        weight=pack_stages(weight, tile.tile_vectors, tile.depth),
        bias=padded(constants["bias"], 0, 4 * tile.tile_vectors),
    )  # fmt: skip


def _sizes(pointwise: Convolution) -> StackProduct:
    pixels = pointwise.n * pointwise.oh * pointwise.ow
    return StackProduct(pixels, pointwise.out_stacks, pointwise.in_stacks, 1)
