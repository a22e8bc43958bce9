"""Parameters that kernels of products share: a (rows, depth4) times b (depth, columns4), in vectors of four columns."""

from __future__ import annotations

from typing import Literal

from kernels.source.kernel import Buffer, result

BATCHED = (
    "depth", "columns4", "a_start", "a_stride", "a_batch", "b_stride", "b_batch", "dst_start", "dst_stride",
    "dst_batch", "has_bias", "activation",
)  # fmt: skip
BOUNDS = ("lo", "hi")
"""The activation's bounds."""


def operands(lanes: Literal[1, 4]) -> tuple[Buffer, ...]:
    """Both operands, bias and result."""
    return Buffer("a", lanes), Buffer("b", lanes), Buffer("bias", lanes), result("dst", lanes)
