"""Fold what scales and shifts channels (batch normalisation, constant Mul and Add) into the layer before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts

from .rewrite import fresh, rebuilt

Vector = npt.NDArray[np.float64]
LAYERS = ("conv", "dense", "affine")


def fold_affine(graph: Graph, *, bias: bool = True, scale: bool = True) -> Graph:
    """Fold into a conv, dense or affine node that has no other reader and no activation; else it stays.

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
        shaped = _shaped_rows(graph, last, node, writers)
        layer, axis = (shaped, -1) if shaped else (last, 1)
        factors = _scale_and_shift(graph, node, axis)
        if factors is None or not _can_take(layer) or counts[layer.output] != 1:
            continue
        merged = _merged(work, layer, node, *factors)
        ends = [merged, replace(last, outputs=node.outputs)] if shaped else [replace(merged, outputs=node.outputs)]
        for old, new in zip((layer, last), ends, strict=False):
            places[new.output] = places[old.output]
            nodes[places[old.output]] = writers[new.output] = new
        nodes[place] = None
    return rebuilt(work, [node for node in nodes if node is not None])


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


def _merged(work: Graph, layer: Node, node: Node, scale: Vector, shift: Vector) -> Node:
    """The layer with scale and shift in its constants, which take the place of those that an earlier fold made."""
    weight = work.constants[layer.inputs[1]].astype(np.float64)
    bias = work.constants[layer.inputs[2]].astype(np.float64) if len(layer.inputs) > 2 and layer.inputs[2] else 0.0
    axis_of_channels = {"conv": (-1, 1, 1, 1), "dense": (1, -1), "affine": (-1,)}[layer.op]
    new: dict[str, Array] = {
        fresh(work, f"{layer.inputs[1]}.folded"): (weight * scale.reshape(axis_of_channels)).astype(np.float32),
        fresh(work, f"{node.output}.bias"): (bias * scale + shift).astype(np.float32),
    }
    work.constants.update(new)
    work.shapes.update({name: array.shape for name, array in new.items()})
    return replace(layer, inputs=(layer.inputs[0], *new))
