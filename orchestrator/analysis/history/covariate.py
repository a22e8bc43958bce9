"""The steps of the ratio that are its own, not the device's heat or battery seen through it.

Two builds need not slow down alike when a phone is hot. So the ratio is fitted by the level of the baseline on the same
phone, which follows heat and battery, and by steps, together (analysis of covariance, least squares). A step is taken
in, the largest first, where the level and the steps before it leave it at least half of its size, it is sure, and it
tells the nights clearly better than a straight line in time does: what comes on over weeks is no build's. Where the
level steps in the same nights, and by no less, the phone became another one that night, and nobody can tell.
"""

from __future__ import annotations

from math import log

import numpy as np

from orchestrator.analysis.autoregression import evidence, last_column

from .steps import Step, Steps

OWN_SHARE = 0.5
CLEAR = 4.0
"""Logarithm of how much likelier a step has to be than a line; the number of nights is added, as any could be its."""
NEAR = 3
"""Nights."""


def own_steps(ratio: np.ndarray, level: np.ndarray, of_ratio: Steps, of_level: Steps, sure: float) -> frozenset[int]:
    """The places of those that are the ratio's own. Logarithms, without gaps, of both over the same nights."""
    steps = [step for step in of_ratio.steps if not any(_with(step, other) for other in of_level.steps)]
    if not steps:
        return frozenset()
    nights = np.arange(len(ratio), dtype=float)
    columns = [np.ones(len(ratio)), _smooth(level)]
    own = set()
    for step in sorted(steps, key=lambda step: -abs(step.size)):
        tried, line = (np.column_stack([*columns, last]) for last in (nights >= step.place, nights))
        found = last_column(ratio, tried, of_ratio.alike)
        if found.p_value > sure or found.size / step.size < OWN_SHARE:
            continue
        if evidence(ratio, tried, line, of_ratio.alike) >= log(len(ratio)) + CLEAR:
            columns.append((nights >= step.place).astype(float))
            own.add(step.place)
    return frozenset(own)


def _with(step: Step, of_level: Step) -> bool:
    return abs(step.place - of_level.place) <= NEAR and abs(of_level.size) >= abs(step.size)


def _smooth(values: np.ndarray) -> np.ndarray:
    """Medians of three: what a single night did is not what the device is going through."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 3), axis=1))
