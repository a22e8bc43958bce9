"""The stages of a training as graphs: each layer as an autoencoder of its own, then the whole network."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernels.errors import OptionError
from kernels.ir.graph import Graph, Node
from kernels.passes.functions.fuse_activations import fuse_activations
from kernels.passes.rewrite import prune

from .options import Loss, TrainingOptions

TIED = "tied"
"""Attribute of a dense node whose weight is another's, transposed. Only stages of training have it."""


@dataclass(frozen=True)
class TrainingStage:
    """A graph with what is asked of it."""

    name: str
    graph: Graph
    """Activations are fused; a softmax at the end has gone into the loss."""
    output: str
    target: str
    """The tensor that the output is to equal; empty: the labels' classes."""
    loss: Loss
    epochs: int
    trained: frozenset[str]
    """Constants of the graph that change."""


def stages_of(graph: Graph, training: TrainingOptions) -> list[TrainingStage]:
    """Pretraining layer by layer, if it is asked for, and all layers together. Raises OptionError."""
    fused = fuse_activations(prune(graph))
    found: list[TrainingStage] = []
    if training.pretrain_epochs:
        found = [_autoencoder(fused, index, training) for index in _encoders(fused)]
    return [*found, _whole(fused, training)]


def _encoders(graph: Graph) -> list[int]:
    """Nodes that are dense layers with a sigmoid, from the input on."""
    found = []
    for index, node in enumerate(graph.nodes):
        if node.op != "dense" or node.attributes.get("activation") != ("sigmoid",):
            break
        found.append(index)
    if not found:
        raise OptionError(
            f"{graph.name}: pretraining needs dense layers with a sigmoid at its beginning, and it has none"
        )
    return found


def _autoencoder(graph: Graph, index: int, training: TrainingOptions) -> TrainingStage:
    layer = graph.nodes[index]
    source, weight = layer.inputs[0], layer.inputs[1]
    batch, size = graph.shapes[source]
    bias, output = f"{layer.name}.visible", f"{layer.name}.decoded"
    attributes = {"activation": ("sigmoid",), TIED: 1}
    nodes = [*graph.nodes[: index + 1], Node(output, "dense", (layer.output, weight, bias), (output,), attributes)]
    shapes = {**graph.shapes, bias: (size,), output: (batch, size)}
    constants = {**graph.constants, bias: np.zeros(size, np.float32)}
    made = replace(graph, nodes=nodes, outputs=(output,), shapes=shapes, constants=constants)
    trained = frozenset({*layer.inputs[1:], bias} - {""})
    return TrainingStage(
        f"pretrain:{layer.name}", made, output, source, "mean_squared_error", training.pretrain_epochs, trained
    )


def _whole(graph: Graph, training: TrainingOptions) -> TrainingStage:
    nodes, (output,) = list(graph.nodes), graph.outputs
    target = graph.inputs[0]
    if training.loss == "cross_entropy":
        if nodes[-1].op != "softmax" or nodes[-1].output != output:
            raise OptionError(f"{graph.name}: cross_entropy needs a softmax at the end; it ends with {nodes[-1].op!r}")
        output, target = nodes.pop().inputs[0], ""
    elif graph.shapes[output] != graph.shapes[target]:
        raise OptionError(
            f"{graph.name}: its output {graph.shapes[output]} cannot equal its input {graph.shapes[target]}"
        )
    made = replace(graph, nodes=nodes, outputs=(output,))
    used = {name for node in nodes for name in node.inputs}
    return TrainingStage(
        "train", made, output, target, training.loss, training.epochs, frozenset(used & set(graph.constants))
    )
