"""Study M's 35 layer shapes (Kang, table of PyNET's convolutions) as workloads, `pynet_conv_<number>`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kernels.ir.graph import Graph

from .builder import NetworkBuilder

# channels, height, width, window, output channels
_TABLE = """
4,1440,1984,3,32 32,1440,1984,3,32 32,720,992,3,64 64,720,992,3,64 64,360,496,3,128 128,360,496,3,128
128,180,248,3,256 256,180,248,3,256 256,90,124,3,512 512,90,124,3,512 512,180,248,3,256 512,90,124,3,3
256,360,496,3,128 256,180,248,3,3 256,360,496,5,128 128,360,496,5,128 512,360,496,3,128 128,720,992,3,64
128,360,496,3,3 128,720,992,5,64 64,720,992,5,64 192,720,992,3,64 192,720,992,5,64 192,720,992,7,64
64,720,992,7,64 256,720,992,3,64 256,720,992,5,64 64,1440,1984,3,32 64,720,992,3,3 32,1440,1984,5,32
32,1440,1984,7,32 32,1440,1984,9,32 16,2880,3968,3,16 32,1440,1984,3,3 16,2880,3968,3,3
"""
SHAPES = tuple(tuple(map(int, text.split(","))) for text in _TABLE.split())
"""Shapes by number."""


def _layer(number: int, seed: int | None, batch: int = 1) -> Graph:
    c, h, w, window, k = SHAPES[number]
    net = NetworkBuilder(f"pynet_conv_{number}", seed, (batch, c, h, w))
    return net.finish(net.conv("convolution", net.input, k, window, pad=window // 2))


PYNET_LAYERS: dict[str, Callable[..., Graph]] = {
    f"pynet_conv_{number}": partial(_layer, number) for number in range(len(SHAPES))
}
