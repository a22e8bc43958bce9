"""Adding (and multiplying) two tensors number by number (study P's vector addition) on OpenCL and Vulkan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.catalog.family import GpuFamily, alike, registry, trial_graph
from kernels.ir.graph import Array, Graph, Node
from kernels.options import Choice, Limits, Options

from .sizes import Addition, addition_of
from .vectors import Vectors

ALGORITHMS = registry(Vectors())


class Additions(GpuFamily[Addition]):
    """Every way to add."""

    option = "addition"
    ops = ("add", "mul")
    algorithms = ALGORITHMS

    def sizes(self, graph: Graph, node: Node) -> Addition:
        """Read the sizes of an add or mul node."""
        return addition_of(graph, node)

    def default(self, options: Options, limits: Limits, sizes: Addition) -> str:
        """Vectors, on every device."""
        return "vectors"

    def footprint_bytes(self, sizes: Addition, choice: Choice) -> int:
        """Its result."""
        return 16 * sizes.pictures * sizes.vectors

    def trial(self, sizes: Addition, names: Sequence[str]) -> Graph:
        """Sums of two inputs, or of one and a number a channel."""
        shape = (sizes.pictures, 4, sizes.vectors, 1)
        inputs: dict[str, tuple[int, ...]] = {"x": shape}
        constants: dict[str, Array] = {}
        if sizes.by_channel:
            constants["y"] = np.random.default_rng(1).standard_normal((1, 4, 1, 1)).astype(np.float32)
        else:
            inputs["y"] = shape
        nodes = [Node(name, "add", ("x", "y"), (f"{name}:0",)) for name in names]
        return trial_graph(inputs, nodes, alike(nodes, shape), constants)


ADDITIONS = Additions()

__all__ = ["ADDITIONS", "ALGORITHMS", "Addition", "addition_of"]
