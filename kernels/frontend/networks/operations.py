"""Study P's operations, each as a workload of its own at a size in its name; every operand but weights is an input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kernels.ir.graph import Graph, Node

from .builder import NetworkBuilder

CHANNELS = 32
"""Channels of the convolution, in and out."""


@dataclass(frozen=True)
class Family:
    """One operation at several sizes: workloads `<name>_<size>`."""

    name: str
    meaning: str
    """Meaning of the size."""
    sizes: tuple[int, ...]
    build: Callable[[int, int | None, int], Graph]
    """Size, seed and batch to a graph."""

    def workload(self, size: int) -> str:
        """The name of one size."""
        return f"{self.name}_{size}"


def _product(size: int, seed: int | None, batch: int) -> Graph:
    del seed
    return _single(f"matmul_{size}", Node("product", "matmul", ("a", "b"), ("product",)), (batch, size, size))


def _convolution(size: int, seed: int | None, batch: int) -> Graph:
    net = NetworkBuilder(f"conv3x3_{size}", seed, (batch, CHANNELS, size, size))
    return net.finish(net.conv("convolution", net.input, CHANNELS, 3, pad=1))


def _matrix_vector(size: int, seed: int | None, batch: int) -> Graph:
    """A dense layer: what networks multiply a vector by is a weight."""
    net = NetworkBuilder(f"matvec_{size}", seed, (batch, size))
    return net.finish(net.dense("product", net.input, size, gain=1.0))


def _transposition(size: int, seed: int | None, batch: int) -> Graph:
    del seed
    node = Node("transposed", "transpose", ("a",), ("transposed",), {"perm": (0, 2, 1)})
    return _single(f"transpose_{size}", node, (batch, size, size))


def _addition(size: int, seed: int | None, batch: int) -> Graph:
    del seed
    return _single(f"add_{size}", Node("sum", "add", ("a", "b"), ("sum",)), (batch, size))


def _single(name: str, node: Node, shape: tuple[int, ...]) -> Graph:
    """One node whose operands and result have one shape."""
    return Graph(name, node.inputs, node.outputs, [node], dict.fromkeys((*node.inputs, *node.outputs), shape), {})


FAMILIES = {
    family.name: family
    for family in (
        Family("matmul", "n of an n x n x n product", tuple(1 << i for i in range(4, 13)), _product),
        Family("matvec", "n of a dense layer from n to n numbers", tuple(1 << i for i in range(4, 13)), _matrix_vector),
        Family("conv3x3", "edge of an image with 32 channels", tuple(1 << i for i in range(3, 10)), _convolution),
        Family("transpose", "edge of a square matrix", tuple(1 << i for i in range(4, 13)), _transposition),
        Family("add", "length of the vectors", tuple(4**i for i in range(4, 13)), _addition),
    )
}


def _builders(family: Family) -> dict[str, Callable[..., Graph]]:
    return {family.workload(size): partial(_build, family, size) for size in family.sizes}


def _build(family: Family, size: int, seed: int | None, batch: int = 1) -> Graph:
    return family.build(size, seed, batch)


OPERATIONS: dict[str, Callable[..., Graph]] = {
    name: build for family in FAMILIES.values() for name, build in _builders(family).items()
}
"""Builders by name, in the order of families and sizes."""
