"""MobileNet v1 (Howard et al. 2017) and v2 (Sandler et al. 2018): depthwise and pointwise convolutions."""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

V1_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Output channels and stride of each depthwise-separable block."""
V2_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, output channels, blocks, stride of the first block."""


def mobilenet_v1(seed: int | None, batch: int = 1) -> Graph:
    """224x224, width 1.0, relu."""
    net = NetworkBuilder("mobilenet_v1", seed, (batch, 3, 224, 224))
    x = net.relu(_conv_norm(net, "conv1", net.input, 32, 3, stride=2))
    for i, (k, stride) in enumerate(V1_BLOCKS, 2):
        depthwise = _conv_norm(net, f"conv{i}_dw", x, net.channels(x), 3, stride=stride, groups=net.channels(x))
        x = net.relu(_conv_norm(net, f"conv{i}_pw", net.relu(depthwise), k, 1))
    return _classify(net, x)


def mobilenet_v2(seed: int | None, batch: int = 1) -> Graph:
    """224x224, width 1.0, inverted residuals with relu6."""
    net = NetworkBuilder("mobilenet_v2", seed, (batch, 3, 224, 224))
    x = net.relu6(_conv_norm(net, "conv1", net.input, 32, 3, stride=2))
    for stage, (expansion, k, blocks, stride) in enumerate(V2_STAGES, 2):
        for block in range(blocks):
            x = _inverted_residual(net, f"conv{stage}_{block + 1}", x, expansion, k, stride if block == 0 else 1)
    return _classify(net, net.relu6(_conv_norm(net, "conv9", x, 1280, 1)))


def _inverted_residual(net: NetworkBuilder, name: str, x: str, expansion: int, k: int, stride: int) -> str:
    c = net.channels(x)
    wide = x if expansion == 1 else net.relu6(_conv_norm(net, f"{name}_expand", x, expansion * c, 1))
    depth = _conv_norm(net, f"{name}_dw", wide, expansion * c, 3, stride=stride, groups=expansion * c)
    out = _conv_norm(net, f"{name}_project", net.relu6(depth), k, 1, scale=0.7)
    return net.add(f"{name}_add", x, out) if stride == 1 and c == k else out


def _conv_norm(
    net: NetworkBuilder, name: str, x: str, k: int, kernel: int, *, stride: int = 1, groups: int = 1, scale: float = 1.0
) -> str:
    out = net.conv(name, x, k, kernel, stride=stride, pad=kernel // 2, groups=groups, bias=False)
    return net.batch_norm(f"{name}.norm", out, scale=scale)


def _classify(net: NetworkBuilder, x: str) -> Graph:
    features = net.flatten("features", net.global_average_pool("pool", x))
    return net.finish(net.softmax("prob", net.dense("logits", features, 1000, gain=1.0)))
