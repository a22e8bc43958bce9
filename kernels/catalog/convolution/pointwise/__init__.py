"""1x1 convolution as a register-tiled matrix product over the pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.catalog.convolution.kernel_parts import layer_kernel
from kernels.catalog.convolution.output_tile import OutputTile, choose_tile, parse_tile, tile_words
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import pack_filters, padded
from kernels.catalog.work_group import in_groups, split_group
from kernels.options import Limits, Options

KERNEL = layer_kernel(
    "conv_pointwise",
    Path(__file__).with_name("kernel.c"),
    ("in_stacks", "out_stacks", "hw", "weight_batch"),
    OutputTile,
)


class Pointwise:
    """Convolves without window arithmetic; pixels are one flat axis."""

    name = "pointwise"
    summary = "1x1, stride 1, no padding, one group: a matrix product over the pixels"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        if conv.kernel != (1, 1):
            return f"its window is {conv.kernel[0]}x{conv.kernel[1]}, not 1x1"
        if conv.strides != (1, 1) or any(conv.pads) or conv.groups != 1:
            return "it has strides, padding or groups"
        return None

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        hw = conv.oh * conv.ow
        words = tile_words(options, limits, width=hw, stacks=conv.out_stacks)
        return [*words, *in_groups(words[0], limits, work_items=-(-hw // parse_tile(words[0]).pixels))]

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (K, C, 1, 1), bias (K). Raises OptionError."""
        hw = conv.oh * conv.ow
        words, group = split_group(tile)
        shape = parse_tile(words) if words else choose_tile(options, limits, width=hw, stacks=conv.out_stacks)
        call = Call(
            KERNEL,
            (-(-hw // shape.pixels), -(-conv.out_stacks // shape.stacks), conv.n),
            shape,
            ints={"in_stacks": conv.in_stacks, "out_stacks": conv.out_stacks, "hw": hw, "weight_batch": 0},
            group=group,
            weight=pack_filters(constants["weight"], shape.vectors, shape.lanes),
            bias=padded(constants["bias"], 0, 4 * shape.stacks),
        )
        return (call,)
