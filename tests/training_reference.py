"""A training in NumPy, in double precision: the same stages and order of samples, no kernel's way of computing.

Convolution and pooling go tap by tap over a padded image. A gradient is (node, inputs, output, gradient of the output)
-> gradients of the inputs, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.ir.graph import Graph, Node
from kernels.reference import OPERATIONS
from kernels.reference.operations import AnyArray
from kernels.training import TrainingOptions
from kernels.training.shuffle import order_of
from kernels.training.stages import TIED, TrainingStage, stages_of

Gradient = Callable[[Node, Sequence[Any], AnyArray, AnyArray], list[AnyArray]]
Taps = Iterator[tuple[int, int, tuple[Any, ...]]]


def _before_activation(activation: tuple[Any, ...] | None, output: AnyArray, behind: AnyArray) -> AnyArray:
    """The gradient before an activation, from its result."""
    if not activation:
        return behind
    if activation[0] == "relu":
        return behind * (output > 0)
    if activation[0] == "sigmoid":
        return behind * output * (1 - output)
    if activation[0] == "tanh":
        return behind * (1 - output * output)
    raise ValueError(f"no gradient of activation {activation[0]!r}")


def _cross_entropy(logits: AnyArray, labels: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Loss of each row, whether its answer is wrong, and the gradient of the rows' mean."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[rows, labels]
    gradient = probabilities.copy()
    gradient[rows, labels] -= 1
    return losses, logits.argmax(axis=1) != labels, gradient / len(labels)


def _squared_error(output: AnyArray, target: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Loss of each sample (half the sum of its squared differences), and the gradient of the samples' mean."""
    difference = output - target
    return 0.5 * (difference * difference).reshape(len(output), -1).sum(axis=1), difference / len(output)


def _dense(node: Node, inputs: Sequence[Any], output: AnyArray, behind: AnyArray) -> list[AnyArray]:
    x, weight = inputs[:2]
    before = _before_activation(node.attributes.get("activation"), output, behind)
    return [before @ weight.T, x.T @ before, before.sum(axis=0)]


def _conv(node: Node, inputs: Sequence[Any], output: AnyArray, behind: AnyArray) -> list[AnyArray]:
    x, weight = inputs[:2]
    a = node.attributes
    before = _before_activation(a.get("activation"), output, behind)
    top, left, bottom, right = a["pads"]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    back, turned = np.zeros_like(padded), np.zeros_like(weight)
    for ky, kx, here in _taps(weight.shape[2:], a["strides"], a["dilations"], before.shape[2:]):
        turned[:, :, ky, kx] = np.einsum("nkyx,ncyx->kc", before, padded[here])
        back[here] += np.einsum("nkyx,kc->ncyx", before, weight[:, :, ky, kx])
    inside = back[:, :, top : top + x.shape[2], left : left + x.shape[3]]
    return [inside, turned, before.sum(axis=(0, 2, 3))]


def _pool(node: Node, inputs: Sequence[Any], output: AnyArray, behind: AnyArray) -> list[AnyArray]:
    """The first of the largest takes all; a mean is shared out among what is inside."""
    x, a = inputs[0], node.attributes
    is_max, (top, left, *_) = node.op == "max_pool", a["pads"]
    needed = [
        (behind.shape[2 + i] - 1) * a["strides"][i] + a["kernel"][i] - a["pads"][i] - x.shape[2 + i] for i in (0, 1)
    ]
    widths = ((0, 0), (0, 0), (top, max(0, needed[0])), (left, max(0, needed[1])))
    padded = np.pad(x, widths, constant_values=-np.inf)
    back, open_windows = np.zeros_like(padded), np.ones(behind.shape, bool)
    counts = sum(np.isfinite(padded[here]).astype(x.dtype) for *_, here in _pool_taps(a, behind))
    for _, _, here in _pool_taps(a, behind):
        if is_max:
            wins = open_windows & (padded[here] == output)
            open_windows &= ~wins
            back[here] += behind * wins
        else:
            back[here] += np.isfinite(padded[here]) * behind / counts
    return [back[:, :, top : top + x.shape[2], left : left + x.shape[3]]]


def _activation(node: Node, inputs: Sequence[Any], output: AnyArray, behind: AnyArray) -> list[AnyArray]:
    del inputs
    return [_before_activation((node.op,), output, behind)]


def _map(node: Node, inputs: Sequence[Any], output: AnyArray, behind: AnyArray) -> list[AnyArray]:
    """Return the gradient of an expression that is one function of the node's input."""
    del inputs
    return [_before_activation(node.attributes["expression"], output, behind)]


def _reshape(node: Node, inputs: Sequence[Any], output: AnyArray, behind: AnyArray) -> list[AnyArray]:
    del node, output
    return [behind.reshape(inputs[0].shape)]


def _pool_taps(attributes: Any, behind: AnyArray) -> Taps:
    return _taps(attributes["kernel"], attributes["strides"], (1, 1), behind.shape[2:])


def _taps(kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], windows: Sequence[int]) -> Taps:
    """Each place of a window, with what all windows see there."""
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            y, x = ky * dilations[0], kx * dilations[1]
            rows = slice(y, y + strides[0] * (windows[0] - 1) + 1, strides[0])
            columns = slice(x, x + strides[1] * (windows[1] - 1) + 1, strides[1])
            yield ky, kx, (slice(None), slice(None), rows, columns)


_GRADIENTS: dict[str, Gradient] = {
    "dense": _dense,
    "conv": _conv,
    "relu": _activation,
    "sigmoid": _activation,
    "map": _map,
    "max_pool": _pool,
    "average_pool": _pool,
    "reshape": _reshape,
}

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
        losses, gradient = _squared_error(output, values[stage.target])
    else:
        assert labels is not None
        losses, wrong, gradient = _cross_entropy(output, labels.astype(np.int64))
    found: Weights = {stage.output: gradient}
    for node in reversed(graph.nodes):
        if node.output not in found:
            continue
        operands = _operands(node, values, weights)
        for name, one in zip(
            node.inputs, _GRADIENTS[node.op](node, operands, values[node.output], found[node.output]), strict=False
        ):
            own = one.T if TIED in node.attributes and name == node.inputs[1] else one
            found[name] = found[name] + own if name in found else own
    return losses, wrong, found


def _operands(node: Node, values: Mapping[str, AnyArray], weights: Mapping[str, AnyArray]) -> list[AnyArray]:
    operands = [values[name] if name in values else weights[name] for name in node.inputs]
    if TIED in node.attributes:
        operands[1] = operands[1].T
    return operands
