"""Algorithms of convolution on the CPU: which fits, and which `auto` takes."""

from __future__ import annotations

from collections.abc import Callable

from kernels.catalog import Convolution, convolution_of
from kernels.errors import OptionError
from kernels.ir.graph import Graph, Node
from kernels.options import Options

from .packing import BLOCK, WINOGRAD_TILE


def _depthwise(conv: Convolution) -> bool:
    return conv.is_depthwise


def _winograd(conv: Convolution) -> bool:
    alone = conv.kernel == (3, 3) and conv.strides == (1, 1) and conv.dilations == (1, 1)
    return alone and conv.groups == 1 and conv.c >= BLOCK


def _implicit_gemm(conv: Convolution) -> bool:
    return conv.groups == 1 or (conv.c // conv.groups % BLOCK == 0 and conv.k // conv.groups % BLOCK == 0)


def _direct(_: Convolution) -> bool:
    return True


FITS: dict[str, Callable[[Convolution], bool]] = {
    "depthwise": _depthwise,
    "winograd": _winograd,
    "implicit_gemm": _implicit_gemm,
    "direct": _direct,
    "im2col": _direct,
    "sequential": _direct,
}
"""Algorithm -> whether it fits a convolution. `direct` packs windows as it goes; `im2col` writes the matrix of windows
out first (study C); `sequential` is the definition on one thread, of fully connected layers too."""

IN_BLOCKS = frozenset({"depthwise", "winograd", "implicit_gemm"})
"""Those that work on blocks of sixteen channels."""


def check_algorithm(asked: str, convolutions: list[Convolution]) -> None:
    """OptionError where the algorithm is unknown, or fits no convolution of the network."""
    if asked == "auto":
        return
    if asked not in FITS:
        raise OptionError(
            f"algorithm {asked!r} is not one of the CPU backend; it can use: {', '.join(('auto', *FITS))}"
        )
    if convolutions and not any(FITS[asked](conv) for conv in convolutions):
        fitting = [name for name, fits in FITS.items() if any(fits(conv) for conv in convolutions)]
        raise OptionError(
            f"algorithm {asked!r} fits no convolution of this network on the CPU; it can use: "
            f"{', '.join(('auto', *fitting))}"
        )


def choose_algorithm(options: Options, graph: Graph, node: Node) -> str:
    """As `choose`, of a node. Weights that are computed cannot be reordered: they leave no choice."""
    return choose(options, node.name, convolution_of(graph, node)) if has_choice(graph, node) else "direct"


def has_choice(graph: Graph, node: Node) -> bool:
    """Whether the weights of a convolution are known when the plan is made."""
    return all(name in graph.constants for name in node.inputs[1:3] if name)


def choose(options: Options, layer: str, conv: Convolution) -> str:
    """The asked algorithm where it fits; with `auto` the tuned one; else what needs least work."""
    asked = options.algorithm
    if asked == "auto":
        tuned = options.tuned.get(layer) or options.tuned.get(conv.key)
        asked = tuned.algorithm if tuned else asked
    if asked in FITS and FITS[asked](conv):
        return asked
    if conv.is_depthwise:
        return "depthwise"
    if _winograd(conv) and winograd_pays(conv):
        return "winograd"
    return "implicit_gemm" if _implicit_gemm(conv) else "direct"


def winograd_pays(conv: Convolution) -> bool:
    """Whether a product for each of 36 positions, its weights four times as many, beats nine taps."""
    tiles = conv.n * -(-conv.oh // WINOGRAD_TILE) * -(-conv.ow // WINOGRAD_TILE)
    return min(conv.c, conv.k) >= BLOCK and tiles >= 8
