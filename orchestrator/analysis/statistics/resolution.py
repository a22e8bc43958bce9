"""Decide whether a figure may be told: one whose interval says next to nothing is not, but what would resolve it.

A figure is told where half its interval is at most half of it and the interval lies above zero, or is zero in every
block, as counts are. A difference, as net energy is, may truly be near zero: then only its bound is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.model.base import Model
from orchestrator.model.quantity import counted

from .intervals import MIN_BLOCKS, Interval, median_interval

MOST_HALF_WIDTH = 0.5
"""The largest half-width of a figure that is told, as a share of it."""
MOST_BLOCKS = 200
"""The most blocks to ask for: more is no advice."""


class Unresolved(Model):
    """The reason why a figure is not told, and what would let it be."""

    why: Literal["wide", "short load"]
    """`wide`: of its interval; `short load`: every block's load is too short for an energy."""
    above: float = 0.0
    below: float | None = None
    """All that is known, in the figure's unit: it lies between these."""
    needs_blocks: int | None = None
    """The blocks in all that would resolve it if the noise stays the same; None: no sane number would."""
    needs_load_s: float | None = None
    """Length of a load that is long enough."""
    needs_examples: int | None = None
    """The examples in all, where these are what is repeated."""

    @property
    def word(self) -> str:
        """The words in the figure's place."""
        return "too short" if self.why == "short load" else "not resolved"

    @property
    def needs(self) -> str:
        """`needs 40 blocks`, `needs 30 s of load`; `not with this noise` where no sane number would do."""
        if self.needs_load_s is not None:
            return f"needs {self.needs_load_s:g} s of load"
        if self.needs_examples is not None:
            return f"needs {counted(self.needs_examples, 'example')}"
        return f"needs {counted(self.needs_blocks, 'block')}" if self.needs_blocks else "not with this noise"

    def __str__(self) -> str:
        return f"{self.word} ({self.needs})"


def is_told(value: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.bool_]:
    """Return whether intervals say enough of their figures. The one place that decides."""
    ends = np.asarray(low, np.float64), np.asarray(high, np.float64)
    half = (ends[1] - ends[0]) / 2
    return np.asarray((ends[0] > 0) & (half <= MOST_HALF_WIDTH * np.asarray(value, np.float64)))


def unresolved(value: float, interval: Interval | None, blocks: int, fixed: float = 0.0) -> Unresolved | None:
    """None of a figure that may be told, as one without interval is. `fixed`: what of half the interval stays however
    many blocks there are."""
    if interval is None or interval.low == interval.high == 0:  # a count of nothing is as sure as can be
        return None
    if is_told(value, interval.low, interval.high):
        return None
    needs, most = None, MOST_HALF_WIDTH * value
    if most > fixed:
        times = (max(interval.half_width, value - interval.low) ** 2 - fixed**2) / (most**2 - fixed**2)
        needs = max(blocks + 1, MIN_BLOCKS, ceil(blocks * times))
    return Unresolved(
        why="wide",
        above=max(0.0, interval.low),
        below=max(0.0, interval.high),
        needs_blocks=needs if needs is not None and needs <= MOST_BLOCKS else None,
    )


class Median(NamedTuple):
    """The median over blocks with its interval; both None where it is not told."""

    value: float | None
    interval: Interval | None
    unresolved: Unresolved | None


def median_of(values: Sequence[float], *, watched: bool = False) -> Median:
    """The median of at least one block's times or rates, in order of time. `watched`: as intervals have it."""
    middle, interval = median(values), median_interval(values, watched=watched)
    why_not = unresolved(middle, interval, len(values))
    return Median(None, None, why_not) if why_not else Median(middle, interval, None)
