"""A depthwise convolution, a gate or a choice of channels, and the 1x1 convolution behind it as one kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernels.catalog.convolution.group_tile import GroupTile, StackProduct, cheapest_tile
from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, TILES, VIEWS, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.convolution.stack_product import work_items
from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import pack_stages, padded
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result, view
from kernels.source.tile import derived

_MOST_PRODUCTS = 1 << 25
"""Products of the 1x1 convolution."""
_MOST_LOADS = {"opencl": 1 << 21, "vulkan": 1 << 20}
"""Vectors of windows by API; each tile of channels reads them anew. A launch takes the host longer through OpenCL."""
_MOST_GATED, _MOST_GATED_HALVES = 5, 3
"""Tiles of channels that each multiply with the gates, however large the layer; in halves there may be matrix units."""
_ONCE = 9
"""Pixels of a window that OpenCL's kernel computes, however large the layer, where one tile has all channels."""


@dataclass(frozen=True)
class SeparableTile(GroupTile):
    """The same with the window of the depthwise convolution, whose loads are written out."""

    kh: int = 3
    kw: int = 3


@dataclass(frozen=True)
class TakingTile(SeparableTile):
    """The same of channels in another order: a window is one pixel."""

    kh: int = 1
    kw: int = 1

    takes = derived(lambda _: 1)


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
TAKING = replace(
    KERNEL,
    name="conv_taking",
    buffers=(Buffer("src", 1), Buffer("table", storage="f32"), *KERNEL.buffers[3:]),
    ints=(*VIEWS, "in_stacks", "out_stacks", "stages", "pictures", "oh", "ow", *ENDING),
    floats=BOUNDS,
    tile=TakingTile,
)
"""The kernel for channels in another order: `table` has four for each stack."""


def separable_tile(
    window: tuple[int, int], pointwise: Convolution, options: Options, limits: Limits, kernel: Kernel = KERNEL
) -> SeparableTile | None:
    """The tile of the 1x1 convolution; None: there is none, or the two layers take less time as two steps."""
    sizes, (kh, kw) = _sizes(pointwise), window
    found = cheapest_tile(options, limits.within(kernel.name), sizes)
    if found is None or not _pays(found, kh * kw, sizes, options):
        return None
    return (TakingTile if kernel is TAKING else SeparableTile)(**{**asdict(found), "kh": kh, "kw": kw})


def _pays(tile: GroupTile, window: int, sizes: StackProduct, options: Options) -> bool:
    """Return whether an H100 took less time for one step, of 452 pairs of layers that were timed.

    `window`: its pixels; a gate has one.
    """
    times = -(-sizes.stacks // tile.tile_vectors)
    pixels = -(-sizes.pixels // tile.tile_pixels) * tile.tile_pixels
    products = 16 * sizes.pixels * sizes.stacks * sizes.depth
    if products <= _MOST_PRODUCTS and pixels * sizes.depth * window * times <= _MOST_LOADS[options.backend]:
        return True
    if window == 1:
        return times <= (_MOST_GATED_HALVES if options.half else _MOST_GATED)
    return options.backend == "opencl" and times == 1 and window <= _ONCE


def separable_call(depthwise: Convolution, pointwise: Convolution, constants: Constants, tile: SeparableTile) -> Call:
    """The dispatch; constants of the 1x1 convolution: weight (K, C, 1, 1), bias (K)."""
    sizes, kernel = _sizes(pointwise), TAKING if isinstance(tile, TakingTile) else KERNEL
    ints = {**depthwise.window, **depthwise.dilation}
    weight = constants["weight"].reshape(1, pointwise.k, pointwise.c, 1)
    return Call(
        kernel,
        work_items(tile, sizes.pixels, sizes.stacks, 1),
        tile,
        depthwise.padding,
        {
            "in_stacks": sizes.depth, "out_stacks": sizes.stacks, "pictures": pointwise.n,
            "stages": -(-sizes.depth // tile.depth), **{name: ints[name] for name in ints if name in kernel.ints},
        },
        tile.work_group,
        weight=pack_stages(weight, tile.tile_vectors, tile.depth),
        bias=padded(constants["bias"], 0, 4 * tile.tile_vectors),
    )  # fmt: skip


def _sizes(pointwise: Convolution) -> StackProduct:
    pixels = pointwise.n * pointwise.oh * pointwise.ow
    return StackProduct(pixels, pointwise.out_stacks, pointwise.in_stacks, 1)
