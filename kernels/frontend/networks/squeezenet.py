"""SqueezeNet (Iandola et al. 2016): fire modules squeeze to few channels, then expand by 1x1 and 3x3."""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder


def squeezenet_v1_0(seed: int | None, batch: int = 1) -> Graph:
    """227x227, conv10 padded by 1, as trained with Caffe (study S)."""
    net = NetworkBuilder("squeezenet_v1_0", seed, (batch, 3, 227, 227))
    x = net.relu(net.conv("conv1", net.input, 96, 7, stride=2))
    x = net.max_pool("pool1", x, ceil=True)
    for i, (squeeze, expand) in enumerate(((16, 64), (16, 64), (32, 128)), 2):
        x = _fire(net, f"fire{i}", x, squeeze, expand)
    x = net.max_pool("pool4", x, ceil=True)
    for i, (squeeze, expand) in enumerate(((32, 128), (48, 192), (48, 192), (64, 256)), 5):
        x = _fire(net, f"fire{i}", x, squeeze, expand)
    x = _fire(net, "fire9", net.max_pool("pool8", x, ceil=True), 64, 256)
    return _classify(net, x, pad=1)


def squeezenet_v1_1(seed: int | None, batch: int = 1) -> Graph:
    """224x224, pooling earlier than v1.0: 2.4 times less work for the same accuracy."""
    net = NetworkBuilder("squeezenet_v1_1", seed, (batch, 3, 224, 224))
    x = net.relu(net.conv("conv1", net.input, 64, 3, stride=2))
    x = net.max_pool("pool1", x, ceil=True)
    for i in (2, 3):
        x = _fire(net, f"fire{i}", x, 16, 64)
    x = net.max_pool("pool3", x, ceil=True)
    for i in (4, 5):
        x = _fire(net, f"fire{i}", x, 32, 128)
    x = net.max_pool("pool5", x, ceil=True)
    for i, (squeeze, expand) in enumerate(((48, 192), (48, 192), (64, 256), (64, 256)), 6):
        x = _fire(net, f"fire{i}", x, squeeze, expand)
    return _classify(net, x, pad=0)


def _fire(net: NetworkBuilder, name: str, x: str, squeeze: int, expand: int) -> str:
    s = net.relu(net.conv(f"{name}_squeeze1x1", x, squeeze, 1))
    left = net.relu(net.conv(f"{name}_expand1x1", s, expand, 1))
    right = net.relu(net.conv(f"{name}_expand3x3", s, expand, 3, pad=1))
    return net.concat(f"{name}_concat", (left, right))


def _classify(net: NetworkBuilder, x: str, *, pad: int) -> Graph:
    x = net.relu(net.conv("conv10", x, 1000, 1, pad=pad))
    logits = net.flatten("logits", net.global_average_pool("pool10", x))
    return net.finish(net.softmax("prob", logits))
