"""What is tuned: layers that an algorithm is chosen for, each kind with its candidates, footprint and trial graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from kernels.catalog import Convolution, convolution_of
from kernels.catalog.products import Product
from kernels.catalog.transposes import Transpose
from kernels.ir.graph import Graph, Node
from kernels.lower.cpu.algorithms import has_choice
from kernels.lower.gpu.elementwise import ADDITION_NODES, addition_of
from kernels.lower.gpu.movement import transposition_of
from kernels.lower.gpu.product import PRODUCT_NODES, product_of
from kernels.options import Choice, Options

from .additions import Additions
from .convolutions import Convolutions
from .cpu_convolutions import CpuConvolutions
from .kind import Kind, Layer
from .products import Products
from .transposes import Transposes

__all__ = ["Kind", "Layer", "in_turn", "kind_of", "layer_of", "untuned"]


def layer_of(graph: Graph, node: Node, options: Options) -> Layer | None:
    """The sizes of a node that can be tuned; None for others."""
    if options.backend == "cpu":
        return convolution_of(graph, node) if node.op == "conv" and has_choice(graph, node) else None
    if node.op == "conv":
        return convolution_of(graph, node)
    if node.op in PRODUCT_NODES:
        return product_of(graph, node)
    if node.op in ADDITION_NODES:
        return addition_of(graph, node)
    return _transposition(graph, node) if node.op == "transpose" else None


def _transposition(graph: Graph, node: Node) -> Transpose | None:
    """Where the last axis stays there is one way only."""
    sizes = transposition_of(graph, node)
    return None if sizes.source_axis == 3 else sizes


def kind_of(layer: Layer, options: Options) -> Kind:
    if isinstance(layer, Convolution):
        return CpuConvolutions() if options.backend == "cpu" else Convolutions()
    if isinstance(layer, Product):
        return Products()
    return Transposes() if isinstance(layer, Transpose) else Additions()


def untuned(options: Options) -> Options:
    """As if nothing had been asked for or found."""
    return replace(
        options, tuned={}, algorithm="auto", granularity=0, product="auto", transpose="auto", addition="auto"
    )


def in_turn(columns: Sequence[Sequence[Choice]]) -> list[Choice]:
    """The first of each, then the second of each ..."""
    return [choice for row in zip_longest(*columns) for choice in row if choice is not None]
