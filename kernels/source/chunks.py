"""Long sums of products: short ones by themselves, in half where products are, gathered in single (blocked summation).

A sum of n random products in half loses about sqrt(n / 2) roundings: 2 % of a large dense layer's result. A chunk of 64
products loses about six, however many chunks there are, for one conversion and one addition a chunk (blocked
summation: Castaldo, Whaley and Chronopoulos, 2008).

Rounding in single grows with a sum's length as well: 18432 products lose 2e-6 to 7e-6 one after the other, 3e-7 in
chunks (docs/architecture/engine-gpu.md). `LONG_SUMS`, which a dispatch sets, asks for chunks of single products.

Bodies sum products into `chunk`, and have the whole sum in `sums`; elsewhere they are one.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.options import Limits

from .kernel import Kernel

CHUNK, LONG_CHUNK = 16, 64
"""Vectors of four products after which a chunk is added to the whole sum, in half and in single."""
LONG = 1024
"""Products of a sum from which on chunks of single products pay."""

_ONE = """\
#define chunk sums
#define CHUNK_SUMS
#define FOLD(vectors)
#define FOLD_REST
"""
_EACH = "#define IN_CHUNKS(i, count, vectors) for (int i = 0; i < (count); ++i)\n"


def long_sums(kernel: Kernel, depth: int, limits: Limits) -> dict[str, int]:
    """The switch of a kernel that adds up so many products one after the other, where they are to go in chunks.

    Only on a CPU behind a GPU interface: a GPU has few registers for a second sum, and mostly shares out long ones.
    """
    return {"LONG_SUMS": 1} if limits.cpu_device and kernel.computes_in_half and depth >= LONG else {}


def chunk_macros(kernel: Kernel, constants: Mapping[str, int], *, narrow: bool) -> str:
    """`CHUNK_SUMS` begins the chunks of `SUMS` sums, and `FOLD_REST` ends them. In half, `FOLD(n)` tells that n vectors
    were added; in single `IN_CHUNKS(i, count, n)` is the loop over `count` times n vectors."""
    if not kernel.computes_in_half or "SUMS" not in constants:
        return ""
    if narrow:
        return _in_half(constants) + _EACH
    return _in_single(constants) if "LONG_SUMS" in constants else _ONE + _EACH


def _in_half(constants: Mapping[str, int]) -> str:
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


def _in_single(constants: Mapping[str, int]) -> str:
    """Loops in a loop: lavapipe computes what stands behind a condition in every turn."""
    kind, zero = ("VECTOR", "VSPLAT(0.0f)") if "LANES" in constants else ("FLOAT4", "SPLAT(0.0f)")
    every = range(constants["SUMS"])
    clear = ", ".join(f"chunk[{i}] = {zero}" for i in every)
    gather = ", ".join(f"sums[{i}] += chunk[{i}]" for i in every)
    last = f"IMIN(i + IMAX({LONG_CHUNK} / (vectors), 1), (count))"
    return (
        f"#define CHUNK_SUMS int chunk_end = 0; {kind} chunk[SUMS]; {clear};\n"
        f"#define FOLD(vectors)\n#define FOLD_REST {gather};\n"
        "#define IN_CHUNKS(i, count, vectors) for (int i = 0; i < (count);) "
        f"for ({gather}, {clear}, chunk_end = {last}; i < chunk_end; ++i)\n"
    )
