"""One output a work-item, from memory."""

from __future__ import annotations

from pathlib import Path

from kernels.catalog.family import Call, Constants, Untiled
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel

KERNEL = Kernel("matmul_naive", Path(__file__).with_name("kernel.c"), operands(1), ("rows", *BATCHED), BOUNDS)


class Naive(Untiled[Product]):
    """The plain double loop; what the others are compared with."""

    name = "naive"
    summary = "one output a work-item, every operand read from memory"

    def lower(
        self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch."""
        del constants, options, limits, tile
        return (Call(KERNEL, (4 * product.columns4, product.rows, product.batch)),)
