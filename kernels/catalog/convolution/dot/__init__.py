"""Study S's kernel: a work-item computes g numbers of one pixel, each from four input channels at a time.

Its g channels lie K / g apart, so that every work-item of a stack has the same place in its own four: the result is
written in the order in which the next layer reads it, whatever g is (the study's zero-overhead vectorisation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, VIEWS, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import pack_depthwise, padded, ungroup
from kernels.errors import OptionError
from kernels.options import MAX_GRANULARITY, MAX_PIXELS, Limits, Options
from kernels.source.kernel import Buffer, Kernel, result
from kernels.source.tile import Tile, derived

DEFAULT_OUTPUTS = 1


@dataclass(frozen=True)
class DotTile(Tile):
    """The numbers of one work-item: channels of adjacent pixels."""

    outputs: int
    pixels: int

    sums = derived(lambda tile: tile.outputs * tile.pixels)


KERNEL = Kernel(
    "conv_dot",
    Path(__file__).with_name("kernel.c"),
    (Buffer("src"), Buffer("weight"), Buffer("bias", 1), Buffer("residual", 1), result("dst", 1)),
    (*VIEWS, "in_stacks", "channels", "lanes", "apart", *WINDOW, *DILATION, *ENDING),
    BOUNDS,
    DotTile,
)


@dataclass(frozen=True)
class Dot:
    """Outputs of a work-item as the study allows them, or any; the tile is `6`, or with pixels `6x2`."""

    name: str
    summary: str
    uneven: bool = False
    """True if the last work-items may compute channels that the layer lacks."""

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does. Raises OptionError for a tile that is none."""
        outputs = _tile(options, tile).outputs
        if conv.is_depthwise:
            return "it has one filter a channel"
        if not self.uneven and conv.k % (4 * outputs):  # K / g is to be a multiple of four
            return f"{conv.k} channels over a granularity of {outputs} are no multiple of four"
        return None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """None: it is there to be compared with, and no search need try it."""
        return []

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (K, C / groups, kh, kw), bias (K). Raises OptionError."""
        shape = _tile(options, tile)
        lanes = 4 * conv.out_stacks
        apart = -(-lanes // shape.outputs)
        weight = constants["weight"]
        if conv.groups > 1:  # written as one group
            weight = ungroup(weight, conv.groups, conv.c)
        k, _, kh, kw = weight.shape
        filters = pack_depthwise(padded(weight, 1, 4).reshape(-1, 1, kh, kw))  # [K][C / 4] are its channels
        call = Call(
            KERNEL,
            (-(-conv.ow // shape.pixels) * conv.oh, apart, conv.n),
            shape,
            conv.padding,
            {
                "in_stacks": conv.in_stacks,
                "channels": conv.k,
                "lanes": lanes,
                "apart": apart,
                **conv.window,
                **conv.dilation,
            },
            weight=padded(filters.reshape(k, conv.in_stacks, kh, kw, 4), 0, apart * shape.outputs),
            bias=padded(constants["bias"], 0, apart * shape.outputs),
        )
        return (call,)


def _tile(options: Options, words: str) -> DotTile:
    if not words:
        return DotTile(options.granularity or DEFAULT_OUTPUTS, options.pixels or 1)
    try:
        outputs, pixels = map(int, words.split("x") if "x" in words else (words, "1"))
    except ValueError as e:
        raise OptionError(f"tile {words!r} is not known; write outputs, or outputs x pixels, e.g. 6 or 6x2") from e
    if not (1 <= outputs <= MAX_GRANULARITY and 1 <= pixels <= MAX_PIXELS):
        raise OptionError(f"tile {words!r}: outputs are 1 to {MAX_GRANULARITY}, pixels 1 to {MAX_PIXELS}")
    return DotTile(outputs, pixels)
