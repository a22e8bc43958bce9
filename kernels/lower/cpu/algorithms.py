"""Algorithms of convolution on the CPU backend: an algorithm, no tile.

Most of a network is in blocks of sixteen channels there (docs/architecture/engine-cpu.md). A
row-major algorithm between such neighbours has its input and result converted, which a layer alone would not show: in a
trial each candidate stands between two layers in blocks, and the conversions count as its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from kernels.catalog.convolution import Convolution, conv_node, convolution_of, random_constants
from kernels.catalog.family import Family, Untiled, trial_graph
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.packed import is_finite
from kernels.options import Choice, Limits, Options

from .packing import BLOCK, WINOGRAD_TILE

_SEQUENTIAL_FLOPS = 1_000_000
"""The most operations of a layer that one thread may compute by its definition: about what meeting the other threads
costs, with a wide margin."""
_MOST_JOINED = 8
"""Groups that are computed as one, with zeros between them: a product in blocks does as many times the work of the
row-major one in the same time (7 to 8 here)."""
_WIDTHS = (2, 4, 8)
"""Channels of groups that `depthwise` takes, which lie in a block of sixteen."""
_TIMES = (1, 2, 4, 8, 16)
"""Filters that each channel may have."""
_WINOGRAD_GROWTH = 4
"""36 transformed weights for nine."""


@dataclass(frozen=True)
class CpuAlgorithm(Untiled[Convolution]):
    """One way to convolve."""

    name: str
    summary: str
    unfit: Callable[[Convolution], str | None] = lambda _: None
    """Return why it does not fit; None: it does."""
    in_blocks: bool = False
    """True if it works on blocks of sixteen channels."""
    most_flops: int = 0
    """The most operations of a layer on which it is worth trying; 0: any."""

    def why_not(self, sizes: Convolution, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does."""
        return self.unfit(sizes) or super().why_not(sizes, options, limits, tile)

    def tiles(self, sizes: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """The empty word, where it is worth trying."""
        return [] if self.most_flops and sizes.flops > self.most_flops else [""]


def _not_depthwise(conv: Convolution) -> str | None:
    width = conv.c // conv.groups
    if has_own_filters(conv) and conv.k in (times * conv.c for times in _TIMES):
        return None
    if conv.groups > 1 and width in _WIDTHS and conv.k == conv.c and conv.dilations[1] == 1:
        return None
    return (
        f"it has neither {_TIMES} filters for each channel nor groups of {_WIDTHS} inputs and outputs without gaps in "
        "their rows"
    )


def _not_winograd(conv: Convolution) -> str | None:
    if conv.kernel != (3, 3) or conv.strides != (1, 1) or conv.dilations != (1, 1):
        return "its window is not 3x3 with stride and dilation 1"
    return None if conv.groups == 1 and conv.c >= BLOCK else f"it has groups, or fewer than {BLOCK} input channels"


def joined_groups(conv: Convolution) -> int:
    """Groups that make whole blocks of channels together; 0 where no number of them does, or only too many."""
    if conv.groups == 1:
        return 1
    inputs, outputs = conv.c // conv.groups, conv.k // conv.groups
    least = max(BLOCK // gcd(inputs, BLOCK), BLOCK // gcd(outputs, BLOCK))
    return least if least <= _MOST_JOINED and conv.groups % least == 0 else 0


def _not_implicit_gemm(conv: Convolution) -> str | None:
    return None if joined_groups(conv) else f"no few of its groups are whole blocks of {BLOCK} channels together"


ALGORITHMS = {
    entry.name: entry
    for entry in (
        CpuAlgorithm("depthwise", "filters for each channel, or groups of 2, 4, 8", _not_depthwise, in_blocks=True),
        CpuAlgorithm("winograd", "minimal filtering, tiles of 4x4 outputs", _not_winograd, in_blocks=True),
        CpuAlgorithm("implicit_gemm", "matrix product of the windows", _not_implicit_gemm, in_blocks=True),
        CpuAlgorithm("direct", "windows packed as it goes"),
        CpuAlgorithm("im2col", "the matrix of windows written out first (study C)"),
        CpuAlgorithm(
            "sequential", "the definition on one thread, of dense layers too", most_flops=_SEQUENTIAL_FLOPS
        ),
    )
}  # fmt: skip


INT8 = CpuAlgorithm("int8", "products in 8 bits, in a plan of precision int8", in_blocks=True)
"""An algorithm of no axis: the precision chooses it."""
INT8_DEPTH = 65536
"""Products of 8 bits that a sum of 32 bits holds."""


def int8_fits(conv: Convolution, weight: Array) -> bool:
    """Return whether a convolution can be computed in 8 bits: by its groups, its depth, and finite weights."""
    if joined_groups(conv) != 1 and not has_own_filters(conv):
        return False
    c = 1 if has_own_filters(conv) else -(-(conv.c // conv.groups) // BLOCK) * BLOCK
    return c * conv.kernel[0] * conv.kernel[1] <= INT8_DEPTH and bool(np.isfinite(weight).all())


def has_own_filters(conv: Convolution) -> bool:
    """Return whether each input channel has filters of its own: one like a depthwise layer, or more."""
    return conv.groups > 1 and conv.groups == conv.c


class CpuConvolutions(Family[Convolution]):
    """Every way to convolve on CPU threads."""

    option = "algorithm"
    ops = ("conv",)
    algorithms = ALGORITHMS

    def sizes(self, graph: Graph, node: Node) -> Convolution:
        """Read a conv node's sizes."""
        return convolution_of(graph, node)

    def has_choice(self, graph: Graph, node: Node) -> bool:
        """Weights that are computed cannot be reordered: they leave no choice."""
        return all(name in graph.constants for name in node.inputs[1:3] if name)

    def default(self, options: Options, limits: Limits, sizes: Convolution) -> str:
        """Choose the algorithm that needs least work."""
        if self.fits(Choice("depthwise"), sizes, options, limits):
            return "depthwise"
        if self.fits(Choice("winograd"), sizes, options, limits) and winograd_pays(sizes):
            return "winograd"
        return "implicit_gemm" if self.fits(Choice("implicit_gemm"), sizes, options, limits) else "direct"

    def check(self, options: Options, limits: Limits, cases: Sequence[tuple[str, Convolution]]) -> None:
        """Check like every family, but take any algorithm for a network without convolutions: dense layers heed
        `sequential`."""
        if cases or options.algorithm not in self.algorithms:
            super().check(options, limits, cases)

    def footprint_bytes(self, sizes: Convolution, choice: Choice) -> int:
        """Its weights, its input and result in both layouts, and the matrix of windows."""
        kh, kw = sizes.kernel
        weight = sizes.k * sizes.c // sizes.groups * kh * kw
        images = sizes.n * (sizes.c * sizes.h * sizes.w + sizes.k * sizes.oh * sizes.ow)
        columns = sizes.c // sizes.groups * kh * kw * sizes.oh * sizes.ow if choice.algorithm == "im2col" else 0
        growth = {"winograd": _WINOGRAD_GROWTH, "implicit_gemm": joined_groups(sizes)}.get(choice.algorithm, 1)
        return 4 * (growth * weight + 2 * images + columns)

    def trial(self, sizes: Convolution, names: Sequence[str]) -> Graph:
        """Each between two layers in blocks that do as good as nothing; few channels come from rows, as images do."""
        constants = random_constants(sizes)
        source, result = (sizes.n, sizes.c, sizes.h, sizes.w), (sizes.n, sizes.k, sizes.oh, sizes.ow)
        nodes: list[Node] = []
        shapes: dict[str, tuple[int, ...]] = {}
        scales: dict[str, Array] = {"after": np.ones((sizes.k, 1, 1, 1), np.float32)}
        if sizes.c >= BLOCK:
            scales["before"] = np.ones((sizes.c, 1, 1, 1), np.float32)
        for name in names:
            before = _scaled(f"{name}:before", "x", "before", sizes.c)
            own = conv_node(sizes, name, before.output if "before" in scales else "x", tuple(constants))
            after = _scaled(f"{name}:after", own.output, "after", sizes.k)
            nodes += [before, own, after] if "before" in scales else [own, after]
            shapes |= {before.output: source} if "before" in scales else {}
            shapes |= {own.output: result, after.output: result}
        return trial_graph({"x": source}, nodes, shapes, {**constants, **scales})


CPU_CONVOLUTIONS = CpuConvolutions()


def algorithm_of(options: Options, graph: Graph, node: Node) -> CpuAlgorithm:
    """The algorithm of a conv node; `direct` where there is no choice."""
    if not CPU_CONVOLUTIONS.has_choice(graph, node):
        return ALGORITHMS["direct"]
    if in_int8(options, graph, node):
        return INT8
    choice = CPU_CONVOLUTIONS.choose(options, Limits(), node.name, convolution_of(graph, node))
    return ALGORITHMS[choice.algorithm]


def in_int8(options: Options, graph: Graph, node: Node) -> bool:
    """Return whether a node is computed in 8 bits: by the precision, or as the model says."""
    return (options.precision == "int8" or rounds_input(node)) and fits_int8(options, graph, node)


def reads_panels(options: Options, graph: Graph, node: Node) -> bool:
    """Return whether a dense layer's weights are stored in the order in which its product reads them."""
    stored = all(name in graph.constants for name in node.inputs[1:3] if name)
    return stored and options.algorithm not in ("direct", "sequential")


def rounds_input(node: Node) -> bool:
    """Return whether a layer rounds its input as the model says (`kernels/passes/int8/pairs.py`)."""
    return "input_steps" in node.attributes or "own_range" in node.attributes


def fits_int8(options: Options, graph: Graph, node: Node) -> bool:
    """Return whether a node can be computed in 8 bits."""
    if options.algorithm != "auto" or node.op not in ("conv", "dense"):
        return False
    if any(name not in graph.constants for name in node.inputs[1:3] if name):
        return False
    weight = graph.constants[node.inputs[1]]
    if node.op == "conv":
        return int8_fits(convolution_of(graph, node), weight)
    return weight.shape[0] <= INT8_DEPTH and is_finite(weight)


def winograd_pays(conv: Convolution) -> bool:
    """Return whether a product for each of 36 positions, its weights four times as many, beats nine taps."""
    tiles = conv.n * -(-conv.oh // WINOGRAD_TILE) * -(-conv.ow // WINOGRAD_TILE)
    return conv.c >= BLOCK and tiles >= 8  # few outputs fill up a block either way


def _scaled(name: str, source: str, weight: str, channels: int) -> Node:
    attributes = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "groups": channels}
    return Node(name, "conv", (source, weight), (f"{name}:0",), attributes)
