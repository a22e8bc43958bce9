"""The stacked autoencoder of study A: its encoder, and the classifier that it becomes."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

LAYERS = (500, 250, 10)


def autoencoder_784(seed: int | None, batch: int = 1, *, hidden: tuple[int, ...] = LAYERS) -> Graph:
    """784-500-250-10, sigmoid: the forward pass. `hidden`: other layers."""
    net = NetworkBuilder("autoencoder_784", seed, (batch, 784))
    return net.finish(_encoder(net, hidden))


def classifier_784(
    seed: int | None, batch: int = 1, *, hidden: tuple[int, ...] = LAYERS[:-1], inputs: int = 784, classes: int = 10
) -> Graph:
    """784-500-250-10 whose 10 are the output layer of ten classes: what study A trains, 520260 weights by its formula.
    `hidden`: other layers before it. `inputs`: 64 for 8 x 8 pixels."""
    net = NetworkBuilder("classifier_784" if inputs == 784 else "classifier", seed, (batch, inputs))
    return net.finish(net.softmax("prob", net.dense("classify", _encoder(net, hidden), classes, gain=1.0)))


def _encoder(net: NetworkBuilder, layers: Sequence[int]) -> str:
    x = net.input
    for i, m in enumerate(layers, 1):
        x = net.sigmoid(net.dense(f"encode{i}", x, m, gain=1.0))
    return x
