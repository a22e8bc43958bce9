"""A training in NumPy, in double precision: the same stages and order of samples, no kernel's way of computing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernels.errors import checkpoint
from kernels.ir.graph import Graph, Node
from kernels.reference import OPERATIONS
from kernels.reference.gradients import GRADIENTS, cross_entropy, squared_error
from kernels.reference.operations import AnyArray

from .options import TrainingOptions
from .shuffle import order_of
from .stages import TIED, TrainingStage, stages_of

Weights = dict[str, AnyArray]


@dataclass(frozen=True)
class Epoch:
    """The results of an epoch."""

    stage: str
    loss: float
    error: float | None


def train_reference(
    graph: Graph, training: TrainingOptions, data: AnyArray, labels: AnyArray | None = None
) -> tuple[list[Epoch], Weights]:
    """Train on the host: every epoch's loss and error, and the weights behind the last."""
    weights: Weights = {}
    epochs: list[Epoch] = []
    inputs = np.asarray(data, np.float64) * training.input_scale
    batch = graph.shapes[graph.inputs[0]][0]
    for stage in stages_of(graph, training):
        for name, array in stage.graph.constants.items():
            weights.setdefault(name, array.astype(np.float64))
        rates, velocities = training.rates(stage.epochs), {name: np.zeros(()) for name in stage.trained}
        for epoch in range(stage.epochs):
            order = order_of(training.samples, training.seed, epoch)
            batches = order[: len(order) // batch * batch].reshape(-1, batch)
            losses, wrong = 0.0, 0
            for rows in batches:
                checkpoint()
                loss, errors, gradients = gradients_of(
                    stage, weights, inputs[rows], None if labels is None else labels[rows]
                )
                losses, wrong = losses + float(loss.sum()), wrong + int(errors.sum())
                for name in stage.trained:
                    velocities[name] = training.momentum * velocities[name] + gradients[name]
                    weights[name] = weights[name] - rates[epoch] * velocities[name]
            error = None if stage.target else wrong / batches.size
            epochs.append(Epoch(stage.name, losses / batches.size, error))
    return epochs, weights


def gradients_of(
    stage: TrainingStage, weights: Mapping[str, AnyArray], inputs: AnyArray, labels: AnyArray | None
) -> tuple[AnyArray, AnyArray, Weights]:
    """Return for one batch the loss of each sample, whether its answer is wrong, and the gradients of their mean."""
    graph = stage.graph
    values: dict[str, AnyArray] = {graph.inputs[0]: inputs}
    for node in graph.nodes:
        values[node.output] = OPERATIONS[node.op](node, _operands(node, values, weights), graph.shapes[node.output])
    output, wrong = values[stage.output], np.zeros(len(inputs), bool)
    if stage.target:
        losses, gradient = squared_error(output, values[stage.target])
    else:
        assert labels is not None
        losses, wrong, gradient = cross_entropy(output, labels.astype(np.int64))
    found: Weights = {stage.output: gradient}
    for node in reversed(graph.nodes):
        if node.output not in found:
            continue
        operands = _operands(node, values, weights)
        for name, one in zip(
            node.inputs, GRADIENTS[node.op](node, operands, values[node.output], found[node.output]), strict=False
        ):
            own = one.T if TIED in node.attributes and name == node.inputs[1] else one
            found[name] = found[name] + own if name in found else own
    return losses, wrong, found


def _operands(node: Node, values: Mapping[str, AnyArray], weights: Mapping[str, AnyArray]) -> list[AnyArray]:
    operands = [values[name] if name in values else weights[name] for name in node.inputs]
    if TIED in node.attributes:
        operands[1] = operands[1].T
    return operands
