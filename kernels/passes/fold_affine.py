"""Fold what scales and shifts channels (batch normalisation, constant Mul and Add) into the layer before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array, Graph, Node

from .rewrite import fresh, producers, rebuilt, use_counts

Vector = npt.NDArray[np.float64]
LAYERS = ("conv", "dense", "affine")


def fold_affine(graph: Graph, *, bias: bool = True, scale: bool = True) -> Graph:
    """Fold into a conv, dense or affine node that has no other reader and no activation; else it stays.

    `bias`: constants that are added; `scale`: constant factors, and batch normalisation.
    """
    wanted = {"add": bias, "mul": scale, "affine": scale}
    while (folded := _fold_one(graph, frozenset(op for op, asked in wanted.items() if asked))) is not None:
        graph = folded
    return graph


def _fold_one(graph: Graph, ops: frozenset[str]) -> Graph | None:
    counts, writers = use_counts(graph), producers(graph)
    for node in graph.nodes:
        if node.op not in ops:
            continue
        layer = writers.get(node.inputs[0])
        factors = _scale_and_shift(graph, node)
        if factors is not None and layer is not None and _can_take(layer) and counts[layer.output] == 1:
            return _merge(graph, layer, node, *factors)
    return None


def _can_take(layer: Node) -> bool:
    has_residual = layer.op == "conv" and len(layer.inputs) > 3 and bool(layer.inputs[3])
    return layer.op in LAYERS and not has_residual and layer.attributes.get("activation") is None


def _scale_and_shift(graph: Graph, node: Node) -> tuple[Vector, Vector] | None:
    """Scale and shift per channel of an affine node, or of an add or mul with a constant per channel."""
    if node.op == "affine":
        return graph.constants[node.inputs[1]].astype(np.float64), graph.constants[node.inputs[2]].astype(np.float64)
    if node.op not in ("add", "mul") or node.inputs[1] not in graph.constants or "activation" in node.attributes:
        return None
    vector = _per_channel(graph, node)
    if vector is None:
        return None
    return (vector, np.zeros_like(vector)) if node.op == "mul" else (np.ones_like(vector), vector)


def _per_channel(graph: Graph, node: Node) -> Vector | None:
    """The constant as one number per channel (axis 1), where it is the same over every other axis."""
    shape, constant = graph.shapes[node.output], graph.constants[node.inputs[1]].astype(np.float64)
    if len(shape) < 2:
        return None
    aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if any(extent > 1 for axis, extent in enumerate(aligned.shape) if axis != 1):
        return None
    return np.broadcast_to(aligned.reshape(-1), (shape[1],)).copy()


def _merge(graph: Graph, layer: Node, node: Node, scale: Vector, shift: Vector) -> Graph:
    weight = graph.constants[layer.inputs[1]].astype(np.float64)
    bias = graph.constants[layer.inputs[2]].astype(np.float64) if len(layer.inputs) > 2 and layer.inputs[2] else 0.0
    axis_of_channels = {"conv": (-1, 1, 1, 1), "dense": (1, -1), "affine": (-1,)}[layer.op]
    new: dict[str, Array] = {
        fresh(graph, f"{layer.inputs[1]}.folded"): (weight * scale.reshape(axis_of_channels)).astype(np.float32),
        fresh(graph, f"{node.output}.bias"): (bias * scale + shift).astype(np.float32),
    }
    merged = replace(layer, inputs=(layer.inputs[0], *new), outputs=node.outputs)
    nodes = [merged if n is layer else n for n in graph.nodes if n is not node]
    return rebuilt(graph, nodes, constants=new)
