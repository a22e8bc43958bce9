"""Convolution as a matrix product on matrix units, whose left operand is never written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, OPERANDS, VIEWS, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.desktop.units import cost
from kernels.catalog.desktop.units.choice import conflict, unit_tile, unit_tiles, why_no_units
from kernels.catalog.desktop.units.fragments import fragments
from kernels.catalog.desktop.units.tile import EXAMPLE, LOCAL, MEANING, UnitTile
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import padded
from kernels.ir.graph import Array
from kernels.options import Backend, Limits, Options
from kernels.source.kernel import Kernel

KERNEL = Kernel(
    "conv_units",
    Path(__file__).with_name("kernel.c"),
    OPERANDS,
    (*VIEWS, "in_stacks", "out_stacks", "rows", *WINDOW, *DILATION, *ENDING),
    BOUNDS,
    UnitTile,
    (LOCAL,),
    matrix_units=True,
)


class MatrixUnits:
    """Products of halves, added up in single."""

    name = "matrix_units"
    summary = f"matrix product on matrix units, halves multiplied and singles added; tile: {MEANING}, e.g. {EXAMPLE}"

    def why_not(self, conv: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        why = why_no_units(options, limits)
        if why is not None:
            return why
        if conv.groups > 1 and not conv.has_whole_groups:
            return f"its {conv.groups} groups are not whole stacks of four channels"
        within = limits.within(KERNEL.name)
        if tile:
            return conflict(unit_tile(tile, limits, turned=True), within, options.backend)
        fitting = unit_tiles(within, options.backend, turned=True)
        return None if fitting else "no tile fits the device's work-groups and local memory"

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        if self.why_not(conv, options, limits) is not None:
            return []
        fitting = unit_tiles(limits.within(KERNEL.name), options.backend, turned=True)
        directly = cost.pays_direct(_work(conv), limits)
        return [
            tile.words
            for tile in sorted(fitting, key=lambda t: (t.direct != directly, _cost(t, conv, options.backend, limits)))
        ]

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; weight (K, C, kh, kw), bias (K). Raises OptionError."""
        shape = unit_tile(tile or self.tiles(conv, options, limits)[0], limits, turned=True)
        rows, channels = conv.n * conv.oh * conv.ow, 8 * shape.tile_columns8
        in_stacks, out_stacks = (-(-each // conv.groups // 4) for each in (conv.c, conv.k))
        across = -(-out_stacks * 4 // channels)
        call = Call(
            KERNEL,
            (-(-rows // shape.tile_rows) * shape.group, across, conv.groups),
            shape,
            {"AGAIN": 0, "FEW": shape.few_stages(_work(conv).depth), **conv.padding},
            {"in_stacks": in_stacks, "out_stacks": out_stacks, "rows": rows, **conv.window, **conv.dilation},
            shape.group,
            weight=_pack(constants["weight"], conv.groups, shape, options.backend),
            bias=padded(constants["bias"].reshape(conv.groups, -1), 1, channels),
        )
        return (call,)


def _cost(tile: UnitTile, conv: Convolution, backend: Backend, limits: Limits) -> float:
    if tile.direct:
        return cost.direct(tile, _work(conv), limits, cost.CONVOLUTIONS[backend])
    return cost.local(tile, _work(conv), limits)


def _work(conv: Convolution) -> cost.Work:
    kh, kw = conv.kernel
    depth = kh * kw * -(-conv.c // conv.groups // 8) * 8
    return cost.Work(conv.n * conv.oh * conv.ow, conv.k // conv.groups, depth, conv.groups)


def _pack(weight: Array, groups: int, tile: UnitTile, backend: Backend) -> Array:
    """(K, C, kh, kw) -> [groups][K / channels][stages][channels][depth], of a tile, zero-padded; or `fragments` of it.

    The depth is [tap][C to a multiple of 8].
    """
    channels, depth = 8 * tile.tile_columns8, tile.tile_depth
    k, c, kh, kw = weight.shape
    full = padded(padded(weight.reshape(groups, k // groups, c, kh * kw), 1, channels), 2, 8)
    rows = full.transpose(0, 1, 3, 2).reshape(groups, full.shape[1], -1)
    if tile.direct:
        return np.stack([fragments(each.T, tile, backend) for each in rows])
    stages = padded(rows, 2, depth).reshape(groups, -1, channels, -(-rows.shape[2] // depth), depth)
    return np.ascontiguousarray(stages.transpose(0, 1, 3, 2, 4))
