"""Inception v3 (Szegedy et al. 2016): large windows written as several small ones; no side classifier."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.ir.graph import Graph

from .builder import NetworkBuilder, Pair

Window = int | Pair
Layer = tuple[int, Window]
"""Channels and window of a convolution that keeps the size of its image."""


def inception_v3(seed: int | None, batch: int = 1, *, size: int = 299) -> Graph:
    """`size` x `size`, at least 75."""
    net = NetworkBuilder("inception_v3", seed, (batch, 3, size, size))
    x = _conv(net, "conv1", net.input, 32, 3, stride=2)
    x = _chain(net, "conv2", _conv(net, "conv2a", x, 32, 3), [(64, 3)])
    x = _conv(net, "conv3", net.max_pool("pool1", x), 80, 1)
    x = net.max_pool("pool2", _conv(net, "conv4", x, 192, 3))
    for i, pooled in enumerate((32, 64, 64), 1):
        x = _module_35(net, f"mixed35_{i}", x, pooled)
    x = _reduction_35(net, "mixed17_1", x)
    for i, inner in enumerate((128, 160, 160, 192), 2):
        x = _module_17(net, f"mixed17_{i}", x, inner)
    x = _reduction_17(net, "mixed8_1", x)
    for i in (2, 3):
        x = _module_8(net, f"mixed8_{i}", x)
    features = net.flatten("features", net.global_average_pool("pool", x))
    return net.finish(net.softmax("prob", net.dense("logits", features, 1000, gain=1.0)))


def _module_35(net: NetworkBuilder, name: str, x: str, pooled: int) -> str:
    parts = (
        _chain(net, f"{name}_1x1", x, [(64, 1)]),
        _chain(net, f"{name}_5x5", x, [(48, 1), (64, 5)]),
        _chain(net, f"{name}_3x3", x, [(64, 1), (96, 3), (96, 3)]),
        _chain(net, f"{name}_pool_project", _pool(net, name, x), [(pooled, 1)]),
    )
    return net.concat(f"{name}_concat", parts)


def _reduction_35(net: NetworkBuilder, name: str, x: str) -> str:
    double = _chain(net, f"{name}_double", x, [(64, 1), (96, 3)])
    parts = (
        _conv(net, f"{name}_3x3", x, 384, 3, stride=2),
        _conv(net, f"{name}_double_end", double, 96, 3, stride=2),
        net.max_pool(f"{name}_pool", x),
    )
    return net.concat(f"{name}_concat", parts)


def _module_17(net: NetworkBuilder, name: str, x: str, inner: int) -> str:
    row, column = (1, 7), (7, 1)
    parts = (
        _chain(net, f"{name}_1x1", x, [(192, 1)]),
        _chain(net, f"{name}_7x7", x, [(inner, 1), (inner, row), (192, column)]),
        _chain(net, f"{name}_double", x, [(inner, 1), (inner, column), (inner, row), (inner, column), (192, row)]),
        _chain(net, f"{name}_pool_project", _pool(net, name, x), [(192, 1)]),
    )
    return net.concat(f"{name}_concat", parts)


def _reduction_17(net: NetworkBuilder, name: str, x: str) -> str:
    narrow = _chain(net, f"{name}_narrow", x, [(192, 1)])
    sevens = _chain(net, f"{name}_7x7", x, [(192, 1), (192, (1, 7)), (192, (7, 1))])
    parts = (
        _conv(net, f"{name}_3x3", narrow, 320, 3, stride=2),
        _conv(net, f"{name}_7x7_end", sevens, 192, 3, stride=2),
        net.max_pool(f"{name}_pool", x),
    )
    return net.concat(f"{name}_concat", parts)


def _module_8(net: NetworkBuilder, name: str, x: str) -> str:
    single = _chain(net, f"{name}_single", x, [(384, 1)])
    double = _chain(net, f"{name}_double", x, [(448, 1), (384, 3)])
    windows = ((1, 3), (3, 1))
    parts = (
        _chain(net, f"{name}_1x1", x, [(320, 1)]),
        *(_chain(net, f"{name}_single_{h}x{w}", single, [(384, (h, w))]) for h, w in windows),
        *(_chain(net, f"{name}_double_{h}x{w}", double, [(384, (h, w))]) for h, w in windows),
        _chain(net, f"{name}_pool_project", _pool(net, name, x), [(192, 1)]),
    )
    return net.concat(f"{name}_concat", parts)


def _pool(net: NetworkBuilder, name: str, x: str) -> str:
    return net.average_pool(f"{name}_pool", x, stride=1, pad=1)


def _chain(net: NetworkBuilder, name: str, x: str, layers: Sequence[Layer]) -> str:
    """Convolutions one after another."""
    for i, (k, window) in enumerate(layers, 1):
        height, width = (window, window) if isinstance(window, int) else window
        x = _conv(net, f"{name}_{i}", x, k, window, pad=(height // 2, width // 2))
    return x


def _conv(net: NetworkBuilder, name: str, x: str, k: int, window: Window, *, stride: int = 1, pad: Window = 0) -> str:
    out = net.conv(name, x, k, window, stride=stride, pad=pad, bias=False)
    return net.relu(net.batch_norm(f"{name}.norm", out))
