"""1x1 convolution as a register-tiled matrix product over the pixels."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.ir.graph import Array
from kernels.options import Limits, Options

from .convolution import Call, Convolution
from .packing import pack_filters, padded
from .tiles import choose_tile, parse_tile, tile_words
from .work_group import in_groups, split_group


class Pointwise:
    """Without window arithmetic; pixels are one flat axis."""

    name = "pointwise"
    summary = "1x1, stride 1, no padding, one group: a matrix product over the pixels"

    def why_not(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        if conv.kernel != (1, 1):
            return f"its window is {conv.kernel[0]}x{conv.kernel[1]}, not 1x1"
        if conv.strides != (1, 1) or any(conv.pads) or conv.groups != 1:
            return "it has strides, padding or groups"
        return None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        hw = conv.oh * conv.ow
        words = tile_words(options, limits, width=hw, stacks=conv.out_stacks)
        return [*words, *in_groups(words[0], limits, work_items=-(-hw // parse_tile(words[0]).pixels))]

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch for one convolution; weight (K, C, 1, 1), bias (K). Raises OptionError."""
        hw = conv.oh * conv.ow
        words, group = split_group(tile)
        shape = parse_tile(words) if words else choose_tile(options, limits, width=hw, stacks=conv.out_stacks)
        call = Call(
            kernel="conv_pointwise",
            tunables=shape.tunables,
            weight=pack_filters(weight, shape.vectors, shape.lanes),
            bias=padded(bias, 0, 4 * shape.stacks),
            ints={"in_stacks": conv.in_stacks, "out_stacks": conv.out_stacks, "hw": hw, "weight_batch": 0},
            work_items=(-(-hw // shape.pixels), -(-conv.out_stacks // shape.stacks), conv.n),
            group=group,
        )
        return (call,)
