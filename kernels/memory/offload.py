"""The weights that wait in host memory, where a draft must swap: as few bytes as possible are moved in an inference.

A weight that is read once takes its bytes throughout if it stays, and moves them in each inference if it does not. So
the largest stay first: of what is away a step needs its own at once. How many bytes of them stay is searched, because
what stays leaves less room for activations, which are then moved instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf

from kernels.errors import LimitExceeded
from kernels.lower.draft import Draft

from .swap import Swaps

_PARTS = 32
"""The parts into which the bytes that may stay are divided for the search."""


def swap_to_fit(draft: Draft, room: int, weights: Sequence[str], *, ahead: bool = False) -> Draft:
    """The draft with swaps, so that `weights`, activations and scratch of at most `room` bytes are held at once.

    `ahead`: tensors come back ahead of their use; what that moves more is not searched for. Raises LimitExceeded where
    a single step needs more.
    """
    ordered = sorted(weights, key=lambda name: (-draft.buffers[name].size, name))
    total = sum(draft.buffers[name].size for name in ordered)
    swaps = Swaps(draft)

    def away(part: int) -> tuple[int, frozenset[str]]:
        """Return the room that is left for the rest, and the weights that are away."""
        names = _away(draft, ordered, min(room, total) * part // _PARTS)
        return room - total + sum(draft.buffers[name].size for name in names), names

    @cache
    def cost(part: int) -> tuple[float, int]:
        left, names = away(part)
        try:
            return swaps.moved_bytes(left, offloaded=names), -part
        except LimitExceeded:
            return inf, part

    low, high = 0, _PARTS
    while low < high:  # the more stays, the less is moved, until there is too little room for activations
        middle = (low + high) // 2
        low, high = (middle + 1, high) if cost(middle + 1) < cost(middle) else (low, middle)
    left, names = away(min((0, low, _PARTS), key=cost))
    return swaps.swapped(left, offloaded=names, ahead=ahead)


def _away(draft: Draft, ordered: Sequence[str], most: int) -> frozenset[str]:
    """Return the weights that do not fit into `most` bytes beside the ones before; the largest come first."""
    away = []
    for name in ordered:
        if draft.buffers[name].size <= most:
            most -= draft.buffers[name].size
        else:
            away.append(name)
    return frozenset(away)
