"""Operators that are written out in standard ones: functions, onnxruntime's own, and some rows."""

from __future__ import annotations

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.operators import STANDARD_DOMAINS

from . import choosing
from .nodes import Nodes
from .runtime import DOMAIN, RUNTIME, simplified_norm

STANDARD = {
    "Compress": choosing.compress,
    "SimplifiedLayerNormalization": simplified_norm,
    "Split": choosing.split,
    "Unique": choosing.unique,
}


def is_written(node: OnnxNode, domain: str, to: Context) -> bool:
    """Return whether `write` knows the node. A result that constants decide is computed otherwise."""
    if domain == DOMAIN:
        return node.op in RUNTIME
    if domain not in STANDARD_DOMAINS or all(not name or name in to.constants for name in node.inputs):
        return False
    if node.op == "Split":
        return node.input(1) in to.extents or (node.input(1) in to.shapes and node.input(1) not in to.constants)
    return node.op in STANDARD and not (node.op == "Compress" and node.input(1) in to.constants)


def write(node: OnnxNode, domain: str, to: Context) -> None:
    """Import what the node means. Raises ModelError, and UnsupportedNode for a kind that is not known."""
    for index, name in enumerate(node.inputs):
        if name:
            to.require(node, name, f"input {index}")
    if not any(node.outputs):
        return
    known = RUNTIME if domain == DOMAIN else STANDARD
    known[node.op](Nodes(node, to))
