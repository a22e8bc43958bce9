"""Classify a cell's figures as few, drifting, bimodal or stable, with the reason in numbers.

Drift over the run: the Mann-Kendall test on the blocks' medians in order of time (Mann, "Nonparametric Tests Against
Trend", 1945; normal approximation with continuity correction, ties counted as in Kendall, "Rank Correlation Methods",
1975), and a change that matters. Drift within a block: last fifth against first fifth of its samples.
Two levels: the split into two groups with the least squares within (Otsu 1979, in one dimension) and Ashman's D of the
two (Ashman, Bird & Zepf, "Detecting bimodality in astronomical datasets", 1994). The split itself makes D about 2.65
for a normal and 3.5 for a uniform distribution, and more in small samples of skewed ones: D must exceed
4 + 8 / sqrt(samples). A block with more than 32 samples is told by 32 quantiles of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import sqrt
from statistics import NormalDist, median

import numpy as np

from orchestrator.analysis.figures import Times
from orchestrator.model.base import Model

from .intervals import range_coverage

FEW_BLOCKS = 5
"""Fewer blocks allow no verdict: their range covers the true median less often than 93 %."""
TREND_LEVEL = 0.05
DRIFT_SHARE = 0.03
"""Least change from the first to the last third of the blocks that matters."""
WITHIN_SHARE = 0.05
"""Least change within a block that matters."""
WITHIN_AGREE = 0.8
"""Least part of the blocks that drift in the same direction."""
MODES_D = 4.0
MODES_D_FEW = 8.0
MODES_GAP = 0.05
"""Least distance of two levels, as a share of the lower one."""
MODES_PART = 0.15
"""Least part of the samples in each level."""
MODES_SAMPLES = 20
"""Fewer samples show no two levels."""


class Verdict(StrEnum):
    STABLE = "stable"
    DRIFTING = "drifting"
    BIMODAL = "bimodal"
    FEW = "few"


class Stability(Model):
    """A verdict with its reason."""

    verdict: Verdict
    reason: str


def stability(blocks: Sequence[Times]) -> Stability:
    """Judge a cell by the times of its blocks, in order of time."""
    if len(blocks) < FEW_BLOCKS:
        return Stability(verdict=Verdict.FEW, reason=_few(len(blocks)))
    for verdict, reason in (
        (Verdict.DRIFTING, _trend([block.median_ms for block in blocks]) or _within(blocks)),
        (Verdict.BIMODAL, _two_levels([time for block in blocks for time in block.quantiles_ms])),
    ):
        if reason:
            return Stability(verdict=verdict, reason=reason)
    return Stability(verdict=Verdict.STABLE, reason=f"no trend over {len(blocks)} blocks, one level")


def _few(blocks: int) -> str:
    word = "block" if blocks == 1 else "blocks"
    covers = f": their range covers the true median in {range_coverage(blocks):.0%} of cases" if blocks > 1 else ""
    return f"{blocks} {word}{covers}; {FEW_BLOCKS} or more tell"


def _trend(medians: Sequence[float]) -> str:
    """Why the blocks' medians have a trend that matters; empty where they have none."""
    third = max(1, len(medians) // 3)
    change = median(medians[-third:]) / median(medians[:third]) - 1
    if abs(change) < DRIFT_SHARE:
        return ""
    p = mann_kendall(medians)
    return f"{change:+.1%} from the first to the last blocks of the run (p {p:.2g})" if p < TREND_LEVEL else ""


def mann_kendall(values: Sequence[float]) -> float:
    """Two-sided p of no trend, by the normal approximation with continuity correction."""
    n = len(values)
    s = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    ties = [values.count(value) for value in set(values)]
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    if s == 0 or variance == 0:
        return 1.0
    return 2 * (1 - NormalDist().cdf((abs(s) - 1) / sqrt(variance)))


def _within(blocks: Sequence[Times]) -> str:
    """Why samples drift within blocks; empty where most blocks do not."""
    fifths = [block.fifths_ms for block in blocks if block.fifths_ms is not None]
    if not fifths:
        return ""
    changes = [last / first - 1 for first, last in fifths]
    change = median(changes)
    agree = sum(each * change > 0 for each in changes) / len(changes)
    if abs(change) <= WITHIN_SHARE or agree < WITHIN_AGREE:
        return ""
    return f"{change:+.1%} from the first to the last fifth of a block"


def _two_levels(samples: Sequence[float]) -> str:
    """Why samples lie on two levels; empty where they lie on one."""
    if len(samples) < MODES_SAMPLES:
        return ""
    low, high = _split(np.sort(np.asarray(samples, dtype=np.float64)))
    part = min(len(low), len(high)) / len(samples)
    gap = float(high.mean() - low.mean())
    spread = sqrt((float(low.var()) + float(high.var())) / 2)
    least_d = MODES_D + MODES_D_FEW / sqrt(len(samples))
    if part < MODES_PART or gap < MODES_GAP * float(low.mean()) or gap < least_d * spread:
        return ""
    return (
        f"two levels: {np.median(low):.3g} ms ({len(low) / len(samples):.0%} of samples) and {np.median(high):.3g} ms"
    )


def _split(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two groups of sorted values with the least sum of squares within them."""
    n = len(ordered)
    counts = np.arange(1, n)
    sums = np.cumsum(ordered)
    below, above = sums[:-1], sums[-1] - sums[:-1]
    between = below**2 / counts + above**2 / (n - counts)
    cut = int(np.argmax(between)) + 1
    return ordered[:cut], ordered[cut:]
