"""One output a work-item, from memory."""

from __future__ import annotations

from kernels.catalog.named import Untiled
from kernels.options import Limits, Options

from .facts import Product, ProductCall


class Naive(Untiled[Product]):
    """The plain double loop; what the others are compared with."""

    name = "naive"
    summary = "one output a work-item, every operand read from memory"

    def lower(self, product: Product, options: Options, limits: Limits, tile: str = "") -> ProductCall:
        """The dispatch."""
        del options, limits, tile
        return ProductCall("matmul_naive", {}, (4 * product.columns4, product.rows, product.batch))
