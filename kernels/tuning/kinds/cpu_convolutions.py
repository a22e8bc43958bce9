"""Convolutions on the CPU backend: an algorithm, no tile.

Most of a network is in blocks of sixteen channels there (docs/decisions/0029). A row-major algorithm between such
neighbours has its input and result converted, which a layer alone would not show: in a trial each candidate stands
between two layers in blocks, and the conversions count as its own (`steps`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.catalog import Convolution
from kernels.ir.graph import Array, Graph, Node
from kernels.lower.cpu.algorithms import FITS, choose
from kernels.lower.cpu.packing import BLOCK
from kernels.options import Choice, Limits, Options

from .convolutions import convolution, weights
from .kind import Layer, trial_graph

_SEQUENTIAL_FLOPS = 1_000_000
"""Of a layer that one thread may compute by its definition, at most: about what meeting the other threads costs, with
a wide margin."""
_WINOGRAD_GROWTH = 4
"""36 transformed weights for nine."""


class CpuConvolutions:
    """Every algorithm of the CPU backend that fits."""

    def is_open(self, options: Options) -> bool:
        """Whether no algorithm is asked for."""
        return options.algorithm == "auto"

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        del limits
        assert isinstance(layer, Convolution)
        return Choice(choose(options, "", layer))

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the only way."""
        del options, limits
        assert isinstance(layer, Convolution)
        names = [name for name, fits in FITS.items() if fits(layer)]
        if layer.flops > _SEQUENTIAL_FLOPS:
            names.remove("sequential")
        return [[Choice(name)] for name in names]

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """Its weights, its input and result in both layouts, and the matrix of windows."""
        assert isinstance(layer, Convolution)
        kh, kw = layer.kernel
        weight = layer.k * layer.c // layer.groups * kh * kw
        images = layer.n * (layer.c * layer.h * layer.w + layer.k * layer.oh * layer.ow)
        columns = layer.c // layer.groups * kh * kw * layer.oh * layer.ow if choice.algorithm == "im2col" else 0
        return 4 * ((_WINOGRAD_GROWTH if choice.algorithm == "winograd" else 1) * weight + 2 * images + columns)

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """Each between two layers in blocks that do as good as nothing; few channels come from rows, as images do."""
        assert isinstance(layer, Convolution)
        constants = weights(layer)
        source, result = (layer.n, layer.c, layer.h, layer.w), (layer.n, layer.k, layer.oh, layer.ow)
        nodes: list[Node] = []
        shapes: dict[str, tuple[int, ...]] = {}
        scales: dict[str, Array] = {"after": np.ones((layer.k, 1, 1, 1), np.float32)}
        if layer.c >= BLOCK:
            scales["before"] = np.ones((layer.c, 1, 1, 1), np.float32)
        for name in names:
            before = _scaled(f"{name}:before", "x", "before", layer.c)
            own = convolution(layer, name, before.output if "before" in scales else "x", tuple(constants))
            after = _scaled(f"{name}:after", own.output, "after", layer.k)
            nodes += [before, own, after] if "before" in scales else [own, after]
            shapes |= {before.output: source} if "before" in scales else {}
            shapes |= {own.output: result, after.output: result}
        return trial_graph({"x": source}, nodes, shapes, {**constants, **scales})


def _scaled(name: str, source: str, weight: str, channels: int) -> Node:
    attributes = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "groups": channels}
    return Node(name, "conv", (source, weight), (f"{name}:0",), attributes)
