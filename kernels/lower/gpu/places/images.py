"""The activations that lie in images, and how large these are."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.catalog.convolution import CONVOLUTIONS
from kernels.ir.dims import Dims
from kernels.ir.graph import Graph, Node
from kernels.options import Limits, Options
from kernels.plan.model import Image

_BY_LANES = "winograd"
"""The beginning of the names of algorithms whose last kernel writes single channels, which it cannot do in an image."""


class ImageChoice:
    """Every activation with pixels lies in an image unless a kernel must write its lanes singly, or it is too large.

    Parts of a concat that are written in place lie where the whole does, so they decide together.
    """

    def __init__(self, graph: Graph, options: Options, limits: Limits, aliases: Mapping[str, tuple[str, int]]) -> None:
        self._most = limits.image_size
        self._refused: dict[str, str] = {}
        for node in graph.nodes:
            why = _writes_lanes(graph, node, options, limits, aliases)
            if why:
                self._refused.setdefault(_root(node.output, aliases), f"{node.name}: {why}")

    def of(self, tensor: str, dims: Dims, *, half: bool) -> tuple[Image | None, str]:
        """The image of a tensor that is no part of another; else None, and why."""
        if dims.hw == 1:
            return None, "it has one pixel"
        if tensor in self._refused:
            return None, self._refused[tensor]
        width, height = dims.w, dims.n * dims.stacks * dims.h
        if width > self._most[0] or height > self._most[1]:
            return None, f"its image of {width} x {height} exceeds the device's {self._most[0]} x {self._most[1]}"
        return Image(width=width, height=height, format="rgba16f" if half else "rgba32f"), ""


def _root(tensor: str, aliases: Mapping[str, tuple[str, int]]) -> str:
    while tensor in aliases:
        tensor = aliases[tensor][0]
    return tensor


def _writes_lanes(
    graph: Graph, node: Node, options: Options, limits: Limits, aliases: Mapping[str, tuple[str, int]]
) -> str:
    """Return why a node cannot write an image; empty: it can."""
    if node.op == "conv":
        sizes = CONVOLUTIONS.sizes(graph, node)
        chosen = CONVOLUTIONS.choose(options.of(node.name), limits, node.name, sizes).algorithm
        return "winograd writes channels singly" if chosen.startswith(_BY_LANES) else ""
    if node.op == "concat" and any(aliases.get(name, ("", 0))[0] != node.output for name in node.inputs):
        return "parts of the concat are copied"
    return ""
