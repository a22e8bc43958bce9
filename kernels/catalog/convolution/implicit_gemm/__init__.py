"""Convolution as a matrix product whose left operand is never written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.catalog.convolution.group_tile import GroupTile, group_tile, group_tile_words
from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, OPERANDS, TILES, VIEWS, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.convolution.stack_product import work_items
from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import pack_stages, padded
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel

KERNEL = Kernel(
    "conv_tiled",
    Path(__file__).with_name("kernel.c"),
    OPERANDS,
    (*VIEWS, "in_stacks", "out_stacks", "stages", "groups", *WINDOW, *DILATION, *ENDING),
    BOUNDS,
    GroupTile,
    TILES,
    computes_in_half=True,
)


class ImplicitGemm:
    """Indices of the window are computed where they are needed (study M); operands pass through local memory."""

    name = "implicit_gemm"
    summary = (
        "matrix product through local memory, the window's indices computed on the fly; groups of whole stacks of four"
    )

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does."""
        del options, limits, tile
        if conv.groups == 1 or conv.has_whole_groups:
            return None
        return f"its {conv.groups} groups are not whole stacks of four channels"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        return group_tile_words(
            options,
            limits.within(KERNEL.name),
            pixels=conv.oh * conv.ow,
            stacks=-(-conv.k // conv.groups // 4),
            matrices=conv.n * conv.groups,
        )

    def lower(
        self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (K, C, kh, kw), bias (K). Raises OptionError."""
        pixels, matrices = conv.oh * conv.ow, conv.n * conv.groups
        in_stacks, out_stacks = (-(-channels // conv.groups // 4) for channels in (conv.c, conv.k))
        within = limits.within(KERNEL.name)
        shape = group_tile(tile, options, within, pixels=pixels, stacks=out_stacks, matrices=matrices)
        taps = conv.kernel[0] * conv.kernel[1]
        filters = constants["weight"].reshape(conv.groups, conv.k // conv.groups, -1, taps)
        call = Call(
            KERNEL,
            work_items(shape, pixels, out_stacks, matrices),
            shape,
            conv.padding,
            {
                "in_stacks": in_stacks, "out_stacks": out_stacks, "groups": conv.groups,
                "stages": -(-in_stacks * taps // shape.depth), **conv.window, **conv.dilation,
            },
            shape.work_group,
            weight=pack_stages(filters, shape.tile_vectors, shape.depth),
            bias=padded(constants["bias"].reshape(conv.groups, -1), 1, 4 * shape.tile_vectors),
        )  # fmt: skip
        return (call,)
