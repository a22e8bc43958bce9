"""The beginning that is left out: as much of every run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orchestrator.queueing.requests import Column, Run

SHARE = 0.1
"""The share of a run left out unless the spec says otherwise. No run has a say: who looks for the cut that leaves
the steadiest rest cuts busy periods away, and a p99 is made of them."""
POINTS = 400
"""The points of the mean course in which MSER looks for the end of the warm-up."""


def cut_of(runs: Sequence[Run], rule: str | float) -> float:
    """Requests that were meant to arrive before this moment of their run are left out."""
    if isinstance(rule, float):
        return rule
    shares = {"none": 0.0, "tenth": SHARE}
    share = shares[rule] if rule in shares else mser(mean_course(runs, POINTS)) / POINTS
    return share * min(run.duration_s for run in runs)


def mean_course(runs: Sequence[Run], points: int, begin: float = 0.0) -> Column:
    """The mean sojourn over all runs, by the time of arrival; where nothing arrived, that of all."""
    total, count = np.zeros(points), np.zeros(points)
    for run in runs:
        done = run.requests.between(begin, run.duration_s).done
        at = ((done.column("intended") - begin) / (run.duration_s - begin) * points).astype(int)
        total += np.bincount(at, done.sojourn_s, points)
        count += np.bincount(at, minlength=points)
    mean = total.sum() / max(count.sum(), 1)
    return np.asarray(np.divide(total, count, out=np.full(points, mean), where=count > 0))


def mser(series: Column) -> int:
    """Return how many values at the beginning are left out: the mean of the rest has the least standard error.

    At most half of the series is left out (White 1997; Franklin and White 2008).
    """
    count = len(series)
    means = series - series.mean()  # for the sums below to keep their digits
    left = np.arange(count, 0, -1)
    total = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum((means**2)[::-1])[::-1]
    error = (squares - total**2 / left) / left**2
    return int(np.argmin(error[: count // 2 + 1]))
