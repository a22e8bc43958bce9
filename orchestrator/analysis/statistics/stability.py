"""Classify a cell's figures as few, drifting, bimodal or stable, with the reason in numbers.

What is counted is blocks: samples of one block are alike, so that a thousand of them prove no more than the block.

Drift over the run: the split of the blocks' medians in order of time whose halves differ most, by Student's t with
Bonferroni's correction for the choice (Worsley, "On the Likelihood Ratio Test for a Shift in Location of Normal
Populations", Journal of the American Statistical Association 74, 1979), or the slope of their regression on the order.
Drift within blocks: Student's t of the blocks' changes from the first to the last fifth of their samples. Each must
matter, too.
Two levels of the blocks: the same t of the sorted medians (Otsu's split), against its 99.4 % point for one normal
level; two within blocks: the split of a block's samples by Ashman's D (Ashman, Bird & Zepf, "Detecting bimodality in
astronomical datasets", 1994), in most of the blocks. benchmarks/statistics/coverage.py is the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import inf, log, sqrt
from statistics import correlation, fmean, median, stdev

import numpy as np

from orchestrator.analysis.student_t import t_quantile
from orchestrator.figures import Times
from orchestrator.model.base import Model
from orchestrator.model.quantity import counted

from .intervals import range_coverage

FEW_BLOCKS = 5
"""Fewer blocks allow no verdict: their range covers the true median less often than 93 %."""
FALSE_STEP, FALSE_SLOPE, FALSE_WITHIN = 0.006, 0.0008, 0.0012
"""Shares of runs without any drift in which a step, a slope over the run, or a drift within blocks is seen: 0.8 % in
all. A step of five standard deviations in the middle of ten blocks is then found in 95 %."""
FEW_OF_LEVELS = 7
"""Blocks on two levels within, whose fifths lie on either by chance, drift where so many or more all change one way."""
LEAST_PART = 2
"""Blocks on each side of a change, and on each level: one block alone is an outlier."""
DRIFT_SHARE = 0.03
"""Least change over the run that matters."""
WITHIN_SHARE = 0.05
"""Least change within a block that matters."""
LEVELS_GAP = 0.05
"""Least distance of two levels, as a share of the lower one."""
LEVELS_T = dict(enumerate((
    15.35, 12.45, 11.1, 10.3, 9.85, 9.55, 9.45, 9.4, 9.4, 9.4, 9.4, 9.5, 9.55, 9.6, 9.7, 9.75,
), FEW_BLOCKS))  # fmt: skip
"""The t of one normal level's best split, exceeded in 0.6 % of cases (by simulation), by number of blocks."""
LEVELS_T_MORE = 3.9, 1.32
"""The t of more blocks: a constant, and a factor of the square root of their number, as of very many blocks."""
MODES_D = 4.0
MODES_D_FEW = 8.0
MODES_PART = 0.15
"""Least part of a block's samples in each level."""
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
    medians = [block.median_ms for block in blocks]
    hopping = _two_within(blocks)  # then medians lie on either level by chance, which means do not
    middles = [block.mean_ms for block in blocks] if hopping else medians
    for verdict, reason in (
        (Verdict.DRIFTING, _change(middles) or _within(blocks, hopping=bool(hopping))),
        (Verdict.BIMODAL, _two_levels(medians) or hopping),
    ):
        if reason:
            return Stability(verdict=verdict, reason=reason)
    return Stability(verdict=Verdict.STABLE, reason=f"no change over {counted(len(blocks), 'block')}, one level")


def _few(blocks: int) -> str:
    word = "block" if blocks == 1 else "blocks"
    covers = f": their range covers the true median in {range_coverage(blocks):.0%} of cases" if blocks > 1 else ""
    return f"{blocks} {word}{covers}; {FEW_BLOCKS} or more tell"


class _Split:
    """The cut of values, in a given order, whose sides differ most."""

    def __init__(self, values: Sequence[float]) -> None:
        n = len(values)
        array = np.asarray(values, dtype=np.float64)
        left = np.arange(LEAST_PART, n - LEAST_PART + 1)
        sums, total = np.cumsum(array)[left - 1], float(array.sum())
        below, above = sums / left, (total - sums) / (n - left)
        between = (below - above) ** 2 * left * (n - left) / n
        best = int(np.argmax(between))
        self.at = int(left[best])
        self.low, self.high = float(below[best]), float(above[best])
        within = max(0.0, float(((array - array.mean()) ** 2).sum()) - float(between[best]))
        self.t = sqrt(float(between[best]) * (n - 2) / within) if within > 0 else inf if between[best] > 0 else 0.0


def _change(medians: Sequence[float]) -> str:
    """Return why the blocks' medians change over the run by what matters; empty where they do not."""
    n, third = len(medians), max(1, len(medians) // 3)
    split = _Split(medians)
    slope, step = median(medians[-third:]) / median(medians[:third]) - 1, split.high / split.low - 1
    share = max(slope, step, key=abs)
    splits = n - 2 * LEAST_PART + 1
    if abs(share) < DRIFT_SHARE:
        return ""
    if split.t > t_quantile(1 - FALSE_STEP / (2 * splits), n - 2):
        return f"{share:+.1%} over the run, most of it at block {split.at + 1} of {n}"
    if _slope_t(medians) > t_quantile(1 - FALSE_SLOPE / 2, n - 2):
        return f"{share:+.1%} over the run, little by little"
    return ""


def _slope_t(medians: Sequence[float]) -> float:
    """Student's t of the values' regression on their order, without its sign."""
    if len(set(medians)) == 1:
        return 0.0
    r = min(abs(correlation(range(len(medians)), medians)), 1.0)
    return inf if r == 1 else r * sqrt((len(medians) - 2) / (1 - r * r))


def _within(blocks: Sequence[Times], *, hopping: bool) -> str:
    """Return why samples drift within blocks; empty where they do not, as far as the blocks tell.

    `hopping`: samples of most blocks lie on two levels.
    """
    changes = [
        log(last / first)
        for first, last in (block.fifths_ms for block in blocks if block.fifths_ms)
        if min(first, last) > 0
    ]
    if len(changes) < FEW_BLOCKS or abs(share := median(map(np.expm1, changes))) <= WITHIN_SHARE:
        return ""
    error = stdev(changes) / sqrt(len(changes))
    if abs(fmean(changes)) <= error * t_quantile(1 - FALSE_WITHIN / 2, len(changes) - 1):
        return ""
    if hopping and (len(changes) < FEW_OF_LEVELS or min(changes) * max(changes) <= 0):
        return ""
    return f"{share:+.1%} from the first to the last fifth of a block"


def _two_levels(medians: Sequence[float]) -> str:
    """Return why blocks lie on two levels; empty where they lie on one."""
    n, ordered = len(medians), sorted(medians)
    split = _Split(ordered)
    least = LEVELS_T.get(n, LEVELS_T_MORE[0] + LEVELS_T_MORE[1] * sqrt(n))
    if split.high - split.low < LEVELS_GAP * split.low or split.t < least:
        return ""
    low, high = median(ordered[: split.at]), median(ordered[split.at :])
    return f"two levels: {low:.3g} ms ({split.at} of {counted(n, 'block')}) and {high:.3g} ms"


def _two_within(blocks: Sequence[Times]) -> str:
    """Return why the samples of most blocks lie on two levels; empty where they do not."""
    found = [levels for block in blocks if (levels := _levels_of(block.quantiles_ms)) is not None]
    if 2 * len(found) <= len(blocks):
        return ""
    low, high = (median(each[i] for each in found) for i in (0, 1))
    return f"two levels within {len(found)} of {counted(len(blocks), 'block')}: {low:.3g} ms and {high:.3g} ms"


def _levels_of(samples: Sequence[float]) -> tuple[float, float] | None:
    """The two levels on which the samples of a block lie; None where they lie on one."""
    n = len(samples)
    if n < MODES_SAMPLES:
        return None
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    cut = _Split(ordered.tolist()).at
    low, high = ordered[:cut], ordered[cut:]
    gap = float(high.mean() - low.mean())
    spread = sqrt((float(low.var()) + float(high.var())) / 2)
    if min(cut, n - cut) < MODES_PART * n or gap < LEVELS_GAP * float(low.mean()):
        return None
    return (
        (float(np.median(low)), float(np.median(high))) if gap >= (MODES_D + MODES_D_FEW / sqrt(n)) * spread else None
    )
