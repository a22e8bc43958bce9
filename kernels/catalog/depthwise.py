"""Depthwise convolution: one filter a channel."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.errors import OptionError
from kernels.ir.graph import Array
from kernels.options import Limits, Options

from .convolution import Call, Convolution
from .packing import pack_depthwise, padded
from .work_group import in_groups, split_group

_WIDEST = 7
"""Columns of a window whose rows are loaded once for all of them."""


class Depthwise:
    """Four channels at a time, lane by lane; on a CPU behind a GPU interface each row is loaded once."""

    name = "depthwise"
    summary = "one filter a channel: groups = input channels = output channels"

    def why_not(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        return None if conv.is_depthwise else "it does not have one filter a channel"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first: pixels of a work-item, and those in other work-groups."""
        del options
        pixels = _by_device(conv, limits)
        grouped = [in_groups(each, limits, work_items=_work_items(conv, int(each))) for each in pixels]
        return [*pixels, *(words for part in grouped for words in part)]

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (C, 1, kh, kw), bias (C)."""
        words, group = split_group(tile)
        pixels = _pixels(words or _by_device(conv, limits)[0])
        ints = {"dh": conv.dilations[0], "dw": conv.dilations[1], **conv.window}
        rows = limits.cpu_device and options.layout == "buffer" and _fits_rows(conv)
        call = Call(
            kernel="conv_depthwise_rows" if rows else "conv_depthwise",
            tunables={
                "PIXELS": pixels, **({"KW": conv.kernel[1], "SW": conv.strides[1]} if rows else {}), **conv.padding
            },
            weight=pack_depthwise(weight),
            bias=padded(bias, 0, 4),
            ints={name: value for name, value in ints.items() if not (rows and name in ("kw", "sw", "dw"))},
            work_items=(_work_items(conv, pixels), conv.out_stacks, conv.n),
            group=group,
        )  # fmt: skip
        return (call,)


def _by_device(conv: Convolution, limits: Limits) -> tuple[str, ...]:
    if conv.ow == 1:
        return ("1",)
    if limits.cpu_device:
        return ("8", "4", "2", "1")
    return ("4", "1", "2", "8") if limits.unified_memory else ("1", "2", "4", "8")


def _work_items(conv: Convolution, pixels: int) -> int:
    """Along the first axis."""
    return -(-conv.ow // pixels) * conv.oh


def _fits_rows(conv: Convolution) -> bool:
    """Whether a row's values, loaded once, stay few."""
    return conv.kernel[1] <= _WIDEST and conv.strides[1] <= 2 and conv.dilations[1] == 1


def _pixels(tile: str) -> int:
    if not tile.isdigit() or not 1 <= int(tile) <= 64:
        raise OptionError(f"tile {tile!r} is not known; write a number of pixels from 1 to 64")
    return int(tile)
