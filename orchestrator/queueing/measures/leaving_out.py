"""Intervals of figures by what they become when one part of the data is left out (the jackknife)."""

from __future__ import annotations

import math

import numpy as np

from orchestrator.analysis.student_t import t_quantile
from orchestrator.queueing.requests import Column

MOST_ALIKE = 0.8
"""The correlation of neighbours that is counted at most: of ten batches no more can be told."""


def quantiles(parts: list[Column], shares: list[float]) -> tuple[Column, Column]:
    """Quantiles of the values of all parts together, and by part those of all the others."""
    whole = np.concatenate(parts)
    order = np.argsort(whole)
    whole, owner = whole[order], np.repeat(np.arange(len(parts)), [len(part) for part in parts])[order]
    others = [_sorted_quantiles(whole[owner != number], shares) for number in range(len(parts))]
    return _sorted_quantiles(whole, shares), np.array(others)


def _sorted_quantiles(values: Column, shares: list[float]) -> Column:
    if not len(values):
        return np.full(len(shares), math.nan)
    return np.asarray(np.interp(np.array(shares) * (len(values) - 1), np.arange(len(values)), values))


def interval(value: float, without: Column, *, neighbours: bool) -> tuple[float, float] | None:
    """The 95 % interval of a figure that is not negative, from what it is without each of its parts.

    On a scale of ratios, so that it stays positive; a figure that some part makes 0 is cut off at 0. `neighbours`:
    the parts follow each other in one run, and count for less where they agree. None: a part has all there is.
    """
    ratios = value > 0 and bool(np.all(without > 0))
    others = np.log(without) if ratios else without
    count = len(others)
    if count < 2 or not np.all(np.isfinite(others)):
        return None
    apart = (count - 1) * (others.mean() - others)
    independent = _independent(apart) if neighbours else float(count)
    error = math.sqrt(float(np.mean(apart**2)) / (independent - 1))
    half = t_quantile(0.975, max(1, int(independent) - 1)) * error
    if ratios:
        return (value * math.exp(-half), value * math.exp(half)) if half < math.log(1e6) else None
    return max(0.0, value - half), value + half


def _independent(apart: Column) -> float:
    """Return how many independent batches a run's count as, by how much neighbours agree beyond chance."""
    total = float((apart**2).sum())
    alike = float((apart[1:] * apart[:-1]).sum()) / total if total > 0 else 0.0
    alike = min(max(alike - 1 / math.sqrt(len(apart)), 0.0), MOST_ALIKE)
    return max(2.0, len(apart) * (1 - alike) / (1 + alike))
