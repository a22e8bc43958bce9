"""SPIR-V whose arithmetic a driver may not contract: `NoContraction` on every floating point operation.

Without it a driver may join a multiplication and an addition, or not, and take sums in another order. With it a driver
computes what is written: together where a kernel says `fma`, in two roundings elsewhere (SPIR-V 1.3, 2.4 "Logical
Layout", 3.20 "Decoration"; Vulkan 1.1, "Precision and Operation of SPIR-V Instructions").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEADER_WORDS = 5
_DECORATE, _NO_CONTRACTION = 71, 42
_ARITHMETIC = frozenset((127, 129, 131, 133, 136, 140, 141, 142, 143, 144, 145, 146, 147, 148))
"""FNegate, FAdd, FSub, FMul, FDiv, FRem, FMod, and products of vectors, matrices and scalars."""
_TYPES = range(19, 40)
"""The first of them follows the annotations."""


def forbid_contraction(module: bytes) -> bytes:
    """The same module, with every arithmetic operation decorated."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    results = [words[at + 2] for at, code in _instructions(words) if code in _ARITHMETIC]
    place = next((at for at, code in _instructions(words) if code in _TYPES), len(words))
    added = [word for result in results for word in (3 << 16 | _DECORATE, result, _NO_CONTRACTION)]
    whole = [*words[:place], *added, *words[place:]]
    return struct.pack(f"<{len(whole)}I", *whole)


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Place and operation code of each."""
    at = _HEADER_WORDS
    while at < len(words):
        yield at, words[at] & 0xFFFF
        at += max(1, words[at] >> 16)
