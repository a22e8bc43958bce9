"""The common part of direct and window: outputs in registers, output channels in groups of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import pack_filters, padded, ungroup
from kernels.catalog.work_group import in_groups, split_group
from kernels.errors import OptionError
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel

from .output_tile import OutputTile, choose_tile, parse_tile, tile_words
from .sizes import Convolution

GROUPS = ("group_outputs", "group_inputs", "last_in_first")
"""Scalars that tell which stacks of inputs a tile of outputs reads."""
_UNGROUPED = 2**30
"""Outputs of a group, where every output reads every input."""


def register_tiles(conv: Convolution, options: Options, limits: Limits) -> list[str]:
    """Tiles worth trying, the default first, and the default in other work-groups."""
    words = tile_words(options, limits, width=conv.ow, stacks=conv.out_stacks, whole=_whole(conv))
    return [*words, *in_groups(words[0], limits, work_items=_work_items(conv, parse_tile(words[0]))[0])]


def register_tile(conv: Convolution, options: Options, limits: Limits, words: str) -> tuple[OutputTile, int]:
    """A tile and its work-group; of no words the default. Raises OptionError."""
    shape, group = split_group(words)
    whole = _whole(conv)
    if not shape:
        return choose_tile(options, limits, width=conv.ow, stacks=conv.out_stacks, whole=whole), group
    tile = parse_tile(shape)
    if whole and whole % tile.stacks:
        raise OptionError(f"tile {words!r} straddles two groups of {whole} stacks of channels")
    return tile, group


def register_call(
    kernel: Kernel, conv: Convolution, constants: Constants, tile: OutputTile, group: int, ints: Mapping[str, int]
) -> Call:
    """The dispatch; constants: weight (K, C / groups, kh, kw), bias (K)."""
    weight, read = constants["weight"], _Read.by(conv, tile)
    if conv.groups > 1:
        first = np.repeat(read.first, 4 * tile.stacks)[: conv.k]
        weight = ungroup(weight, conv.groups, 4 * read.stacks, 4 * first)
    return Call(
        kernel,
        _work_items(conv, tile),
        tile,
        conv.padding,
        {
            "in_stacks": read.stacks,
            "out_stacks": conv.out_stacks,
            "group_outputs": read.outputs,
            "group_inputs": conv.c // conv.groups,
            "last_in_first": conv.in_stacks - read.stacks,
            **ints,
        },
        group,
        weight=pack_filters(weight, tile.vectors, tile.lanes),
        bias=padded(constants["bias"], 0, 4 * tile.stacks),
    )


@dataclass(frozen=True)
class _Read:
    """The stacks of inputs that tiles of outputs read: those of their groups, which need not be whole stacks."""

    stacks: int
    """The most that a tile needs: each reads so many."""
    first: npt.NDArray[np.int64]
    """The first one of each tile."""
    outputs: int
    """Outputs of a group."""

    @classmethod
    def by(cls, conv: Convolution, tile: OutputTile) -> _Read:
        """Return what tiles of this size read."""
        inputs, outputs = conv.c // conv.groups, conv.k // conv.groups if conv.groups > 1 else _UNGROUPED
        begin = np.arange(0, conv.k, 4 * tile.stacks)
        end = np.minimum(begin + 4 * tile.stacks, conv.k)
        first = begin // outputs * inputs // 4
        stacks = int((-(-((end - 1) // outputs + 1) * inputs // 4) - first).max())
        return cls(stacks, np.minimum(first, conv.in_stacks - stacks), outputs)


def _whole(conv: Convolution) -> int:
    """Stacks of a group, which no tile may straddle; 0 where there is one group, or groups are no whole stacks."""
    return conv.out_stacks // conv.groups if conv.has_whole_groups else 0


def _work_items(conv: Convolution, tile: OutputTile) -> tuple[int, int, int]:
    return -(-conv.ow // tile.pixels) * conv.oh, -(-conv.out_stacks // tile.stacks), conv.n
