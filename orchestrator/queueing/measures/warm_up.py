"""How much of the beginning is left out."""

from __future__ import annotations

import numpy as np

from orchestrator.queueing.requests import Column, Run

GROUP = 5


def cut_of(run: Run, rule: str | float) -> float:
    """Requests that were meant to arrive before this moment are left out."""
    if isinstance(rule, float):
        return rule
    if rule == "none":
        return 0.0
    done = run.requests.done
    return float(done.column("intended")[mser5(done.sojourn_s)]) if len(done) else 0.0


def mser5(series: Column) -> int:
    """How many values at the beginning are left out by MSER-5: the mean of the rest has the least standard error.

    Means of five values each; at most half of the series is left out (White 1997; Franklin and White 2008).
    """
    count = len(series) // GROUP
    if count < 2:
        return 0
    means = series[: count * GROUP].reshape(count, GROUP).mean(axis=1)
    means = means - means.mean()  # for the sums below to keep their digits
    left = np.arange(count, 0, -1)
    total = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum((means**2)[::-1])[::-1]
    error = (squares - total**2 / left) / left**2
    return GROUP * int(np.argmin(error[: count // 2 + 1]))
