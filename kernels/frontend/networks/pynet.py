"""PyNET (Ignatov et al. 2020; study M): a camera pipeline as one network, an inverted pyramid of five levels.

Its input is a raw Bayer image as four planes of half its size. A block runs convolutions of several windows side by
side and joins their results; a level hands its features to the next finer one by upsampling. Level 0 doubles the size
of level 1, to that of the raw image. A relu, as study M counts it; the authors' later code has a leaky one.
"""

from __future__ import annotations

from kernels.ir.graph import Graph

from .builder import NetworkBuilder, Pair

CROP: Pair = (128, 128)
FULL: Pair = (1488, 1984)
"""Rows and columns of a plane: study M's whole image, of 2976 x 3968 pixels."""
CHANNELS = {1: 32, 2: 64, 3: 128, 4: 256, 5: 512}


def pynet(seed: int | None, batch: int = 1, *, size: Pair = CROP, level: int = 0) -> Graph:
    """`size`: rows and columns of each plane, multiples of 16, at least 32.

    `level`: the finest one computed, from 5 (a 16th of the size) to 1 and 0 (twice the size). Level 0 gives the images
    of all six as outputs `level_0` to `level_5`; another gives its own only.
    """
    net = NetworkBuilder(f"pynet_level_{level}" if level else "pynet", seed, (batch, 4, *size))
    features = _descend(net)
    x, images = _level_5(net, features[5]), []
    for at, ascend in zip(range(5, 0, -1), (None, _level_4, _level_3, _level_2, _level_1), strict=True):
        if at < level:
            break
        if ascend is not None:
            a, b = (_up(net, f"up{at}{way}", x, CHANNELS[at]) for way in "ab")
            x = ascend(net, features[at], a, b)
        if level in (0, at):
            images.append(_image(net, at, x))
    if level == 0:
        images.append(_image(net, 0, _up(net, "up0", x, 16)))
    return net.finish(*images[::-1])


def pynet_full(seed: int | None, batch: int = 1) -> Graph:
    """All levels at study M's size: its activations take gigabytes."""
    graph = pynet(seed, batch, size=FULL)
    graph.name = "pynet_full"
    return graph


def _descend(net: NetworkBuilder) -> dict[int, str]:
    """The first features of each level; of level 5 its input."""
    features, x = {}, net.input
    for level in range(1, 5):
        features[level] = _block(net, f"l{level}_d1", x, CHANNELS[level], 3, norm=level > 1)
        x = net.max_pool(f"pool{level}", features[level], 2)
    return {**features, 5: x}


def _level_5(net: NetworkBuilder, x: str) -> str:
    for i in range(1, 5):
        x = _block(net, f"l5_d{i}", x, CHANNELS[5], 3)
    return x


def _level_4(net: NetworkBuilder, own: str, a: str, b: str) -> str:
    x = _block(net, "l4_d3", net.concat("l4_d2", (own, a)), 256, 3)
    x = _residual_blocks(net, "l4", (4, 5), x, 256, 3)
    x = _block(net, "l4_d6", x, 256, 3)
    return _block(net, "l4_d8", net.concat("l4_d7", (x, b)), 256, 3)


def _level_3(net: NetworkBuilder, own: str, a: str, b: str) -> str:
    x = _residual_blocks(net, "l3", (3, 4, 5), net.concat("l3_d2", (own, a)), 128, 5)
    x = _block(net, "l3_d6", x, 128, 5)
    return _block(net, "l3_d8", net.concat("l3_d7", (x, own, b)), 128, 3)


def _level_2(net: NetworkBuilder, own: str, a: str, b: str) -> str:
    x = _block(net, "l2_d3", net.concat("l2_d2", (own, a)), 64, 5)
    x = _residual_blocks(net, "l2", (5, 6, 7), net.concat("l2_d4", (x, own)), 64, 7)
    x = _block(net, "l2_d8", x, 64, 7)
    x = _block(net, "l2_d10", net.concat("l2_d9", (x, own)), 64, 5)
    return _block(net, "l2_d12", net.concat("l2_d11", (x, b)), 64, 3)


def _level_1(net: NetworkBuilder, own: str, a: str, b: str) -> str:
    x = _block(net, "l1_d3", net.concat("l1_d2", (own, a)), 32, 5, norm=False)
    x = _block(net, "l1_d5", net.concat("l1_d4", (x, own)), 32, 7)
    x = _residual_blocks(net, "l1", (7, 8, 9), _block(net, "l1_d6", x, 32, 9), 32, 9)
    x = _block(net, "l1_d10", x, 32, 7)
    x = _block(net, "l1_d12", net.concat("l1_d11", (x, own)), 32, 5)
    return _block(net, "l1_d14", net.concat("l1_d13", (x, b, own)), 32, 3, norm=False)


def _residual_blocks(net: NetworkBuilder, level: str, numbers: tuple[int, ...], x: str, k: int, largest: int) -> str:
    """Blocks that add their input to their result."""
    for i in numbers:
        x = net.add(f"{level}_d{i}", _block(net, f"{level}_d{i}_block", x, k, largest), x)
    return x


def _block(net: NetworkBuilder, name: str, x: str, k: int, largest: int, *, norm: bool = True) -> str:
    """Two layers of k channels for each window from 3x3 to the largest, joined."""
    parts = []
    for window in range(3, largest + 1, 2):
        first = _layer(net, f"{name}_{window}a", x, k, window, norm=norm)
        parts.append(_layer(net, f"{name}_{window}b", first, k, window, norm=norm))
    return net.concat(name, parts) if len(parts) > 1 else parts[0]


def _layer(net: NetworkBuilder, name: str, x: str, k: int, window: int, *, norm: bool) -> str:
    out = _conv(net, name, x, k, window)
    return net.relu(net.instance_norm(f"{name}.norm", out) if norm else out)


def _conv(net: NetworkBuilder, name: str, x: str, k: int, window: int) -> str:
    return net.conv(name, net.reflect_pad(f"{name}.pad", x, window // 2), k, window)


def _up(net: NetworkBuilder, name: str, x: str, k: int) -> str:
    return net.relu(_conv(net, name, net.upsample(f"{name}.up", x), k, 3))


def _image(net: NetworkBuilder, level: int, x: str) -> str:
    return net.sigmoid(_conv(net, f"image{level}", x, 3, 3), name=f"level_{level}")
