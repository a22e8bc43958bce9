"""Sizes of adding (and multiplying) two tensors number by number."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.ir.dims import dims_of, has_channels
from kernels.ir.graph import Graph, Node


@dataclass(frozen=True)
class Addition:
    """Two tensors of `pictures` x `vectors` vectors of four."""

    pictures: int
    vectors: int
    by_channel: bool = False
    """The second is one vector a stack of channels."""

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        return f"addition n{self.pictures} v{self.vectors}{' by channel' if self.by_channel else ''}"


def addition_of(graph: Graph, node: Node) -> Addition:
    """Read the sizes of an add or mul node."""
    dims = dims_of(graph.shapes[node.output])
    constant_one = next((name for name in node.inputs[:2] if name in graph.constants), None)
    by_channel = constant_one is not None and _is_by_channel(graph.shapes[constant_one], graph.shapes[node.output])
    return Addition(dims.n, dims.stacks * dims.hw, by_channel)


def _is_by_channel(b: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a constant varies along the channels only."""
    if not has_channels(shape):
        return False
    full = (1,) * (len(shape) - len(b)) + b
    return len(full) == len(shape) and all(size == 1 for axis, size in enumerate(full) if axis != 1)
