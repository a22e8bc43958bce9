"""Fold what scales and shifts channels (batch normalisation, constant Mul and Add) into the layer before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.packed import PackedMatrix

from .rewrite import fresh, rebuilt

Vector = npt.NDArray[np.float64]
LAYERS = ("conv", "dense", "affine", "instance_norm")


def fold_affine(graph: Graph, *, bias: bool = True, scale: bool = True) -> Graph:
    """Fold into one of LAYERS that has no other reader and no activation; else it stays.

    `bias`: constants that are added; `scale`: constant factors, and batch normalisation.
    """
    asked = {"add": bias, "mul": scale, "affine": scale}
    work = replace(graph, constants=dict(graph.constants), shapes=dict(graph.shapes))
    counts, writers, nodes = use_counts(graph), producers(graph), list[Node | None](graph.nodes)
    places = {node.output: place for place, node in enumerate(graph.nodes)}
    for place, node in enumerate(graph.nodes):
        last = writers.get(node.inputs[0]) if asked.get(node.op) else None
        if last is None or counts[last.output] != 1:
            continue
        shaped, axis = _behind_reshape(graph, last, node, writers)
        layer = shaped or last
        factors = _scale_and_shift(graph, node, axis)
        if factors is None or not _can_take(layer) or counts[layer.output] != 1:
            continue
        if isinstance(work.constants.get(layer.inputs[1]), PackedMatrix) and np.any(factors[0] != 1):
            continue  # its weights would be packed no more
        merged = _merged(work, layer, node, *factors)
        ends = [merged, replace(last, outputs=node.outputs)] if shaped else [replace(merged, outputs=node.outputs)]
        for old, new in zip((layer, last), ends, strict=False):
            places[new.output] = places[old.output]
            nodes[places[old.output]] = writers[new.output] = new
        nodes[place] = None
    return rebuilt(work, [node for node in nodes if node is not None])


def _behind_reshape(graph: Graph, last: Node, reader: Node, writers: Mapping[str, Node]) -> tuple[Node | None, int]:
    """The layer whose rows or pixels a reshape only counts in another way, and the axis of its channels behind it."""
    layer = writers.get(last.inputs[0]) if last.op == "reshape" else None
    if layer is None or graph.shapes[reader.output] != graph.shapes[last.output]:
        return None, 1
    before, behind = graph.shapes[layer.output], graph.shapes[last.output]
    if before[:2] == behind[:2]:
        return layer, 1
    return (layer, -1) if layer.op == "dense" and before[-1:] == behind[-1:] else (None, 1)


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


def _merged(work: Graph, layer: Node, node: Node, scale: Vector, shift: Vector) -> Node:
    """The layer with scale and shift in its constants, which take the place of those that an earlier fold made."""
    bias = work.constants[layer.inputs[2]].astype(np.float64) if len(layer.inputs) > 2 and layer.inputs[2] else 0.0
    axis_of_channels = {"conv": (-1, 1, 1, 1), "dense": (1, -1)}.get(layer.op, (-1,))
    new: dict[str, Array] = {fresh(work, f"{node.output}.bias"): (bias * scale + shift).astype(np.float32)}
    weight, inputs = layer.inputs[1], (layer.inputs[1], *new)
    if np.any(scale != 1):
        scaled = work.constants[weight].astype(np.float64) * scale.reshape(axis_of_channels)
        new[weight := fresh(work, f"{weight}.folded")] = scaled.astype(np.float32)
        inputs = (weight, *inputs[1:])
    work.constants.update(new)
    work.shapes.update({name: array.shape for name, array in new.items()})
    return replace(layer, inputs=(layer.inputs[0], *inputs))
