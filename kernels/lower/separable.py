"""The depthwise convolutions, gates and choices of channels that the 1x1 convolutions behind them compute."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.catalog.convolution import CONVOLUTIONS, Convolution, convolution_of
from kernels.catalog.convolution.separable import KERNEL, TAKING, SeparableTile, separable_tile
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.taking import taken_channels
from kernels.options import Limits, Options


def may_merge(fusion: str, options: Options, limits: Limits) -> bool:
    """Return whether a step may compute the layer before it: only GPUs with memory of their own are quicker so."""
    large = not limits.unified_memory and not limits.cpu_device
    plain = options.precision not in ("int8", "fp16_arithmetic")
    return large and plain and fusion in options.fusions


@dataclass(frozen=True)
class Within:
    """A depthwise convolution, a gate or a choice of channels that its reader computes, and how that does it."""

    node: Node
    source: str
    """The tensor whose windows it reads."""
    gates: str
    """A number for each picture and channel; empty: it is a convolution."""
    sizes: Convolution
    """A gate, or a choice of channels, is a convolution of single pixels."""
    tile: SeparableTile

    @property
    def takes(self) -> bool:
        """True if it is a choice of channels."""
        return self.node.op == "take"

    @property
    def reads(self) -> tuple[str, ...]:
        """Tensors that must live until the reader is computed."""
        return (self.source, self.gates) if self.gates else (self.source,)


def separable_layers(graph: Graph, options: Options, limits: Limits) -> dict[str, Within]:
    """Return layers that are computed within their reader, by the output of the node that is no step.

    On a GPU with memory of its own, where nobody says how convolutions are computed and one step takes less time than
    two.
    """
    if not may_merge("depthwise", options, limits):
        return {}
    counts, writers = use_counts(graph), producers(graph)
    found: dict[str, Within] = {}
    for reader in graph.nodes:
        node = writers.get(reader.inputs[0]) if reader.op == "conv" and _is_alone(graph, reader, options) else None
        if node is None or counts[node.output] != 1:
            continue
        last, (source, gates, first) = convolution_of(graph, reader), _windows(graph, node, options)
        kernel = TAKING if node.op == "take" else KERNEL
        tile = separable_tile(first.kernel, last, options, limits, kernel) if first else None
        if first and tile:
            found[node.output] = Within(node, source, gates, first, tile)
    return found


def _is_alone(graph: Graph, conv: Node, options: Options) -> bool:
    """Return whether a convolution reads one pixel for each of its own, and may be computed in any way."""
    sizes = convolution_of(graph, conv)
    of_pixels = sizes.kernel == sizes.strides == (1, 1) and not any(sizes.pads) and sizes.groups == 1
    return of_pixels and _is_open(graph, conv, options)


def _is_open(graph: Graph, conv: Node, options: Options) -> bool:
    constant = all(name in graph.constants for name in conv.inputs[1:3] if name)
    return constant and CONVOLUTIONS.is_open(options.of(conv.name))


def _windows(graph: Graph, node: Node, options: Options) -> tuple[str, str, Convolution | None]:
    """Return the tensors that a depthwise convolution, a gate or a choice of channels reads, and its sizes, None if it
    is none."""
    if node.op == "conv":
        sizes = convolution_of(graph, node)
        fits = sizes.is_depthwise and len(node.inputs) <= 3 and _is_open(graph, node, options)
        return node.inputs[0], "", sizes if fits else None
    shape = graph.shapes[node.output]
    if node.op == "take" and taken_channels(graph, node) is not None:
        return node.inputs[0], "", _single_pixels(shape)
    multiplies = node.op == "map" and node.attributes["expression"] in (("mul", "a", "b"), ("mul", "b", "a"))
    if not multiplies or len(shape) != 4 or not graph.constants.keys().isdisjoint(node.inputs):
        return "", "", None
    for source, gates in (node.inputs, node.inputs[::-1]):
        if graph.shapes[source] == shape and graph.shapes[gates] == (*shape[:2], 1, 1):
            return source, gates, _single_pixels(shape)
    return "", "", None


def _single_pixels(shape: tuple[int, ...]) -> Convolution:
    n, c, h, w = shape
    one = (1, 1)
    return Convolution(n, c, h, w, c, h, w, one, one, (0, 0, 0, 0), one, c)
