"""Direct convolution: sums over the window in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernels.errors import OptionError
from kernels.ir.graph import Array
from kernels.options import Limits, Options

from .convolution import Call, Convolution
from .packing import pack_filters, padded, ungroup
from .tiles import Tile, choose_tile, parse_tile, tile_words
from .work_group import in_groups, split_group

_UNGROUPED = 2**30
"""`group_stacks` where every output reads every input."""


class Direct:
    """Granularity g of study S: each work-item computes g output channels of a few adjacent pixels."""

    name = "direct"
    summary = "sums over the window in registers; fits every convolution"

    def why_not(self, conv: Convolution) -> str | None:
        """It fits every convolution."""
        del conv
        return None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        return _tiles(conv, options, limits)

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (K, C / groups, kh, kw), bias (K). Raises OptionError."""
        ints = {**conv.window, "dh": conv.dilations[0], "dw": conv.dilations[1]}
        return (_call("conv_direct", conv, weight, bias, options, limits, ints, {}, tile),)


class Window:
    """Where columns of the window are adjacent pixels, each row is loaded once for the tile's every column."""

    name = "window"
    summary = "direct with every row of the source loaded once: windows 3 wide, stride and dilation 1 along the row"

    def why_not(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        if conv.kernel[1] != 3:
            return f"its window is {conv.kernel[1]} wide, not 3"
        if conv.strides[1] != 1 or conv.dilations[1] != 1:
            return "it has a stride or dilation along the row"
        return None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        return _tiles(conv, options, limits)

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (K, C / groups, kh, 3), bias (K). Raises OptionError."""
        ints = {name: value for name, value in conv.window.items() if name not in ("kw", "sw")}
        ints["dh"] = conv.dilations[0]
        return (_call("conv_window", conv, weight, bias, options, limits, ints, {"KW": 3}, tile),)


def _call(
    kernel: str,
    conv: Convolution,
    weight: Array,
    bias: Array,
    options: Options,
    limits: Limits,
    ints: Mapping[str, int],
    tunables: Mapping[str, int],
    words: str,
) -> Call:
    grouped = conv.has_whole_groups  # others are written as one group
    group_stacks = conv.out_stacks // conv.groups if grouped else _UNGROUPED
    whole = group_stacks if grouped else 0
    tile = choose_tile(options, limits, width=conv.ow, stacks=conv.out_stacks, whole=whole)
    shape, group = split_group(words)
    if shape:
        tile = parse_tile(shape)
        if whole and whole % tile.stacks:
            raise OptionError(f"tile {words!r} straddles two groups of {whole} stacks of channels")
    if conv.groups > 1 and not grouped:
        weight = ungroup(weight, conv.groups, conv.c)
    return Call(
        kernel=kernel,
        tunables={**tile.tunables, **tunables, **conv.padding},
        weight=pack_filters(weight, tile.vectors, tile.lanes),
        bias=padded(bias, 0, 4 * tile.stacks),
        ints={
            "in_stacks": conv.in_stacks // conv.groups if grouped else conv.in_stacks,
            "out_stacks": conv.out_stacks,
            "group_stacks": group_stacks,
            **ints,
        },
        work_items=_work_items(conv, tile),
        group=group,
    )


def _tiles(conv: Convolution, options: Options, limits: Limits) -> list[str]:
    whole = conv.out_stacks // conv.groups if conv.has_whole_groups else 0
    words = tile_words(options, limits, width=conv.ow, stacks=conv.out_stacks, whole=whole)
    return [*words, *in_groups(words[0], limits, work_items=_work_items(conv, parse_tile(words[0]))[0])]


def _work_items(conv: Convolution, tile: Tile) -> tuple[int, int, int]:
    return -(-conv.ow // tile.pixels) * conv.oh, -(-conv.out_stacks // tile.stacks), conv.n
