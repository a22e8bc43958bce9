"""Sizes of one transposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kernels.ir.graph import Graph, Node


@dataclass(frozen=True)
class Transposition:
    """Sizes of the result's axes, and the source's strides in their order; four of each."""

    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        return f"transpose {'x'.join(map(str, self.sizes))} s{'.'.join(map(str, self.strides))}"

    @property
    def source_axis(self) -> int:
        """The result's axis along which the source lies contiguously; of those, the longest."""
        found = [axis for axis in range(4) if self.strides[axis] == 1]
        return max(found, key=lambda axis: self.sizes[axis], default=3)


def transpose_of(old: Sequence[int], perm: Sequence[int]) -> Transposition:
    """Result axis i is the source's axis perm[i]; shapes of up to four axes."""
    strides = [prod(old[axis + 1 :]) for axis in range(len(old))]
    missing = 4 - len(old)
    sizes = [1] * missing + [old[axis] for axis in perm]
    steps = [0] * missing + [strides[axis] for axis in perm]
    return Transposition((sizes[0], sizes[1], sizes[2], sizes[3]), (steps[0], steps[1], steps[2], steps[3]))


def transposition_of(graph: Graph, node: Node) -> Transposition:
    """Read the sizes of a transpose node."""
    return transpose_of(graph.shapes[node.inputs[0]], tuple(node.attributes["perm"]))
