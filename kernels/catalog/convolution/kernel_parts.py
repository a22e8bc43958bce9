"""Parameters that the kernels of convolutions share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import Tile

OPERANDS = (Buffer("src"), Buffer("weight"), Buffer("bias"), Buffer("residual"), result("dst"))
VIEWS = (*view("src"), *view("dst"), *view("residual"))
WINDOW = ("h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "pad_t", "pad_l")
DILATION = ("dh", "dw")
ENDING = ("has_residual", "activation")
BOUNDS = ("lo", "hi")
"""The activation's bounds."""
TILES = (
    LocalArray("tile_src", "LOCAL_SRC", storage="computed"),
    LocalArray("tile_weight", "LOCAL_WEIGHT", storage="computed"),
)
"""Both operands of a `GroupTile`."""


def layer_kernel(
    name: str, body: Path, ints: Sequence[str], tile: type[Tile], arrays: tuple[LocalArray, ...] = ()
) -> Kernel:
    """Return a kernel that computes all of a layer, from stacks to stacks."""
    return Kernel(name, body, OPERANDS, (*VIEWS, *ints, *ENDING), BOUNDS, tile, arrays, computes_in_half=True)
