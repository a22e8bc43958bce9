"""GoogLeNet (Szegedy et al. 2015) as it comes with Caffe: normalisation of local response, no side classifiers."""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""Channels: 1x1, reduction before 3x3, 3x3, reduction before 5x5, 5x5, projection of the pooling."""
POOLED_BEFORE = {"4a": "pool3", "5a": "pool4"}


def googlenet(seed: int | None, batch: int = 1, *, size: int = 224) -> Graph:
    """`size` x `size`; the last pooling is over the whole image."""
    net = NetworkBuilder("googlenet", seed, (batch, 3, size, size))
    x = net.max_pool("pool1", net.relu(net.conv("conv1", net.input, 64, 7, stride=2, pad=3)), ceil=True)
    x = net.relu(net.conv("conv2_reduce", net.lrn("norm1", x), 64, 1))
    x = net.lrn("norm2", net.relu(net.conv("conv2", x, 192, 3, pad=1)))
    x = net.max_pool("pool2", x, ceil=True)
    for module, channels in MODULES.items():
        if module in POOLED_BEFORE:
            x = net.max_pool(POOLED_BEFORE[module], x, ceil=True)
        x = _inception(net, f"inception_{module}", x, channels)
    features = net.flatten("features", net.global_average_pool("pool5", x))
    return net.finish(net.softmax("prob", net.dense("logits", features, 1000, gain=1.0)))


def _inception(net: NetworkBuilder, name: str, x: str, channels: tuple[int, int, int, int, int, int]) -> str:
    one, before_three, three, before_five, five, projection = channels
    narrow = net.relu(net.conv(f"{name}_3x3_reduce", x, before_three, 1))
    narrower = net.relu(net.conv(f"{name}_5x5_reduce", x, before_five, 1))
    pooled = net.max_pool(f"{name}_pool", x, stride=1, pad=1)
    parts = (
        net.conv(f"{name}_1x1", x, one, 1),
        net.conv(f"{name}_3x3", narrow, three, 3, pad=1),
        net.conv(f"{name}_5x5", narrower, five, 5, pad=2),
        net.conv(f"{name}_pool_project", pooled, projection, 1),
    )
    return net.concat(f"{name}_concat", [net.relu(part) for part in parts])
