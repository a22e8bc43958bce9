"""Find a step of power within a load that repeats the same inference all the time: something else drew power, or did
no longer.

The readings are put together to at most `BINS` means. Of all stretches of them the one is looked for that differs most
from the rest of the load, in standard errors by neighbours' differences. It is a step where it is large beside the
load, and where power jumps at its edges: heat and wandering rise slowly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .trace import Trace, cumulative_j
from .windows import Window

BINS = 160
FEWEST_BINS = 24
SHORTEST_S, LONGEST_SHARE = 2.0, 0.7
"""The length of a stretch, as time and as a share; a longer one is the load, and what is beside it the stretch."""
LEAST_SHARE = 0.12
"""The least share of the load's power: less may be the load's own."""
STANDARD_ERRORS = 8.0
JUMP = 0.6
"""Share of the step by which means next to each other differ at its edges."""
ALONE = 0.5
"""A second stretch that differs by such a share of the first is the load's own manner."""
NEAR = 3
"""Means at either side of an edge."""


UNIT_CHANGES, UNIT_NEAR, UNIT_APART = 8, 5, 0.15
"""The most changes of units; readings at either side of one; how far it may be from a thousand, as a power of ten."""


def unit_step(power_w: NDArray[np.float64]) -> tuple[int, float] | None:
    """Return the first reading whose unit seems to be another than before, and the factor; None: there is none.

    A meter that goes from mA to A makes a step of a thousand: between neighbours, and without a reading between.
    """
    (places,) = np.nonzero(power_w)
    scale = np.log10(np.abs(power_w[places]))
    jumps = np.flatnonzero(np.abs(np.diff(scale)) > 2) + 1
    for at in jumps if len(jumps) <= UNIT_CHANGES else ():
        before, after = scale[max(0, at - UNIT_NEAR) : at], scale[at : at + UNIT_NEAR]
        by = float(np.median(after) - np.median(before))
        if abs(by) > 2 and abs(by - 3 * round(by / 3)) <= UNIT_APART and min(len(before), len(after)) == UNIT_NEAR:
            return int(places[at]), 10.0**by
    return None


class Step(NamedTuple):
    """A step: from one moment to another of the trace's clock power was higher by so much."""

    start_s: float
    end_s: float
    by_w: float


def find_step(trace: Trace, load: Window, settle_s: float) -> Step | None:
    """The clearest step; None where there is none. `settle_s`: for so long a trace shows the phase before."""
    start_s = load.start_s + settle_s
    count = min(BINS, int((load.end_s - start_s) / max(trace.news_s, 1e-9)))
    if count < FEWEST_BINS:
        return None
    cuts_s = np.linspace(start_s, load.end_s, count + 1)
    width_s = (load.end_s - start_s) / count
    power_w = np.diff(cumulative_j(trace, cuts_s)) / width_s
    shortest = max(4, math.ceil(SHORTEST_S / width_s))
    first, last, by_w = _most_different(power_w, shortest)
    without = power_w.copy()
    without[first:last] -= by_w
    if abs(_most_different(without, shortest)[2]) > ALONE * abs(by_w):
        return None
    if abs(by_w) < LEAST_SHARE * abs(float(power_w.mean())) or not _is_sharp(power_w, first, last, by_w):
        return None
    return Step(float(cuts_s[first]), float(cuts_s[last]), by_w)


def _most_different(power_w: NDArray[np.float64], shortest: int) -> tuple[int, int, float]:
    """First and last edge of the stretch, and how much higher it is than the rest; (0, 0, 0) where none is clear."""
    count = len(power_w)
    until = np.concatenate(([0.0], np.cumsum(power_w)))
    noise_w = float(np.sqrt(np.median(np.diff(power_w) ** 2) / 0.455 / 2))  # of normal differences, whatever jumps
    edges = np.arange(count + 1)
    lengths = edges[None, :] - edges[:, None]
    fits = (lengths >= shortest) & (lengths <= LONGEST_SHARE * count)
    own = np.where(fits, lengths, 1)
    inside = (until[None, :] - until[:, None]) / own
    outside = (until[-1] - (until[None, :] - until[:, None])) / (count - own)
    by_w = np.where(fits, inside - outside, 0.0)
    clear = np.abs(by_w) / np.sqrt(1 / own + 1 / (count - own))
    first, last = (int(each) for each in np.unravel_index(int(clear.argmax()), clear.shape))
    if clear[first, last] <= STANDARD_ERRORS * max(noise_w, 1e-6):
        return 0, 0, 0.0
    return first, last, float(by_w[first, last])


def _is_sharp(power_w: NDArray[np.float64], first: int, last: int, by_w: float) -> bool:
    """Return whether it is sharp at those of its edges that lie inside the load."""
    jumps = [
        sign * (power_w[at : at + NEAR].mean() - power_w[at - NEAR : at].mean())
        for at, sign in ((first, 1), (last, -1))
        if NEAR <= at <= len(power_w) - NEAR
    ]
    return bool(jumps) and all(jump * math.copysign(1, by_w) >= JUMP * abs(by_w) for jump in jumps)
