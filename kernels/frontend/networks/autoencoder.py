"""The encoder of a stacked autoencoder (study A)."""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

LAYERS = (500, 250, 10)


def autoencoder_784(seed: int | None, batch: int = 1, *, hidden: tuple[int, ...] = LAYERS) -> Graph:
    """784-500-250-10, sigmoid: the forward pass. `hidden`: other layers."""
    net = NetworkBuilder("autoencoder_784", seed, (batch, 784))
    x = net.input
    for i, m in enumerate(hidden, 1):
        x = net.sigmoid(net.dense(f"encode{i}", x, m, gain=1.0))
    return net.finish(x)
