"""Algorithms of convolution: each says when it fits, its tunables, and the dispatch that it becomes.

`auto` takes the first that fits, in the order of `ALGORITHMS` (the most specialised first). An algorithm that is asked
for by name is used wherever it fits, and the others elsewhere; where it fits nowhere in a network, that is an
OptionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernels.errors import OptionError
from kernels.ir.graph import Array
from kernels.options import Choice, Limits, Options, Precision

from .convolution import Call, Convolution, convolution_of
from .depthwise import Depthwise
from .direct import Direct, Window
from .im2col import Im2col
from .implicit_gemm import ImplicitGemm
from .pointwise import Pointwise
from .winograd import Winograd


class Algorithm(Protocol):
    """One way to compute a convolution."""

    name: str
    summary: str

    def why_not(self, conv: Convolution) -> str | None:
        """Why it does not fit; None where it does."""
        ...

    def tiles(self, conv: Convolution, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, in the words that `lower` takes; the first is the default."""
        ...

    def lower(
        self, conv: Convolution, weight: Array, bias: Array, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatches; `tile` empty: the default. Raises OptionError."""
        ...


_WINOGRAD = (
    Winograd("winograd", "the largest tile that the precision allows", {}),
    Winograd("winograd_large", "tiles of 8x8 inputs: 6x6 outputs of 3x3, 4x4 of 5x5, 2x2 of 7x7", {3: 6, 5: 4, 7: 2}),
)
ALGORITHMS: dict[str, Algorithm] = {
    entry.name: entry
    for entry in (
        Depthwise(), Pointwise(), Window(), Direct(), ImplicitGemm(), Im2col(),
        *_WINOGRAD,
        Winograd("winograd_2x2", "tiles of 2x2 outputs", {3: 2, 5: 2}),
        Winograd("winograd_4x4", "tiles of 4x4 outputs", {3: 4}),
    )
}  # fmt: skip


_WINOGRAD_CHANNELS = 32
_WINOGRAD_PIXELS = 196
"""From so many channels and outputs on, tiles of 4x4 outputs paid on a desktop GPU (docs/decisions/0019)."""
_LARGE_SAVES = 0.85
"""Part of the products up to which larger tiles are taken: measured from 90 x 124 outputs on, where it is 0.79."""
_POCL_WINOGRAD_CHANNELS = 16
_POCL_WINOGRAD_PIXELS = {"winograd": 100, "winograd_2x2": 16}
"""From so many channels and outputs on each paid on PoCL (docs/decisions/0027)."""


def choose(options: Options, limits: Limits, layer: str, conv: Convolution) -> Choice:
    """The algorithm of one convolution: the asked one where it fits, else the tuned one, else by the kind of device."""
    asked = options.algorithm
    if asked in ALGORITHMS and why_not(asked, conv, options.precision) is None:
        return Choice(asked)
    if asked == "auto" and not options.granularity:
        tuned = options.tuned.get(layer) or options.tuned.get(conv.key)
        if tuned and tuned.algorithm in ALGORITHMS and why_not(tuned.algorithm, conv, options.precision) is None:
            return tuned
    if asked == "auto" and not options.granularity and _has_own_memory(limits):
        return Choice(_for_desktop(options, limits, conv))
    if asked == "auto" and not options.granularity and limits.cpu_device and options.backend == "opencl":
        return Choice(_for_pocl(options, limits, conv))
    return Choice(next(name for name, entry in ALGORITHMS.items() if entry.why_not(conv) is None))


def _has_own_memory(limits: Limits) -> bool:
    return not limits.unified_memory and not limits.cpu_device


def _for_desktop(options: Options, limits: Limits, conv: Convolution) -> str:
    """Through local memory, except one filter a channel and groups; Winograd's large tiles where they save enough."""
    least = min(conv.c, conv.k)
    wide = least >= _WINOGRAD_CHANNELS and conv.oh * conv.ow >= _WINOGRAD_PIXELS and not options.half
    usual, large = _WINOGRAD
    if wide and large.why_not(conv) is None and _has_room(large, conv, options, limits):
        saves = usual.why_not(conv) or large.products(conv, options) < _LARGE_SAVES * usual.products(conv, options)
        return large.name if saves else usual.name
    fitting = ("depthwise", "implicit_gemm", "direct")
    return next(name for name in fitting if ALGORITHMS[name].why_not(conv) is None)


def _for_pocl(options: Options, limits: Limits, conv: Convolution) -> str:
    """Minimal filtering where it fits: its product is in registers, and there are few values to transform."""
    if min(conv.c, conv.k) >= _POCL_WINOGRAD_CHANNELS and options.precision in ("fp32", "relaxed"):
        for name, pixels in _POCL_WINOGRAD_PIXELS.items():
            entry = ALGORITHMS[name]
            fits = entry.why_not(conv) is None and _has_room(entry, conv, options, limits)
            if conv.oh * conv.ow >= pixels and fits:
                return name
    return next(name for name, entry in ALGORITHMS.items() if entry.why_not(conv) is None)


def _has_room(entry: Algorithm, conv: Convolution, options: Options, limits: Limits) -> bool:
    """Whether a buffer holds its filters, where they grow: `split_weights` divides them as the model has them."""
    if not isinstance(entry, Winograd) or not limits.max_buffer_bytes:
        return True
    return entry.weight_bytes(conv, options) <= limits.max_buffer_bytes


def why_not(name: str, conv: Convolution, precision: Precision) -> str | None:
    """Why an algorithm cannot compute a convolution, or not in a precision; None where it can."""
    entry = ALGORITHMS[name]
    return entry.why_not(conv) or (entry.inexact(conv, precision) if isinstance(entry, Winograd) else None)


def check_algorithm(asked: str, convolutions: Sequence[tuple[str, Convolution]], precision: Precision = "fp32") -> None:
    """Raise OptionError where `asked` is unknown or fits no convolution of the network; name those that fit."""
    if asked == "auto":
        return
    fitting = [name for name in ALGORITHMS if any(why_not(name, conv, precision) is None for _, conv in convolutions)]
    allowed = ", ".join(["auto", *fitting])
    if asked not in ALGORITHMS:
        raise OptionError(f"algorithm {asked!r} is not known; this network can use: {allowed}")
    if asked not in fitting:
        why = "; ".join(f"{layer}: {why_not(asked, conv, precision)}" for layer, conv in convolutions[:3])
        raise OptionError(
            f"algorithm {asked!r} ({ALGORITHMS[asked].summary}) fits no convolution of this network"
            f"{f' ({why})' if why else ''}; it can use: {allowed}"
        )


__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Call",
    "Convolution",
    "check_algorithm",
    "choose",
    "convolution_of",
    "why_not",
]
