"""One output a work-item, from memory."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.options import Limits, Options

from .facts import Product, ProductCall


class Naive:
    """The plain double loop; what the others are compared with."""

    name = "naive"
    summary = "one output a work-item, every operand read from memory"

    def misfit(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does."""
        del product, options, limits
        return "it has no tiles" if tile else None

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        del product, options, limits
        return [""]

    def lower(self, product: Product, options: Options, limits: Limits, tile: str = "") -> ProductCall:
        """The dispatch."""
        del options, limits, tile
        return ProductCall("matmul_naive", {}, (4 * product.columns4, product.rows, product.batch))
