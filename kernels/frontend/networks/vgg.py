"""VGG-16 (Simonyan and Zisserman 2015): 3x3 convolutions only."""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Output channels and convolutions of each stage; a pooling ends it."""


def vgg16(seed: int | None, batch: int = 1, *, size: int = 224) -> Graph:
    """`size` x `size`, a multiple of 32; the first dense layer's width follows from it."""
    net = NetworkBuilder("vgg16", seed, (batch, 3, size, size))
    x = net.input
    for stage, (k, count) in enumerate(STAGES, 1):
        for i in range(1, count + 1):
            x = net.relu(net.conv(f"conv{stage}_{i}", x, k, 3, pad=1))
        x = net.max_pool(f"pool{stage}", x, 2)
    x = net.flatten("flat", x)
    for name in ("fc6", "fc7"):
        x = net.relu(net.dense(name, x, 4096))
    return net.finish(net.softmax("prob", net.dense("fc8", x, 1000, gain=1.0)))
