"""Convolution as a first attempt is written: what vectors of channels are compared with (study S)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.catalog.convolution.kernel_parts import BOUNDS, DILATION, ENDING, VIEWS, WINDOW
from kernels.catalog.convolution.sizes import Convolution
from kernels.catalog.family import Call, Calls, Constants, Untiled
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result

KERNEL = Kernel(
    "conv_scalar",
    Path(__file__).with_name("kernel.c"),
    (*(Buffer(name, 1) for name in ("src", "weight", "bias", "residual")), result("dst", 1)),
    (*VIEWS, "channels", "group_in", "group_out", *WINDOW, *DILATION, *ENDING),
    BOUNDS,
)


class Scalar(Untiled[Convolution]):
    """No vectors, no tile: each work-item computes one number of one channel."""

    name = "scalar"
    summary = "one number a work-item, no vectors; fits every convolution"

    def tiles(self, sizes: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """None: it is there to be compared with, and no search need try it."""
        return []

    def lower(self, conv: Convolution, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        """The dispatch; constants: weight (K, C / groups, kh, kw), bias (K)."""
        channels = {
            "channels": conv.k,
            "group_in": conv.c // conv.groups,
            "group_out": conv.k // conv.groups,
        }
        call = Call(
            KERNEL,
            (conv.oh * conv.ow, 4 * conv.out_stacks, conv.n),
            switches=conv.padding,
            ints={**channels, **conv.window, **conv.dilation},
            weight=constants["weight"],
            bias=constants["bias"],
        )
        return (call,)
