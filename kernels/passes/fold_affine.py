"""Fold what scales and shifts channels (batch normalisation, constant Mul and Add) into the layer before it."""

from __future__ import annotations

from collections.abc import Mapping
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
        layer, axis = writers.get(node.inputs[0]), 1
        if layer is not None and counts[layer.output] == 1 and (shaped := _shaped_rows(graph, layer, node, writers)):
            layer, axis = shaped, -1
        factors = _scale_and_shift(graph, node, axis)
        if factors is not None and layer is not None and _can_take(layer) and counts[layer.output] == 1:
            return _merge(graph, layer, node, *factors)
    return None


def _shaped_rows(graph: Graph, shaped: Node, reader: Node, writers: Mapping[str, Node]) -> Node | None:
    """The dense layer whose rows a reshape only counts in another way, as imported products of any rank have it."""
    layer = writers.get(shaped.inputs[0]) if shaped.op == "reshape" else None
    if layer is None or layer.op != "dense" or graph.shapes[reader.output] != graph.shapes[shaped.output]:
        return None
    return layer if graph.shapes[shaped.output][-1:] == graph.shapes[layer.output][-1:] else None


def _can_take(layer: Node) -> bool:
    has_residual = layer.op == "conv" and len(layer.inputs) > 3 and bool(layer.inputs[3])
    return layer.op in LAYERS and not has_residual and layer.attributes.get("activation") is None


def _scale_and_shift(graph: Graph, node: Node, axis: int) -> tuple[Vector, Vector] | None:
    """Scale and shift per channel of an affine node, or of an add or mul with a constant per channel."""
    if node.op == "affine":
        if axis != 1:
            return None
        return graph.constants[node.inputs[1]].astype(np.float64), graph.constants[node.inputs[2]].astype(np.float64)
    if node.op not in ("add", "mul") or node.inputs[1] not in graph.constants or "activation" in node.attributes:
        return None
    vector = _per_channel(graph, node, axis)
    if vector is None:
        return None
    return (vector, np.zeros_like(vector)) if node.op == "mul" else (np.ones_like(vector), vector)


def _per_channel(graph: Graph, node: Node, channels: int) -> Vector | None:
    """The constant as one number per channel, along this axis, where it is the same over every other axis."""
    shape, constant = graph.shapes[node.output], graph.constants[node.inputs[1]].astype(np.float64)
    if len(shape) < 2:
        return None
    aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if any(extent > 1 for axis, extent in enumerate(aligned.shape) if axis != channels % len(shape)):
        return None
    return np.broadcast_to(aligned.reshape(-1), (shape[channels],)).copy()


def _merge(graph: Graph, layer: Node, node: Node, scale: Vector, shift: Vector) -> Graph:
    weight = graph.constants[layer.inputs[1]].astype(np.float64)
    bias = graph.constants[layer.inputs[2]].astype(np.float64) if len(layer.inputs) > 2 and layer.inputs[2] else 0.0
    axis_of_channels = {"conv": (-1, 1, 1, 1), "dense": (1, -1), "affine": (-1,)}[layer.op]
    new: dict[str, Array] = {
        fresh(graph, f"{layer.inputs[1]}.folded"): (weight * scale.reshape(axis_of_channels)).astype(np.float32),
        fresh(graph, f"{node.output}.bias"): (bias * scale + shift).astype(np.float32),
    }
    between = next((n for n in graph.nodes if n.output == node.inputs[0] and n is not layer), None)
    merged = replace(layer, inputs=(layer.inputs[0], *new), outputs=layer.outputs if between else node.outputs)
    others = {id(layer): merged, id(between): between and replace(between, outputs=node.outputs)}
    nodes = [others.get(id(n)) or n for n in graph.nodes if n is not node]
    return rebuilt(graph, nodes, constants=new)
