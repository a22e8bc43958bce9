"""Sizes of one matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kernels.ir.graph import Graph, Node
from kernels.ir.packed import PackedFormat, format_of


@dataclass(frozen=True)
class Product:
    """(batch, rows, depth) times (batch, depth, columns)."""

    batch: int
    rows: int
    depth: int
    columns: int
    right_is_shared: bool = False
    """One right operand for the whole batch."""
    right_is_constant: bool = False
    """Weights, which may lie in any order."""
    left_is_free: bool = False
    """Rows that who writes them may leave in any order, for such products alone read them."""
    result_is_dealt: bool = False
    """Rows of the result lie as matrix units have them, where a tile can write them so."""

    packed: PackedFormat | None = None
    """The right operand's packing in memory; a product that cannot read it so reads an unpacked copy."""

    @property
    def columns4(self) -> int:
        """Vectors of four columns."""
        return -(-self.columns // 4)

    @property
    def flops(self) -> int:
        """Two for each multiplication and addition."""
        return 2 * self.batch * self.rows * self.depth * self.columns

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        shared = " shared" if self.right_is_shared and self.batch > 1 else ""
        computed = " computed" if self.batch == 1 and not (self.right_is_constant or self.packed) else ""
        free = f"{' free' * self.left_is_free}{f', {self.packed.name}' if self.packed else ''}"
        return f"product b{self.batch} m{self.rows} k{self.depth} n{self.columns}{shared}{computed}{free}"


def product_of(graph: Graph, node: Node) -> Product:
    """Read the sizes of a dense or matmul node."""
    constant = graph.constants.get(node.inputs[1]) if node.op == "dense" else None
    packed = None if constant is None else format_of(constant)
    a_shape, b_shape, shape = (graph.shapes[name] for name in (node.inputs[0], node.inputs[1], node.output))
    return Product(
        prod(shape[:-2]), shape[-2], a_shape[-1], shape[-1], right_is_shared=prod(b_shape[:-2]) == 1,
        right_is_constant=node.op == "dense" and packed is None, left_is_free=node.attributes.get("free_rows", False),
        result_is_dealt=node.attributes.get("dealt_out", False), packed=packed,
    )  # fmt: skip
