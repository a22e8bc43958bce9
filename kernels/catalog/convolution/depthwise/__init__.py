"""Depthwise convolution: each channel has filters of its own, one or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, OPERANDS, WINDOW, layer_kernel
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import pack_depthwise, padded
from kernels.catalog.work_group import in_groups, split_group
from kernels.errors import OptionError
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel
from kernels.source.tile import Tile, derived

_WIDEST = 7
"""Columns of a window whose rows are loaded once for all of them."""


@dataclass(frozen=True)
class PixelTile(Tile):
    """Adjacent pixels of a work-item, of one stack of channels."""

    pixels: int

    sums = derived(lambda tile: tile.pixels)


@dataclass(frozen=True)
class RowTile(PixelTile):
    """The same with the columns and the stride of the window, whose rows are loaded once."""

    kw: int
    sw: int

    weights = derived(lambda tile: tile.kw)
    """Vectors of weights of a row."""
    columns = derived(lambda tile: (tile.pixels - 1) * tile.sw + tile.kw)
    """Columns of the source that all of its pixels read."""


KERNEL = layer_kernel("conv_depthwise", Path(__file__).with_name("kernel.c"), (*WINDOW, *DILATION), PixelTile)
ROWS = layer_kernel(
    "conv_depthwise_rows",
    Path(__file__).with_name("rows.c"),
    [name for name in (*WINDOW, *DILATION) if name not in ("kw", "sw", "dw")],
    RowTile,
)
OF_ROWS = Kernel(
    "conv_depthwise_of_rows",
    Path(__file__).with_name("of_rows.c"),
    OPERANDS,
    ("stacks", *WINDOW, *DILATION, *ENDING),
    BOUNDS,
    PixelTile,
    computes_in_half=True,
)


class Depthwise:
    """Four channels at a time, lane by lane; on a CPU behind a GPU interface each row is loaded once."""

    name = "depthwise"
    summary = "filters of its own for each channel: as many groups as input channels"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        return None if conv.own_filters else "its channels do not have filters of their own"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first: pixels of a work-item, and those in other work-groups."""
        pixels = _by_device(conv, limits)
        grouped = [in_groups(each, limits, work_items=_work_items(conv, int(each))) for each in pixels]
        return [*pixels, *(words for part in grouped for words in part)]

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (K, 1, kh, kw), bias (K). Raises OptionError."""
        words, group = split_group(tile)
        pixels = _pixels(words or _by_device(conv, limits)[0])
        rows = limits.cpu_device and _fits_rows(conv)
        kernel, shape = (
            (ROWS, RowTile(pixels, conv.kernel[1], conv.strides[1])) if rows else (KERNEL, PixelTile(pixels))
        )
        ints = {**conv.window, **conv.dilation}
        several = {"FILTERS": conv.own_filters} if conv.own_filters > 1 else {}
        call = Call(
            kernel,
            (_work_items(conv, pixels), conv.out_stacks, conv.n),
            shape,
            conv.padding | several,
            {name: value for name, value in ints.items() if name in kernel.ints},
            group,
            weight=pack_depthwise(constants["weight"]),
            bias=padded(constants["bias"], 0, 4),
        )
        return (call,)


def of_rows(conv: Convolution, constants: Constants, limits: Limits) -> Call:
    """Return the dispatch for an image in rows of channels; constants: weight (C, 1, kh, kw), bias (C)."""
    pixels = int(_by_device(conv, limits)[0])
    return Call(
        OF_ROWS,
        (_work_items(conv, pixels) * conv.out_stacks, 1, conv.n),
        PixelTile(pixels),
        conv.padding,
        {"stacks": conv.out_stacks, **conv.window, **conv.dilation},
        weight=np.ascontiguousarray(pack_depthwise(constants["weight"]).transpose(1, 2, 0, 3)),
        bias=constants["bias"],
    )


def _by_device(conv: Convolution, limits: Limits) -> tuple[str, ...]:
    if conv.ow == 1:
        return ("1",)
    if limits.cpu_device:
        return ("8", "4", "2", "1")
    return ("4", "1", "2", "8") if limits.unified_memory else ("1", "2", "4", "8")


def _work_items(conv: Convolution, pixels: int) -> int:
    """Return the work-items along the first axis."""
    return -(-conv.ow // pixels) * conv.oh


def _fits_rows(conv: Convolution) -> bool:
    """Return whether a row's values, loaded once, stay few."""
    return conv.kernel[1] <= _WIDEST and conv.strides[1] <= 2 and conv.dilations[1] == 1


def _pixels(tile: str) -> int:
    if not tile.isdigit() or not 1 <= int(tile) <= 64:
        raise OptionError(f"tile {tile!r} is not known; write a number of pixels from 1 to 64")
    return int(tile)
