"""Direct convolution with rows that are loaded once: columns of the window are adjacent pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.convolution.direct import Direct
from kernels.catalog.convolution.kernel_parts import WINDOW, layer_kernel
from kernels.catalog.convolution.output_tile import OutputTile
from kernels.catalog.convolution.register_tiles import GROUPS, register_call, register_tile
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.family import Calls, Constants
from kernels.options import Limits, Options
from kernels.source.tile import derived


@dataclass(frozen=True)
class WindowTile(OutputTile):
    """Outputs of a work-item, and the columns of the window."""

    kw: int = 3

    columns = derived(lambda tile: tile.pixels - 1 + tile.kw)
    """Columns of the source that all of its pixels read."""


_INTS = tuple(name for name in WINDOW if name not in ("kw", "sw"))
KERNEL = layer_kernel(
    "conv_window", Path(__file__).with_name("kernel.c"), ("in_stacks", "out_stacks", *GROUPS, *_INTS, "dh"), WindowTile
)


class Window(Direct):
    """Load each row once for every column of the tile, where columns of the window are adjacent pixels."""

    name = "window"
    summary = "direct with every row of the source loaded once: windows 3 wide, stride and dilation 1 along the row"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        if conv.kernel[1] != 3:
            return f"its window is {conv.kernel[1]} wide, not 3"
        if conv.strides[1] != 1 or conv.dilations[1] != 1:
            return "it has a stride or dilation along the row"
        return None

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (K, C / groups, kh, 3), bias (K). Raises OptionError."""
        shape, group = register_tile(conv, options, limits, tile)
        whole = WindowTile(shape.pixels, shape.vectors, shape.lanes)
        ints = {name: conv.window[name] for name in _INTS}
        return (register_call(KERNEL, conv, constants, whole, group, {**ints, "dh": conv.dilations[0]}),)
