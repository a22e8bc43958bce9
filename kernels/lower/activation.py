"""A node's fused activation as the three scalars that kernels and CPU operations take."""

from __future__ import annotations

from typing import Any

from kernels.ir.graph import Node

FLOAT_MAX = 3.4028234663852886e38


def activation_scalars(node: Node) -> tuple[int, float, float]:
    """(code, lo, hi) of a node: fused in its attribute, or the node itself is one. A slope is given as lo."""
    if node.op == "clip":
        return _scalars(("clip", node.attributes["min"], node.attributes["max"]))
    if node.op == "leaky_relu":
        return _scalars(("leaky_relu", node.attributes["slope"]))
    if node.op in ("relu", "sigmoid"):
        return _scalars((node.op,))
    return _scalars(tuple(node.attributes.get("activation") or ()))


def _scalars(activation: tuple[Any, ...]) -> tuple[int, float, float]:
    if not activation:
        return 0, 0.0, 0.0
    if activation[0] == "clip":
        lo, hi = (max(-FLOAT_MAX, min(FLOAT_MAX, float(x))) for x in activation[1:3])
        return (1, 0.0, 0.0) if lo == 0.0 and hi == FLOAT_MAX else (2, lo, hi)
    if activation[0] == "leaky_relu":
        return 4, float(activation[1]), 0.0
    return {"relu": 1, "sigmoid": 3}[activation[0]], 0.0, 0.0
