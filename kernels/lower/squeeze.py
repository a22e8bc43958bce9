"""The layers of single pixels that the layers of single pixels behind them compute: squeeze and excitation's two."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kernels.catalog.convolution import CONVOLUTIONS, convolution_of
from kernels.catalog.convolution.squeeze import SqueezeSizes, SqueezeTile, squeeze_tile
from kernels.catalog.product import PRODUCTS
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.options import Limits, Options

from .separable import may_merge


@dataclass(frozen=True)
class Squeezed:
    """A layer whose result only its reader has, and how that computes both."""

    node: Node
    sizes: SqueezeSizes
    tile: SqueezeTile

    @property
    def reads(self) -> tuple[str, ...]:
        """Tensors that must live until the reader is computed."""
        return self.node.inputs[:1]


def squeezed_layers(graph: Graph, options: Options, limits: Limits, merged: Collection[str]) -> dict[str, Squeezed]:
    """Return layers by the output of the node that is no step; `merged`: other such outputs, which no layer here may
    read.

    A step takes a large GPU longer than such a layer.
    """
    if not may_merge("squeeze", options, limits):
        return {}
    counts, writers = use_counts(graph), producers(graph)
    found: dict[str, Squeezed] = {}
    for second in graph.nodes:
        first = writers.get(second.inputs[0]) if second.op in ("conv", "dense") else None
        if first is None or first.op != second.op or counts[first.output] != 1:
            continue
        source = first.inputs[0]
        is_step = source not in merged and source not in found
        if not is_step or not all(_is_of_one_pixel(graph, node, options) for node in (first, second)):
            continue
        if first.op == "conv" or _is_row_of_channels(graph, writers, source):
            (pictures, inputs, *_), (_, hidden, *_) = graph.shapes[source], graph.shapes[first.output]
            sizes = SqueezeSizes(pictures, inputs, hidden, graph.shapes[second.output][1])
            if tile := squeeze_tile(sizes, options, limits):
                found[first.output] = Squeezed(first, sizes, tile)
    return found


def _is_of_one_pixel(graph: Graph, node: Node, options: Options) -> bool:
    """Return whether it is a product of rows of channels with a constant, maybe with a bias, computed in any way."""
    if not all(name in graph.constants for name in node.inputs[1:3] if name) or any(node.inputs[3:]):
        return False
    if node.op == "dense":
        return node.attributes.keys() <= {"activation", "free_rows"} and PRODUCTS.is_open(options.of(node.name))
    conv = convolution_of(graph, node)
    one = conv.kernel == (conv.h, conv.w) == (conv.oh, conv.ow) == (1, 1) and conv.groups == 1
    return one and not any(conv.pads) and CONVOLUTIONS.is_open(options.of(node.name))


def _is_row_of_channels(graph: Graph, writers: Mapping[str, Node], rows: str) -> bool:
    """Return whether rows are pictures of one pixel: others may lie dealt out, or be normalised on the way."""
    name = rows
    while name in writers and writers[name].op == "reshape":
        name = writers[name].inputs[0]
    return graph.shapes[rows][1] % 4 == 0 and len(graph.shapes[name]) == 4 and graph.shapes[name][2:] == (1, 1)
