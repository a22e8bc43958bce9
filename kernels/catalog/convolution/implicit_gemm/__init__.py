"""Convolution as a matrix product whose left operand is never written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernels.catalog.convolution.group_tile import (
    GroupTile,
    StackProduct,
    group_tile,
    group_tile_words,
    parts_of_depth,
)
from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, TILES, WINDOW, layer_kernel
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.convolution.stack_product import work_items
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import pack_stages, padded
from kernels.ir.graph import Array
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result, view
from kernels.source.tile import Tile

KERNEL = layer_kernel(
    "conv_tiled",
    Path(__file__).with_name("kernel.c"),
    ("in_stacks", "out_stacks", "stages", "divisions", "groups", "pictures", *WINDOW, *DILATION),
    GroupTile,
    TILES,
)


@dataclass(frozen=True)
class Divisions(Tile):
    """Parts of a depth."""

    divisions: int


SUM = Kernel(
    "conv_sum",
    Path(__file__).with_name("sum.c"),
    (Buffer("src"), Buffer("bias"), Buffer("residual"), result("dst")),
    (*view("dst"), *view("residual"), "out_stacks", "area", "pictures", *ENDING),
    BOUNDS,
    Divisions,
)


class ImplicitGemm:
    """Indices of the window are computed where they are needed (study M); operands pass through local memory."""

    name = "implicit_gemm"
    summary = (
        "matrix product through local memory, the window's indices computed on the fly; groups of whole stacks of four"
    )

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        if conv.groups == 1 or conv.has_whole_groups:
            return None
        return f"its {conv.groups} groups are not whole stacks of four channels"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        return group_tile_words(options, limits.within(KERNEL.name), _sizes(conv, options))

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatches for one convolution; weight (K, C, kh, kw), bias (K). Raises OptionError."""
        sizes, within = _sizes(conv, options), limits.within(KERNEL.name)
        shape = group_tile(tile, options, within, sizes)
        divisions = parts_of_depth(shape, options, within, sizes)
        taps = conv.kernel[0] * conv.kernel[1]
        filters = constants["weight"].reshape(conv.groups, conv.k // conv.groups, -1, taps)
        bias = padded(constants["bias"].reshape(conv.groups, -1), 1, 4 * shape.tile_vectors)
        call = Call(
            KERNEL,
            work_items(shape, sizes.pixels, sizes.stacks, divisions * sizes.matrices),
            shape,
            conv.padding,
            {
                "in_stacks": sizes.depth // taps, "out_stacks": sizes.stacks, "groups": conv.groups, "pictures": conv.n,
                "stages": -(-sizes.depth // (shape.depth * divisions)), "divisions": divisions,
                **conv.window, **conv.dilation,
            },
            shape.work_group,
            weight=pack_stages(filters, shape.tile_vectors, shape.depth * divisions),
            bias=bias,
        )  # fmt: skip
        return (call,) if divisions == 1 else _divided(conv, call, divisions, constants["bias"])


def _sizes(conv: Convolution, options: Options) -> StackProduct:
    """Sums of parts are kept as the plan keeps values: halves would lose bits."""
    in_stacks, out_stacks = (-(-channels // conv.groups // 4) for channels in (conv.c, conv.k))
    depth, divides = in_stacks * conv.kernel[0] * conv.kernel[1], conv.groups == 1 and not options.half
    return StackProduct(conv.n * conv.oh * conv.ow, out_stacks, depth, conv.groups, divides)


def _divided(conv: Convolution, call: Call, divisions: int, bias: Array) -> tuple[Call, Call]:
    """The sums of each part of the depth by themselves, and what adds them up."""
    area = conv.oh * conv.ow
    parts = replace(
        call,
        ints={**call.ints, "dst_stacks": conv.out_stacks, "dst_stack0": 0},
        bias=np.zeros_like(call.bias),
        writes="sums",
        scratch_elements=4 * divisions * conv.n * conv.out_stacks * area,
        is_last=False,
    )
    added = Call(
        SUM,
        (area, conv.out_stacks, conv.n),
        Divisions(divisions),
        ints={"out_stacks": conv.out_stacks, "area": area, "pictures": conv.n},
        bias=padded(bias, 0, 4),
        reads="sums",
    )
    return parts, added
