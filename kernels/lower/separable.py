"""Which depthwise convolutions the 1x1 convolutions behind them compute."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.catalog.convolution import CONVOLUTIONS, convolution_of
from kernels.catalog.convolution.separable import SeparableTile, separable_tile
from kernels.ir.graph import Graph, Node
from kernels.options import Limits, Options

BY_HOST = ("opencl",)
"""APIs through which the host launches each step; Vulkan's are recorded once."""


@dataclass(frozen=True)
class Within:
    """A depthwise convolution that its reader computes, and how that does it."""

    depthwise: Node
    tile: SeparableTile


def separable_layers(graph: Graph, options: Options, limits: Limits) -> dict[str, Within]:
    """By the depthwise convolution's output.

    Where the host launches each step, on a GPU with memory of its own, and nobody says how convolutions are computed:
    a launch through OpenCL takes such a GPU longer than one of these layers (docs/decisions/0186).
    """
    by_host = options.backend in BY_HOST and not limits.unified_memory and not limits.cpu_device
    wanted = "depthwise" in options.fusions and options.layout == "buffer" and options.precision != "int8"
    if not by_host or not wanted or options.precision == "fp16_arithmetic":
        return {}
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    found: dict[str, Within] = {}
    for node in graph.nodes:
        if node.op != "conv" or node.output in graph.outputs or len(readers.get(node.output, [])) != 1:
            continue
        (reader,) = readers[node.output]
        tile = _tile(graph, node, reader, options, limits)
        if tile is not None:
            found[node.output] = Within(node, tile)
    return found


def _tile(graph: Graph, depthwise: Node, reader: Node, options: Options, limits: Limits) -> SeparableTile | None:
    if reader.op != "conv" or reader.inputs[0] != depthwise.output or len(depthwise.inputs) > 3:
        return None
    first, last = convolution_of(graph, depthwise), convolution_of(graph, reader)
    alone = last.kernel == (1, 1) and last.strides == (1, 1) and not any(last.pads) and last.groups == 1
    constant = all(name in graph.constants for node in (depthwise, reader) for name in node.inputs[1:3] if name)
    is_open = all(CONVOLUTIONS.is_open(options.of(node.name)) for node in (depthwise, reader))
    if not (first.is_depthwise and alone and constant and is_open):
        return None
    return separable_tile(first, last, options, limits)
