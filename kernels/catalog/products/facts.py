"""Facts of one matrix product, and what an algorithm makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
        computed = " computed" if self.batch == 1 and not self.right_is_constant else ""
        return f"product b{self.batch} m{self.rows} k{self.depth} n{self.columns}{shared}{computed}"


@dataclass(frozen=True)
class ProductCall:
    """The dispatch of an algorithm; buffers, strides, bias and activation are added by the lowering."""

    kernel: str
    tunables: Mapping[str, int]
    work_items: tuple[int, int, int]
    group: int = 0
    """Work-items of a work-group, where the kernel needs just so many; 0: as the device likes."""
    panel: int = 0
    """Vectors of four columns of a panel of the right operand (`pack_panels`); 0: it lies in rows."""
