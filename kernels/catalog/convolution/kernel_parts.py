"""Parameters that the kernels of convolutions share."""

from __future__ import annotations

from kernels.source.kernel import Buffer, LocalArray, result, view

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
