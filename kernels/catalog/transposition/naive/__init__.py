"""Results side by side, sources wherever they are."""

from __future__ import annotations

from math import prod
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants, Untiled
from kernels.catalog.transposition.sizes import Transposition
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result

KERNEL = Kernel(
    "transpose",
    Path(__file__).with_name("kernel.c"),
    (Buffer("src", 1), result("dst", 1)),
    ("count", "d1", "d2", "d3", "s0", "s1", "s2", "s3"),
)


class Naive(Untiled[Transposition]):
    """Results side by side, sources wherever they are."""

    name = "naive"
    summary = "one number a work-item: writes side by side, reads apart"

    def lower(
        self, sizes: Transposition, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> Calls:
        """The dispatch."""
        count = prod(sizes.sizes)
        ints = {"count": count, **{f"d{i}": sizes.sizes[i] for i in (1, 2, 3)}}
        ints |= {f"s{i}": sizes.strides[i] for i in range(4)}
        return (Call(KERNEL, (count, 1, 1), ints=ints),)
