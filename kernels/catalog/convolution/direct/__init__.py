"""Direct convolution: sums over the window in registers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.catalog.convolution.kernel_parts import DILATION, WINDOW, layer_kernel
from kernels.catalog.convolution.output_tile import OutputTile
from kernels.catalog.convolution.register_tiles import GROUPS, register_call, register_tile, register_tiles
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.family import Calls, Constants
from kernels.options import Limits, Options

KERNEL = layer_kernel(
    "conv_direct",
    Path(__file__).with_name("kernel.c"),
    ("in_stacks", "out_stacks", *GROUPS, *WINDOW, *DILATION),
    OutputTile,
)


class Direct:
    """Granularity g of study S: each work-item computes g output channels of a few adjacent pixels."""

    name = "direct"
    summary = "sums over the window in registers; fits every convolution"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        """It fits every convolution."""
        return None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        return register_tiles(conv, options, limits)

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (K, C / groups, kh, kw), bias (K). Raises OptionError."""
        shape, group = register_tile(conv, options, limits, tile)
        return (register_call(KERNEL, conv, constants, shape, group, {**conv.window, **conv.dilation}),)
