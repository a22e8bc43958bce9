"""Convolutions on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kernels.catalog.desktop.convolution import MatrixUnits
from kernels.catalog.family import Algorithm, GpuFamily, alike, registry, trial_graph
from kernels.ir.graph import Array, Graph, Node
from kernels.options import Choice, Limits, Options

from .depthwise import Depthwise
from .direct import Direct
from .dot import Dot
from .im2col import Im2col
from .implicit_gemm import ImplicitGemm
from .pointwise import Pointwise
from .scalar import Scalar
from .sizes import Convolution, convolution_of
from .window import Window
from .winograd import Winograd

DOT = (
    Dot("dot", "study S's kernel: outputs of a work-item (`dot 6`) that divide the channels into fours, in a buffer"),
    Dot("dot_uneven", "study S's kernel with any number of outputs a work-item", uneven=True),
)
_USUAL = Winograd("winograd", "the largest tile that the precision allows", {})
_LARGE = Winograd(
    "winograd_large",
    "tiles of 8x8 inputs: 6x6 outputs of 3x3, 4x4 of 5x5, 5x5 of 7x7 in four parts, 6x6 of 9x9 in nine",
    {3: 6, 5: 4, 7: 5, 9: 6},
)
ALGORITHMS = registry(
    Depthwise(),
    Pointwise(),
    Window(),
    Direct(),
    ImplicitGemm(),
    Im2col(),
    _USUAL,
    _LARGE,
    Winograd("winograd_2x2", "tiles of 2x2 outputs", {3: 2, 5: 2}),
    Winograd("winograd_4x4", "tiles of 4x4 outputs", {3: 4}),
    MatrixUnits(),
    *DOT,
    Scalar(),
)
"""The most specialised first: the default of a phone is the first that fits."""

_WINOGRAD_CHANNELS = 32
_WINOGRAD_PIXELS = 196
"""The fewest channels and outputs of all pictures for which tiles of 4x4 outputs paid on a desktop GPU (decision
0019)."""
_WINOGRAD_SAVES = 0.6
"""Part of the products that may be left: of small pictures most of a tile lies beyond the edge."""
_UNIT, _UNIT_PIXELS = 16, 4
"""Rows and columns of the usual matrix of matrix units, and pixels from which on they paid."""
_LARGE_SAVES = 0.85
"""Part of the products up to which larger tiles are taken: measured from 90 x 124 outputs on, where it is 0.79."""
_POCL_WINOGRAD_CHANNELS = 16
_POCL_WINOGRAD_PIXELS = {"winograd": 100, "winograd_2x2": 16}
"""The fewest channels and outputs for which each paid on PoCL."""
_WINOGRAD_GROWTH = 4
"""Winograd's weights, and its workspace, are so much larger than the plain ones at most."""


class Convolutions(GpuFamily[Convolution]):
    """Every way to convolve."""

    option = "algorithm"
    tile_options = ("granularity", "pixels")
    ops = ("conv",)
    algorithms = ALGORITHMS

    def sizes(self, graph: Graph, node: Node) -> Convolution:
        """Read a conv node's sizes."""
        return convolution_of(graph, node)

    def default(self, options: Options, limits: Limits, sizes: Convolution) -> str:
        """Choose by the kind of device; take the first that fits if an algorithm, a granularity or pixels were asked
        for."""
        if options.granularity % 4 and options.algorithm == "auto":
            for entry in DOT:
                if entry.why_not(sizes, options, limits) is None:
                    return entry.name
        if self.is_open(options) and not limits.unified_memory and not limits.cpu_device:
            return _for_desktop(options, limits, sizes)
        if self.is_open(options) and limits.cpu_device and options.backend == "opencl":
            return _for_pocl(options, limits, sizes)
        return _first(ALGORITHMS, sizes, options, limits)

    def footprint_bytes(self, sizes: Convolution, choice: Choice) -> int:
        """Its weights, result and workspace."""
        kh, kw = sizes.kernel
        weight = sizes.k * sizes.c // sizes.groups * kh * kw
        result = sizes.n * sizes.k * sizes.oh * sizes.ow
        if choice.algorithm.startswith("winograd"):
            return 4 * _WINOGRAD_GROWTH * (weight + result)
        workspace = sizes.n * sizes.c * kh * kw * sizes.oh * sizes.ow if choice.algorithm == "im2col" else 0
        return 4 * (weight + result + workspace)

    def trial(self, sizes: Convolution, names: Sequence[str]) -> Graph:
        """All of one input and with one weight."""
        constants = random_constants(sizes)
        nodes = [conv_node(sizes, name, "x", tuple(constants)) for name in names]
        result = (sizes.n, sizes.k, sizes.oh, sizes.ow)
        return trial_graph({"x": (sizes.n, sizes.c, sizes.h, sizes.w)}, nodes, alike(nodes, result), constants)


CONVOLUTIONS = Convolutions()


def _first(names: Iterable[str], conv: Convolution, options: Options, limits: Limits) -> str:
    return next(name for name in names if ALGORITHMS[name].why_not(conv, options, limits) is None)


def _for_desktop(options: Options, limits: Limits, conv: Convolution) -> str:
    """Take matrix units, or local memory, except for one filter a channel and groups; Winograd where it pays."""
    least = min(conv.c, conv.k)
    if _on_units(conv) and ALGORITHMS["matrix_units"].why_not(conv, options, limits) is None:
        return "matrix_units"
    pixels = conv.n * conv.oh * conv.ow
    wide = least >= _WINOGRAD_CHANNELS and pixels >= _WINOGRAD_PIXELS and not options.half
    if wide and _LARGE.why_not(conv, options, limits) is None and _has_room(_LARGE, conv, options, limits):
        is_alone = _USUAL.why_not(conv, options, limits) is not None
        saves = is_alone or _LARGE.products(conv, options) < _LARGE_SAVES * _USUAL.products(conv, options)
        chosen = _LARGE if saves else _USUAL
        if chosen.products(conv, options) < _WINOGRAD_SAVES * pixels * conv.kernel[0] * conv.kernel[1]:
            return chosen.name
    return _first(("depthwise", "implicit_gemm", "direct"), conv, options, limits)


def _on_units(conv: Convolution) -> bool:
    """Return whether matrix units pay: whether pixels, channels and the depth of the product fill a matrix."""
    depth = conv.c // conv.groups * conv.kernel[0] * conv.kernel[1]
    return conv.n * conv.oh * conv.ow >= _UNIT_PIXELS and min(conv.k // conv.groups, depth) >= _UNIT


def _for_pocl(options: Options, limits: Limits, conv: Convolution) -> str:
    """Minimal filtering where it fits: its product is in registers, and there are few values to transform."""
    if min(conv.c, conv.k) >= _POCL_WINOGRAD_CHANNELS and not options.half:
        for name, pixels in _POCL_WINOGRAD_PIXELS.items():
            entry = ALGORITHMS[name]
            fits = entry.why_not(conv, options, limits) is None and _has_room(entry, conv, options, limits)
            if conv.oh * conv.ow >= pixels and fits:
                return name
    return _first(ALGORITHMS, conv, options, limits)


def _has_room(entry: Algorithm[Convolution], conv: Convolution, options: Options, limits: Limits) -> bool:
    """Return whether a buffer holds its filters, which Winograd enlarges: `split_weights` divides them as the model has
    them."""
    if not isinstance(entry, Winograd) or not limits.max_buffer_bytes:
        return True
    return entry.weight_bytes(conv, options) <= limits.max_buffer_bytes


def random_constants(sizes: Convolution) -> dict[str, Array]:
    """Random ones: `weight`, `bias`."""
    rng = np.random.default_rng(1)
    window = (sizes.k, sizes.c // sizes.groups, *sizes.kernel)
    fan_in = sizes.c // sizes.groups * sizes.kernel[0] * sizes.kernel[1]
    weight = (rng.standard_normal(window) * fan_in**-0.5).astype(np.float32)
    return {"weight": weight, "bias": rng.standard_normal(sizes.k).astype(np.float32)}


def conv_node(sizes: Convolution, name: str, source: str, constants: tuple[str, ...]) -> Node:
    """The layer as a node."""
    attributes: dict[str, Any] = {
        "strides": sizes.strides, "pads": sizes.pads, "dilations": sizes.dilations, "groups": sizes.groups,
    }  # fmt: skip
    if sizes.mirrored:
        attributes["pad_mode"] = "reflect"
    return Node(name, "conv", (source, *constants), (f"{name}:0",), attributes)


__all__ = ["ALGORITHMS", "CONVOLUTIONS", "Convolution", "conv_node", "convolution_of", "random_constants"]
