"""Transpositions on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kernels.catalog.transposes import TRANSPOSES, Transpose, choose_transpose
from kernels.ir.graph import Graph, Node
from kernels.options import Choice, Limits, Options

from .kind import Layer, alike, trial_graph


class Transposes:
    """Every algorithm of the catalogue that fits, with its squares."""

    def is_open(self, options: Options) -> bool:
        """Whether no algorithm is asked for."""
        return options.transpose == "auto"

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        assert isinstance(layer, Transpose)
        return choose_transpose(options, limits, "", layer)

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the tiles worth trying."""
        assert isinstance(layer, Transpose)
        return [
            [Choice(entry.name, tile) for tile in entry.tiles(layer, options, limits)] for entry in TRANSPOSES.values()
        ]

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """Its result."""
        assert isinstance(layer, Transpose)
        del choice
        return 4 * prod(layer.sizes)

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """All of one input, whose axes lie in the order of their strides."""
        assert isinstance(layer, Transpose)
        real = [axis for axis in range(4) if layer.strides[axis]]
        # an axis of one element has the stride of the longer one before it
        order = sorted(real, key=lambda axis: (-layer.strides[axis], -layer.sizes[axis]))
        perm = tuple(order.index(axis) for axis in real)
        nodes = [Node(name, "transpose", ("x",), (f"{name}:0",), {"perm": perm}) for name in names]
        shapes = alike(nodes, tuple(layer.sizes[axis] for axis in real))
        return trial_graph({"x": tuple(layer.sizes[axis] for axis in order)}, nodes, shapes, {})
