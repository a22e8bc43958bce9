"""Additions and multiplications number by number on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.catalog.additions import ADDITIONS, Addition, choose_addition
from kernels.ir.graph import Array, Graph, Node
from kernels.options import Choice, Limits, Options

from .kind import Layer, alike, trial_graph


class Additions:
    """Every algorithm of the catalogue that fits, with its vectors a work-item."""

    def is_open(self, options: Options) -> bool:
        """Whether no algorithm is asked for."""
        return options.addition == "auto"

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        assert isinstance(layer, Addition)
        return choose_addition(options, limits, "", layer)

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the tiles worth trying."""
        assert isinstance(layer, Addition)
        return [
            [Choice(entry.name, tile) for tile in entry.tiles(layer, options, limits)] for entry in ADDITIONS.values()
        ]

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """Its result."""
        assert isinstance(layer, Addition)
        del choice
        return 16 * layer.pictures * layer.vectors

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """Sums of two inputs, or of one and a number a channel."""
        assert isinstance(layer, Addition)
        shape = (layer.pictures, 4, layer.vectors, 1)
        inputs: dict[str, tuple[int, ...]] = {"x": shape}
        constants: dict[str, Array] = {}
        if layer.by_channel:
            constants["y"] = np.random.default_rng(1).standard_normal((1, 4, 1, 1)).astype(np.float32)
        else:
            inputs["y"] = shape
        nodes = [Node(name, "add", ("x", "y"), (f"{name}:0",)) for name in names]
        return trial_graph(inputs, nodes, alike(nodes, shape), constants)
