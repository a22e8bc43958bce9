"""Convolution as a matrix product whose left operand is written down first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernels.catalog.convolution.group_tile import StackProduct, group_tile, group_tile_words
from kernels.catalog.convolution.kernel_parts import DILATION, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.convolution.stack_product import KERNEL as PRODUCT
from kernels.catalog.convolution.stack_product import stack_product
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import padded
from kernels.ir.graph import Array
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result, view

KERNEL = Kernel(
    "im2col",
    Path(__file__).with_name("kernel.c"),
    (Buffer("src"), result("dst")),
    (*view("src"), "in_stacks", *WINDOW, *DILATION),
    computes_in_half=True,
)


class Im2col:
    """The taps of the window side by side in a buffer, then one matrix product (study C)."""

    name = "im2col"
    summary = "the window's taps written side by side, then a matrix product; one group"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        return f"it has {conv.groups} groups" if conv.groups != 1 else None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        return group_tile_words(options, limits.within(PRODUCT.name), _sizes(conv))

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatches for one convolution; weight (K, C, kh, kw), bias (K). Raises OptionError."""
        pixels, taps = conv.oh * conv.ow, conv.kernel[0] * conv.kernel[1]
        rows = taps * conv.in_stacks
        columns = Call(
            KERNEL,
            (pixels, rows, conv.n),
            switches=conv.padding,
            ints={"in_stacks": conv.in_stacks, **conv.window, **conv.dilation},
            writes="columns",
            scratch_elements=4 * pixels * rows * conv.n,
            is_last=False,
        )
        shape = group_tile(tile, options, limits.within(PRODUCT.name), _sizes(conv))
        multiply = stack_product(
            shape,
            taps_as_channels(constants["weight"]),
            constants["bias"],
            pixels=pixels,
            in_stacks=rows,
            out_stacks=conv.out_stacks,
            batch=conv.n,
        )
        views = {"src_stacks": rows, "src_stack0": 0}
        return columns, replace(multiply, reads="columns", ints={**multiply.ints, **views})


def _sizes(conv: Convolution) -> StackProduct:
    depth = conv.kernel[0] * conv.kernel[1] * conv.in_stacks
    return StackProduct(conv.oh * conv.ow, conv.out_stacks, depth, conv.n)


def taps_as_channels(weight: Array) -> Array:
    """(K, C, kh, kw) -> (1, K, taps * C padded to fours): tap by tap, as `im2col` writes them."""
    full = padded(weight, 1, 4)
    k = full.shape[0]
    return full.transpose(0, 2, 3, 1).reshape(1, k, -1)
