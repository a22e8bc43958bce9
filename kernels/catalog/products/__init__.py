"""Algorithms of matrix products: each says when it fits, its tiles, and the dispatch that it becomes.

`auto` takes what tuning found, else by the kind of device. An algorithm that is asked for by name (`tiled`, or with its
tile, `blocked 16x32`) is used wherever it fits, and `auto`'s elsewhere; where it fits nowhere in a network, that is an
OptionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernels.errors import OptionError
from kernels.options import Choice, Limits, Options

from .blocked import Blocked
from .facts import Product, ProductCall
from .naive import Naive
from .registers import Registers
from .split_depth import SplitDepth
from .tiled import Tiled

_FEW_ROWS = 4
"""Up to so many rows, a product is a matter of reading the matrix."""
_TILED_SIZE = 32
"""From so many rows and columns on, a tile a work-group pays on a desktop GPU."""


class ProductAlgorithm(Protocol):
    """One way to compute a matrix product."""

    name: str
    summary: str

    def misfit(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        ...

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, in the words that `lower` takes; the first is the default."""
        ...

    def lower(self, product: Product, options: Options, limits: Limits, tile: str = "") -> ProductCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        ...


PRODUCTS: dict[str, ProductAlgorithm] = {
    entry.name: entry for entry in (Naive(), Blocked(), Tiled(), Registers(), SplitDepth())
}


def choose_product(options: Options, limits: Limits, layer: str, product: Product) -> Choice:
    """The algorithm of one product: the asked one where it fits, else the tuned one, else by the kind of device."""
    asked = Choice.of(options.product)
    if asked.algorithm in PRODUCTS and _fits(asked, product, options, limits):
        return asked
    if asked.algorithm == "auto":
        tuned = options.tuned.get(layer) or options.tuned.get(product.key)
        if tuned and tuned.algorithm in PRODUCTS and _fits(tuned, product, options, limits):
            return tuned
    return Choice(_by_device(options, limits, product))


def lower_product(choice: Choice, options: Options, limits: Limits, product: Product) -> ProductCall:
    """The dispatch of a choice. Raises OptionError."""
    return PRODUCTS[choice.algorithm].lower(product, options, limits, choice.tile)


def check_product(options: Options, limits: Limits, products: Sequence[tuple[str, Product]]) -> None:
    """Raise OptionError where the asked one is unknown or fits no product of the network; name those that fit."""
    asked = Choice.of(options.product)
    if asked.words == "auto":
        return
    fitting = [
        name
        for name, entry in PRODUCTS.items()
        if any(entry.misfit(product, options, limits) is None for _, product in products)
    ]
    allowed = ", ".join(["auto", *fitting])
    if asked.algorithm not in PRODUCTS:
        raise OptionError(f"product {options.product!r} is not known; this network can use: {allowed}")
    if not any(_fits(asked, product, options, limits) for _, product in products):
        entry = PRODUCTS[asked.algorithm]
        why = "; ".join(
            f"{layer}: {entry.misfit(product, options, limits, asked.tile)}" for layer, product in products[:3]
        )
        raise OptionError(
            f"product {options.product!r} ({entry.summary}) fits no matrix product of this network"
            f"{f' ({why})' if why else ''}; it can use: {allowed}"
        )


def _fits(choice: Choice, product: Product, options: Options, limits: Limits) -> bool:
    return PRODUCTS[choice.algorithm].misfit(product, options, limits, choice.tile) is None


def _by_device(options: Options, limits: Limits, product: Product) -> str:
    if limits.cpu_device:  # a barrier costs it more than reuse gains
        return "registers"
    if product.rows <= _FEW_ROWS and PRODUCTS["split_depth"].misfit(product, options, limits) is None:
        return "split_depth"
    large = min(product.rows, product.columns) >= _TILED_SIZE and not limits.unified_memory
    return "tiled" if large and PRODUCTS["tiled"].misfit(product, options, limits) is None else "registers"


__all__ = ["PRODUCTS", "Product", "ProductAlgorithm", "ProductCall", "check_product", "choose_product", "lower_product"]
