"""Convolution as a matrix product whose left operand is written down first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernels.ir.graph import Array
from kernels.options import Limits, Options

from .convolution import Call, Convolution
from .group_tile import group_tile, group_tile_words
from .implicit_gemm import product
from .packing import padded


class Im2col:
    """The taps of the window side by side in a buffer, then one matrix product (study C)."""

    name = "im2col"
    summary = "the window's taps written side by side, then a matrix product; one group"

    def why_not(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        return f"it has {conv.groups} groups" if conv.groups != 1 else None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        within, pixels = limits.within("product_tiled"), conv.oh * conv.ow
        return group_tile_words(options, within, pixels=pixels, stacks=conv.out_stacks, matrices=conv.n)

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatches for one convolution; weight (K, C, kh, kw), bias (K). Raises OptionError."""
        pixels, taps = conv.oh * conv.ow, conv.kernel[0] * conv.kernel[1]
        rows = taps * conv.in_stacks
        columns = Call(
            kernel="im2col",
            tunables=conv.padding,
            ints={"in_stacks": conv.in_stacks, "dh": conv.dilations[0], "dw": conv.dilations[1], **conv.window},
            work_items=(pixels, rows, conv.n),
            writes="columns",
            scratch_elements=4 * pixels * rows * conv.n,
            is_last=False,
        )
        within = limits.within("product_tiled")
        shape = group_tile(tile, options, within, pixels=pixels, stacks=conv.out_stacks, matrices=conv.n)
        multiply = product(
            shape,
            taps_as_channels(weight),
            bias,
            pixels=pixels,
            in_stacks=rows,
            out_stacks=conv.out_stacks,
            batch=conv.n,
        )
        views = {"src_stacks": rows, "src_stack0": 0}
        return columns, replace(multiply, reads="columns", ints={**multiply.ints, **views})


def taps_as_channels(weight: Array) -> Array:
    """(K, C, kh, kw) -> (1, K, taps * C padded to fours): tap by tap, as `im2col` writes them."""
    full = padded(weight, 1, 4)
    k = full.shape[0]
    return full.transpose(0, 2, 3, 1).reshape(1, k, -1)
