"""Ranges of features, in which weights are divided that no buffer of a device holds.

A table and a layer of the same weights have the same ranges, so that both read the same parts.
"""

from __future__ import annotations

from itertools import pairwise

from .graph import Array
from .packed import PackedMatrix, format_of, packed_bytes

Range = tuple[int, int]
"""The first, and the one behind the last."""
_OF_PANELS = 1.05
"""Bytes of panels (`kernels/catalog/panels.py`) in parts of those of packed rows, at most."""
_STEPS = (64, 16, 4)
"""Features by which parts are cut: whole tiles of kernels where so many fit, at least whole stacks of channels."""


def cut_evenly(features: int, each: int, largest: int) -> tuple[Range, ...]:
    """Return equal ranges, as few as fit: of `each` elements a feature a range has at most `largest`. Where not even
    four features fit there is one."""
    if -(-features // 4) * 4 * each <= largest:
        return ((0, features),)
    step = next((step for step in _STEPS if step * each <= largest), 0)
    if not step:
        return ((0, features),)
    steps = -(-features // step)
    count = -(-steps // (largest // (step * each)))
    return tuple(pairwise([*(step * (steps * i // count) for i in range(count)), features]))


def row_ranges(table: Array, largest: int) -> tuple[Range, ...]:
    """Return ranges of a table's rows, each with at most `largest` elements (0: any number)."""
    rows = table.shape[0]
    packed = elements_of_packed(table.T) if isinstance(table, PackedMatrix) else 0
    return cut_evenly(rows, packed or table.size // rows, largest) if largest else ((0, rows),)


def elements_of_packed(weight: Array) -> int:
    """Return as many halves as panels may have bytes for one output feature; 0 where a weight is not packed."""
    if format_of(weight) is None:
        return 0
    return -(-int(_OF_PANELS * packed_bytes(weight, weight.shape[0], 0)) // 2)
