"""One number a work-item."""

from __future__ import annotations

from pathlib import Path

from kernels.catalog.addition.kernel_parts import BOUNDS, PLACES
from kernels.catalog.addition.sizes import Addition
from kernels.catalog.family import Call, Constants, Untiled
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result

KERNEL = Kernel(
    "binary_naive",
    Path(__file__).with_name("kernel.c"),
    (Buffer("a", 1), Buffer("b", 1), result("dst", 1)),
    (*PLACES, "activation"),
    BOUNDS,
)


class Naive(Untiled[Addition]):
    """The addition as a first attempt writes it."""

    name = "naive"
    summary = "one number a work-item; tensors of one shape"

    def why_not(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Return why it does not fit; None: it does."""
        if sizes.by_channel:
            return "one operand is a number a channel"
        if options.layout == "image":
            return "it writes number by number, an image is written by four"
        return super().why_not(sizes, options, limits, tile)

    def lower(
        self, sizes: Addition, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch."""
        del constants, options, limits, tile
        return (Call(KERNEL, (4 * sizes.vectors, 1, sizes.pictures)),)
