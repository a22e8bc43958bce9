"""Long sums of half precision products: short ones in half, gathered in single (blocked summation).

A sum of n random products in half loses about sqrt(n / 2) roundings: 2 % of a large dense layer's result. A chunk of 64
products loses about six, however many chunks there are, for one conversion and one addition a chunk (blocked
summation: Castaldo, Whaley and Chronopoulos, 2008; docs/decisions/0022 has what was measured).

Bodies sum products into `chunk`, and have the whole sum in `sums`; where a kernel computes in single, they are one.
"""

from __future__ import annotations

from collections.abc import Mapping

from .kernel import Kernel

CHUNK = 16
"""Vectors of four products after which a chunk is added to the whole sum."""

_ONE = """\
#define chunk sums
#define CHUNK_SUMS
#define FOLD(vectors)
#define FOLD_REST
"""


def chunk_macros(kernel: Kernel, constants: Mapping[str, int], *, narrow: bool) -> str:
    """`CHUNK_SUMS` begins the chunks of `SUMS` sums, `FOLD(n)` tells that n vectors were added, `FOLD_REST` ends."""
    if not kernel.computes_in_half or "SUMS" not in constants:
        return ""
    if not narrow:
        return _ONE
    kind, zero, widen = (
        ("VECTOR", "VSPLAT(0.0f)", "TO_WIDEV") if "LANES" in constants else ("FLOAT4", "SPLAT(0.0f)", "TO_WIDE4")
    )
    every = range(constants["SUMS"])
    clear = " ".join(f"chunk[{i}] = {zero};" for i in every)
    gather = " ".join(f"sums[{i}] += {widen}(chunk[{i}]);" for i in every)
    return (
        f"#define CHUNK_SUMS int filled = 0; {kind} chunk[SUMS]; {clear}\n"
        f"#define FOLD(vectors) filled += (vectors); if (filled >= {CHUNK}) {{ {gather} {clear} filled = 0; }}\n"
        f"#define FOLD_REST {gather}\n"
    )
