"""Count each refresh of a gauge once: whoever reads it more often than it has news sees some readings again.

Repetitions must not weigh: of a gauge that refreshes every 250 ms and is read every 100 ms, readings are shown two and
three times in turn, and an inference of 100 ms that draws more in one half than in the other beats with that pattern.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

OFTEN = 0.75
"""The share of the refresh period: readings farther apart than that are news, each."""
SMOOTHED = 21
"""Refreshes over which the moments of change are smoothed: each is seen up to one reading late."""


def news_of(t_s: NDArray[np.float64], shown: NDArray[np.int64], refresh_s: float) -> NDArray[np.intp]:
    """Index of the first reading of each refresh: where it changed, or where it must have been renewed unchanged."""
    spacing_s = float(np.median(np.diff(t_s))) if len(t_s) > 1 else 0.0
    if spacing_s == 0 or spacing_s >= OFTEN * refresh_s:
        return np.arange(len(t_s))
    found, silent, due_s = [0], True, float(t_s[0]) + refresh_s + spacing_s
    for i in range(1, len(t_s)):
        now_s = float(t_s[i])
        if shown[i] != shown[i - 1]:
            if silent and len(found) > 1 and now_s - t_s[found[-1]] < refresh_s / 2:
                found[-1] = i
            else:
                found.append(i)
            silent, due_s = False, now_s + refresh_s + spacing_s
        elif now_s >= due_s:
            found.append(i - 1)
            silent, due_s = True, max(due_s, now_s - spacing_s) + refresh_s
    return np.array(found)


def even_times(t_s: NDArray[np.float64], refresh_s: float, spacing_s: float) -> NDArray[np.float64]:
    """Times of refreshes, seen up to one reading (`spacing_s`) late, as a clock that goes evenly would have them;
    rising, and no more than a reading from when they were seen."""
    if len(t_s) < 3:
        return t_s
    steps = [max(1, round((later - earlier) / refresh_s)) for earlier, later in pairwise(t_s.tolist())]
    place = np.concatenate(([0.0], np.cumsum(steps)))
    slope, start = np.polyfit(place, t_s, 1)
    late_s = t_s - (start + slope * place)
    width = min(SMOOTHED, len(t_s))
    kernel = np.ones(width)
    smooth_s = np.convolve(late_s, kernel, "same") / np.convolve(np.ones(len(t_s)), kernel, "same")
    even = np.clip(start + slope * place + smooth_s, t_s - spacing_s, t_s + spacing_s)
    return np.asarray(even if (np.diff(even) > 0).all() else t_s, dtype=np.float64)
