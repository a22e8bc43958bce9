"""Any permutation of up to four axes of a row-major array (study P) on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kernels.catalog.family import GpuFamily, alike, registry, trial_graph
from kernels.ir.graph import Graph, Node
from kernels.options import Choice, Limits, Options

from .naive import Naive
from .sizes import Transposition, transpose_of, transposition_of
from .tiled import Tiled

ALGORITHMS = registry(Naive(), Tiled())

_TILED_EDGE = 16
"""The length of axes from which on squares pay on a GPU."""


class Transpositions(GpuFamily[Transposition]):
    """Every way to transpose."""

    option = "transpose"
    ops = ("transpose",)
    algorithms = ALGORITHMS

    def sizes(self, graph: Graph, node: Node) -> Transposition:
        """Read the sizes of a transpose node."""
        return transposition_of(graph, node)

    def has_choice(self, graph: Graph, node: Node) -> bool:
        """Return whether the last axis moves; if it stays there is one way only."""
        return self.sizes(graph, node).source_axis != 3

    def default(self, options: Options, limits: Limits, sizes: Transposition) -> str:
        """Choose by the kind of device."""
        large = min(sizes.sizes[3], sizes.sizes[sizes.source_axis]) >= _TILED_EDGE and not limits.cpu_device
        return "tiled" if large and ALGORITHMS["tiled"].why_not(sizes, options, limits) is None else "naive"

    def footprint_bytes(self, sizes: Transposition, choice: Choice) -> int:
        """Its result."""
        return 4 * prod(sizes.sizes)

    def trial(self, sizes: Transposition, names: Sequence[str]) -> Graph:
        """All of one input, whose axes lie in the order of their strides."""
        real = [axis for axis in range(4) if sizes.strides[axis]]
        # an axis of one element has the stride of the longer one before it
        order = sorted(real, key=lambda axis: (-sizes.strides[axis], -sizes.sizes[axis]))
        perm = tuple(order.index(axis) for axis in real)
        nodes = [Node(name, "transpose", ("x",), (f"{name}:0",), {"perm": perm}) for name in names]
        shapes = alike(nodes, tuple(sizes.sizes[axis] for axis in real))
        return trial_graph({"x": tuple(sizes.sizes[axis] for axis in order)}, nodes, shapes, {})


TRANSPOSITIONS = Transpositions()

__all__ = ["ALGORITHMS", "TRANSPOSITIONS", "Transposition", "transpose_of", "transposition_of"]
