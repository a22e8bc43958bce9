"""Doubts about the figures of a queue, each with its remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from orchestrator.analysis.student_t import t_quantile
from orchestrator.queueing.requests import Run

from .memory import LEAST_BEYOND
from .warm_up import mean_course

STRETCHES = 10
"""The first of so many after the warm-up is held against the others."""
RARE = 0.005
"""The rate at which a first stretch that is like the others lies so high."""
ENOUGH = LEAST_BEYOND / 0.01
"""The multiple of the queue's memory that all runs take together for an interval of the p99."""
ENOUGH_EACH = 30
"""The same of one run, for a tenth of it to be its warm-up."""


def doubts_of(runs: Sequence[Run], cut_s: float, memory_s: float) -> list[str]:
    """Return doubts whether runs are long enough, and steady."""
    growing = sum(_grows(run) for run in runs)
    if 2 * growing > len(runs) or math.isinf(memory_s):
        grew = f"the queue grew until the end in {growing} of {len(runs)} runs: "
        return [f"{grew if growing else ''}the load may be above capacity, and figures grow with `duration`"]
    return [*short(len(runs), min(run.duration_s for run in runs), cut_s, memory_s), *_began_otherwise(runs, cut_s)]


def short(runs: int, each_s: float, cut_s: float, memory_s: float) -> list[str]:
    """Return a doubt where so many runs of such a length are too few seconds for their load."""
    needed_s = memory_s * max(ENOUGH_EACH, ENOUGH / runs / (1 - cut_s / each_s))
    if each_s >= needed_s:
        return []
    return [
        f"runs are short for their load: the queue remembers {memory_s:.2g} s, so the p99 of {runs} x {each_s:.4g} s "
        f"may be far off: `duration: {math.ceil(needed_s)} s`, or less load"
    ]


def _began_otherwise(runs: Sequence[Run], cut_s: float) -> list[str]:
    """Return a doubt where sojourns were longer at first, on average over all runs."""
    first, *others = mean_course(runs, STRETCHES, cut_s).tolist()
    freedom = len(others) - 1
    wide = float(np.std(others, ddof=1)) * math.sqrt(1 + 1 / len(others))
    usual = float(np.mean(others))
    if first <= usual + t_quantile(1 - RARE, freedom) * wide or first <= 1.01 * usual:
        return []
    return [
        f"sojourns are {first / usual:.2g} times as long just after the warm-up as later: it takes longer than "
        f"{cut_s:.3g} s: a longer `warm_up`, and `duration`"
    ]


def _grows(run: Run) -> bool:
    """Return whether at the end more waited than ever before, and no few."""
    waiting = run.course.waiting
    tenth = max(1, len(waiting) // 10)
    last, middle = np.mean(waiting[-tenth:]), np.mean(waiting[4 * tenth : 6 * tenth] or [0])
    return bool(last > 100 and last > 1.5 * middle and last >= 0.8 * max(waiting, default=0))
