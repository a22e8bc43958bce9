"""The order in which an epoch takes the samples: the same on every device, and without a table.

A Feistel network over the least even number of bits that holds every sample, keyed by the seed and the epoch; a place
outside is sent through again until it is inside (cycle walking: Black and Rogaway, 2002). So any place of any epoch is
computed by itself, in 32-bit whole numbers, which every device computes alike (`bodies/drawn.c` is the same).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_ROUNDS = 6
_GOLDEN = np.uint32(0x9E3779B9)


def half_bits(samples: int) -> int:
    """Bits of each half of the network."""
    return max(1, -(-(samples - 1).bit_length() // 2))


def order_of(samples: int, seed: int, epoch: int) -> npt.NDArray[np.uint32]:
    """The permutation of one epoch: place -> sample. `seed` is a 32-bit signed number."""
    half = np.uint32(half_bits(samples))
    low = np.uint32((1 << int(half)) - 1)
    with np.errstate(over="ignore"):
        key = _mixed(np.array([epoch], np.uint32) + _GOLDEN)
        key = _mixed(key ^ np.array([seed & 0xFFFFFFFF], np.uint32))
        places = np.arange(samples, dtype=np.uint32)
        outside = np.ones(samples, bool)
        while outside.any():
            left, right = places[outside] >> half, places[outside] & low
            for turn in range(_ROUNDS):
                left, right = right, left ^ (_mixed(right + key + np.uint32(turn) * _GOLDEN) & low)
            places[outside] = (left << half) | right
            outside = places >= samples
    return places


def _mixed(h: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """MurmurHash3's last step: every bit of the result depends on every bit."""
    h = h ^ (h >> np.uint32(16))
    h = h * np.uint32(0x85EBCA6B)
    h = h ^ (h >> np.uint32(13))
    h = h * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))
