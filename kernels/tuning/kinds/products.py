"""Matrix products on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.catalog.products import PRODUCTS, Product, choose_product
from kernels.ir.graph import Graph, Node
from kernels.options import Choice, Limits, Options

from .kind import Layer, alike, trial_graph


class Products:
    """Every algorithm of the catalogue, with its tiles."""

    def is_open(self, options: Options) -> bool:
        """Whether no algorithm is asked for."""
        return options.product == "auto"

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        assert isinstance(layer, Product)
        return choose_product(options, limits, "", layer)

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the tiles worth trying."""
        assert isinstance(layer, Product)
        return [
            [Choice(entry.name, tile) for tile in entry.tiles(layer, options, limits)] for entry in PRODUCTS.values()
        ]

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """Its result, padded to whole vectors twice where its rows are not, and weights in an order of its own."""
        assert isinstance(layer, Product)
        packed = 16 * layer.depth * layer.columns4 if choice.algorithm == "panels" else 0
        return 8 * layer.batch * layer.rows * 4 * layer.columns4 + packed

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """A dense layer, or a product of two inputs."""
        assert isinstance(layer, Product)
        rng = np.random.default_rng(1)
        right = (layer.depth, layer.columns)
        if layer.right_is_constant:
            weight = (rng.standard_normal(right) * layer.depth**-0.5).astype(np.float32)
            constants = {"weight": weight, "bias": rng.standard_normal(layer.columns).astype(np.float32)}
            nodes = [Node(name, "dense", ("x", *constants), (f"{name}:0",)) for name in names]
            shapes = alike(nodes, (layer.rows, layer.columns))
            return trial_graph({"x": (layer.rows, layer.depth)}, nodes, shapes, constants)
        batch = () if layer.batch == 1 else (layer.batch,)
        inputs: dict[str, tuple[int, ...]] = {
            "x": (*batch, layer.rows, layer.depth),
            "y": right if layer.right_is_shared else (*batch, *right),
        }
        nodes = [Node(name, "matmul", ("x", "y"), (f"{name}:0",)) for name in names]
        return trial_graph(inputs, nodes, alike(nodes, (*batch, layer.rows, layer.columns)), {})
