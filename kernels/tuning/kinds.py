"""What is tuned: layers that an algorithm is chosen for, each kind with its candidates, footprint and trial graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np

from kernels.catalog import ALGORITHMS, Convolution, choose, convolution_of, misfit
from kernels.catalog.products import PRODUCTS, Product, choose_product
from kernels.graph import Array, Graph, Node
from kernels.lower.gpu.product import PRODUCT_NODES, product_of
from kernels.options import Choice, Limits, Options

_WINOGRAD_GROWTH = 4
"""Winograd's weights, and its workspace, are so much larger than the plain ones at most."""

Layer = Convolution | Product
"""Sizes of what is tuned, named by their `key`."""


class Kind(Protocol):
    """How one kind of layer is tuned; `layer` is of that kind."""

    def is_open(self, options: Options) -> bool:
        """Whether the options leave the choice to tuning."""
        ...

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        ...

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the tiles worth trying."""
        ...

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """About what one candidate adds to a trial plan, in fp32."""
        ...

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """The layer once a name, with random weights."""
        ...


def layer_of(graph: Graph, node: Node) -> Layer | None:
    """The sizes of a node that can be tuned; None for others."""
    if node.op == "conv":
        return convolution_of(graph, node)
    return product_of(graph, node) if node.op in PRODUCT_NODES else None


def kind_of(layer: Layer) -> Kind:
    return _Convolutions() if isinstance(layer, Convolution) else _Products()


class _Convolutions:
    def is_open(self, options: Options) -> bool:
        return options.algorithm == "auto" and not options.granularity

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        assert isinstance(layer, Convolution)
        return choose(options, limits, "", layer)

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        assert isinstance(layer, Convolution)
        fitting = [entry for name, entry in ALGORITHMS.items() if misfit(name, layer, options.precision) is None]
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
        assert isinstance(layer, Convolution)
        rng = np.random.default_rng(1)
        window = (layer.k, layer.c // layer.groups, *layer.kernel)
        fan_in = layer.c // layer.groups * layer.kernel[0] * layer.kernel[1]
        weight = (rng.standard_normal(window) * fan_in**-0.5).astype(np.float32)
        attributes: dict[str, Any] = {
            "strides": layer.strides, "pads": layer.pads, "dilations": layer.dilations, "groups": layer.groups,
        }  # fmt: skip
        if layer.mirrored:
            attributes["pad_mode"] = "reflect"
        constants: dict[str, Array] = {"weight": weight, "bias": rng.standard_normal(layer.k).astype(np.float32)}
        nodes = [Node(name, "conv", ("x", *constants), (f"{name}:0",), attributes) for name in names]
        return _graph(
            {"x": (layer.n, layer.c, layer.h, layer.w)}, nodes, (layer.n, layer.k, layer.oh, layer.ow), constants
        )


class _Products:
    def is_open(self, options: Options) -> bool:
        return options.product == "auto"

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        assert isinstance(layer, Product)
        return choose_product(options, limits, "", layer)

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        assert isinstance(layer, Product)
        return [
            [Choice(entry.name, tile) for tile in entry.tiles(layer, options, limits)] for entry in PRODUCTS.values()
        ]

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """Its result, padded to whole vectors twice where its rows are not."""
        assert isinstance(layer, Product)
        del choice
        return 8 * layer.batch * layer.rows * 4 * layer.columns4

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """A dense layer, as most products are; with a batch a product of two inputs."""
        assert isinstance(layer, Product)
        rng = np.random.default_rng(1)
        right = (layer.depth, layer.columns)
        if layer.batch == 1:
            weight = (rng.standard_normal(right) * layer.depth**-0.5).astype(np.float32)
            constants = {"weight": weight, "bias": rng.standard_normal(layer.columns).astype(np.float32)}
            nodes = [Node(name, "dense", ("x", *constants), (f"{name}:0",)) for name in names]
            return _graph({"x": (layer.rows, layer.depth)}, nodes, (layer.rows, layer.columns), constants)
        inputs: dict[str, tuple[int, ...]] = {
            "x": (layer.batch, layer.rows, layer.depth),
            "y": right if layer.right_is_shared else (layer.batch, *right),
        }
        nodes = [Node(name, "matmul", ("x", "y"), (f"{name}:0",)) for name in names]
        return _graph(inputs, nodes, (layer.batch, layer.rows, layer.columns), {})


def untuned(options: Options) -> Options:
    """As if nothing had been asked for or found."""
    return replace(
        options, tuned={}, algorithm="auto", granularity=0, product="auto", transpose="auto", addition="auto"
    )


def in_turn(columns: Sequence[Sequence[Choice]]) -> list[Choice]:
    """The first of each, then the second of each ..."""
    return [choice for row in zip_longest(*columns) for choice in row if choice is not None]


def _graph(
    inputs: dict[str, tuple[int, ...]], nodes: list[Node], result: tuple[int, ...], constants: dict[str, Array]
) -> Graph:
    return Graph(
        name="trial",
        inputs=tuple(inputs),
        outputs=nodes[-1].outputs,
        nodes=nodes,
        constants=constants,
        shapes={
            **inputs,
            **{name: array.shape for name, array in constants.items()},
            **{node.output: result for node in nodes},
        },
    )
