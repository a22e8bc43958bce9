"""Convolutions on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels.catalog import ALGORITHMS, Convolution, choose, why_not
from kernels.ir.graph import Array, Graph, Node
from kernels.options import Choice, Limits, Options

from .kind import Layer, alike, trial_graph

_WINOGRAD_GROWTH = 4
"""Winograd's weights, and its workspace, are so much larger than the plain ones at most."""


class Convolutions:
    """Every algorithm of the catalogue that fits, with its tiles."""

    def is_open(self, options: Options) -> bool:
        """Whether neither algorithm nor granularity is asked for."""
        return options.algorithm == "auto" and not options.granularity

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        assert isinstance(layer, Convolution)
        return choose(options, limits, "", layer)

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the tiles worth trying."""
        assert isinstance(layer, Convolution)
        fitting = [entry for name, entry in ALGORITHMS.items() if why_not(name, layer, options.precision) is None]
        return [[Choice(entry.name, tile) for tile in entry.tiles(layer, options, limits)] for entry in fitting]

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """Its weights, result and workspace."""
        assert isinstance(layer, Convolution)
        kh, kw = layer.kernel
        weight = layer.k * layer.c // layer.groups * kh * kw
        result = layer.n * layer.k * layer.oh * layer.ow
        if choice.algorithm.startswith("winograd"):
            return 4 * _WINOGRAD_GROWTH * (weight + result)
        workspace = layer.n * layer.c * kh * kw * layer.oh * layer.ow if choice.algorithm == "im2col" else 0
        return 4 * (weight + result + workspace)

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """All of one input and with one weight."""
        assert isinstance(layer, Convolution)
        constants = weights(layer)
        nodes = [convolution(layer, name, "x", tuple(constants)) for name in names]
        result = (layer.n, layer.k, layer.oh, layer.ow)
        return trial_graph({"x": (layer.n, layer.c, layer.h, layer.w)}, nodes, alike(nodes, result), constants)


def weights(layer: Convolution) -> dict[str, Array]:
    """Random ones: `weight`, `bias`."""
    rng = np.random.default_rng(1)
    window = (layer.k, layer.c // layer.groups, *layer.kernel)
    fan_in = layer.c // layer.groups * layer.kernel[0] * layer.kernel[1]
    weight = (rng.standard_normal(window) * fan_in**-0.5).astype(np.float32)
    return {"weight": weight, "bias": rng.standard_normal(layer.k).astype(np.float32)}


def convolution(layer: Convolution, name: str, source: str, constants: tuple[str, ...]) -> Node:
    """The layer as a node."""
    attributes: dict[str, Any] = {
        "strides": layer.strides, "pads": layer.pads, "dilations": layer.dilations, "groups": layer.groups,
    }  # fmt: skip
    if layer.mirrored:
        attributes["pad_mode"] = "reflect"
    return Node(name, "conv", (source, *constants), (f"{name}:0",), attributes)
