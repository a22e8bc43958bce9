"""Depthwise convolution: one filter a channel."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.errors import OptionError
from kernels.graph import Array
from kernels.options import Limits, Options

from .convolution import Call, Convolution
from .packing import pack_depthwise, padded


class Depthwise:
    """Four channels at a time, lane by lane."""

    name = "depthwise"
    summary = "one filter a channel: groups = input channels = output channels"

    def misfit(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        return None if conv.is_depthwise else "it does not have one filter a channel"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        del options
        if conv.ow == 1:
            return ("1",)
        return ("4", "1", "2", "8") if limits.unified_memory or limits.cpu_device else ("1", "2", "4", "8")

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (C, 1, kh, kw), bias (C)."""
        pixels = _pixels(tile or self.tiles(conv, options, limits)[0])
        call = Call(
            kernel="conv_depthwise",
            tunables={"PIXELS": pixels, **conv.padding},
            weight=pack_depthwise(weight),
            bias=padded(bias, 0, 4),
            ints={"dh": conv.dilations[0], "dw": conv.dilations[1], **conv.window},
            work_items=(-(-conv.ow // pixels) * conv.oh, conv.out_stacks, conv.n),
        )
        return (call,)


def _pixels(tile: str) -> int:
    if not tile.isdigit() or not 1 <= int(tile) <= 64:
        raise OptionError(f"tile {tile!r} is not known; write a number of pixels from 1 to 64")
    return int(tile)
