"""Algorithms of matrix products: each says when it fits, its tiles, and the dispatch that it becomes.

`auto` takes what tuning found, else by the kind of device. An algorithm that is asked for by name (`tiled`, or with its
tile, `blocked 16x32`) is used wherever it fits, and `auto`'s elsewhere; where it fits nowhere in a network, that is an
OptionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernels.catalog.named import Named, asked_or_tuned, check_asked
from kernels.options import Choice, Limits, Options

from .blocked import Blocked
from .facts import Product, ProductCall
from .naive import Naive
from .panels import Panels
from .registers import Registers
from .split_depth import SplitDepth
from .tiled import Tiled

_FEW_ROWS = 4
"""Up to so many rows, a product is a matter of reading the matrix."""
_TILED_SIZE = 32
"""From so many rows and columns on, a tile a work-group pays on a desktop GPU."""


class ProductAlgorithm(Named[Product], Protocol):
    """One way to compute a matrix product."""

    def lower(self, product: Product, options: Options, limits: Limits, tile: str = "") -> ProductCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        ...


PRODUCTS: dict[str, ProductAlgorithm] = {
    entry.name: entry for entry in (Naive(), Blocked(), Tiled(), Registers(), SplitDepth(), Panels())
}


def choose_product(options: Options, limits: Limits, layer: str, product: Product) -> Choice:
    """The algorithm of one product: the asked one where it fits, else the tuned one, else by the kind of device."""
    found = asked_or_tuned(PRODUCTS, options.product, (layer, product.key), product, options, limits)
    return found or Choice(_by_device(options, limits, product))


def lower_product(choice: Choice, options: Options, limits: Limits, product: Product) -> ProductCall:
    """The dispatch of a choice. Raises OptionError."""
    return PRODUCTS[choice.algorithm].lower(product, options, limits, choice.tile)


def check_product(options: Options, limits: Limits, products: Sequence[tuple[str, Product]]) -> None:
    """Raise OptionError where the asked one is unknown or fits no product of the network; name those that fit."""
    check_asked(PRODUCTS, "product", options.product, products, options, limits)


def _by_device(options: Options, limits: Limits, product: Product) -> str:
    if limits.cpu_device:  # a barrier costs it more than reuse gains
        return "panels" if PRODUCTS["panels"].why_not(product, options, limits) is None else "registers"
    if product.rows <= _FEW_ROWS and PRODUCTS["split_depth"].why_not(product, options, limits) is None:
        return "split_depth"
    large = min(product.rows, product.columns) >= _TILED_SIZE and not limits.unified_memory
    return "tiled" if large and PRODUCTS["tiled"].why_not(product, options, limits) is None else "registers"


__all__ = ["PRODUCTS", "Product", "ProductAlgorithm", "ProductCall", "check_product", "choose_product", "lower_product"]
