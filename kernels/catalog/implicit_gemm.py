"""Convolution as a matrix product whose left operand is never written down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.ir.graph import Array
from kernels.options import Limits, Options

from .convolution import Call, Convolution
from .group_tile import GroupTile, group_tile, group_tile_words
from .packing import pack_stages, padded


class ImplicitGemm:
    """Indices of the window are computed where they are needed (study M); operands pass through local memory."""

    name = "implicit_gemm"
    summary = (
        "matrix product through local memory, the window's indices computed on the fly; groups of whole stacks of four"
    )

    def why_not(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        if conv.groups == 1 or conv.has_whole_groups:
            return None
        return f"its {conv.groups} groups are not whole stacks of four channels"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        return group_tile_words(
            options,
            limits.within("conv_tiled"),
            pixels=conv.oh * conv.ow,
            stacks=-(-conv.k // conv.groups // 4),
            matrices=conv.n * conv.groups,
        )

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (K, C, kh, kw), bias (K). Raises OptionError."""
        pixels, matrices = conv.oh * conv.ow, conv.n * conv.groups
        in_stacks, out_stacks = (-(-channels // conv.groups // 4) for channels in (conv.c, conv.k))
        within = limits.within("conv_tiled")
        shape = group_tile(tile, options, within, pixels=pixels, stacks=out_stacks, matrices=matrices)
        taps = conv.kernel[0] * conv.kernel[1]
        filters = weight.reshape(conv.groups, conv.k // conv.groups, -1, taps)
        call = Call(
            kernel="conv_tiled",
            tunables={**shape.tunables, **conv.padding},
            weight=pack_stages(filters, shape.vectors, shape.depth),
            bias=padded(bias.reshape(conv.groups, -1), 1, 4 * shape.vectors),
            ints={
                "in_stacks": in_stacks, "out_stacks": out_stacks, "groups": conv.groups,
                "stages": -(-in_stacks * taps // shape.depth), "dh": conv.dilations[0], "dw": conv.dilations[1],
                **conv.window,
            },
            work_items=work_items(shape, pixels, out_stacks, matrices),
            group=shape.group,
        )  # fmt: skip
        return (call,)


def product(
    tile: GroupTile, weight: Array, bias: Array | None, *, pixels: int, in_stacks: int, out_stacks: int, batch: int
) -> Call:
    """A product of (matrices, K, C) weights with `batch` stacks of flat pixels; the caller sets its buffers."""
    matrices = weight.shape[0]
    packed = pack_stages(weight[..., np.newaxis].astype(np.float32), tile.vectors, tile.depth)
    zeros = np.zeros(packed.shape[1] * 4 * tile.vectors, np.float32)
    return Call(
        kernel="product_tiled",
        tunables=tile.tunables,
        weight=packed,
        bias=zeros if bias is None else padded(bias, 0, 4 * tile.vectors),
        ints={
            "in_stacks": in_stacks, "out_stacks": out_stacks, "stages": packed.shape[2] // tile.depth, "pixels": pixels,
            "weight_batch": packed[0].size // 4 if matrices > 1 else 0,
        },
        work_items=work_items(tile, pixels, out_stacks, batch),
        group=tile.group,
    )  # fmt: skip


def work_items(tile: GroupTile, pixels: int, stacks: int, batch: int) -> tuple[int, int, int]:
    """Whole work-groups over pixels, vectors of channels, and pictures or matrices."""
    return -(-pixels // tile.pixels) * tile.group, -(-stacks // tile.vectors), batch
