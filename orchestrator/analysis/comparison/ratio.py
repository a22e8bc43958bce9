"""Estimate the ratio of one metric on two sides, on the scale of logarithms, where a ratio is a difference.

Three ways, by what the design allows:
- `paired`: both sides ran in the same rounds of one night on one phone. The differences of a round are free of what
  the night, the phone and slow drifts do; Student's t over rounds.
- `nights`: four nights or more beyond one a side: the mean of a night is one figure (Kalibera & Jones, "Rigorous
  Benchmarking in Reasonable Time", ISMM 2013: the highest level that varies is the one to repeat); pooled t.
- `blocks`: otherwise; Welch's t over blocks, whose variance is widened by their correlation in time, and by an assumed
  variance between nights, which so few nights cannot show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log, sqrt
from statistics import fmean, variance
from typing import Literal, NamedTuple

from orchestrator.analysis.statistics.serial import independent_share
from orchestrator.analysis.student_t import welch_freedom

from .metrics import MIN_BLOCKS

Method = Literal["paired", "nights", "blocks", "examples"]
LEAST_FREEDOM = 3
"""Of variance between nights: with less it is not worth measuring."""
ROUNDING_MS = 12**-0.5
"""Standard deviation of what rounding to whole milliseconds does."""
INTERLEAVED = 0.8
"""Least part of neighbouring rounds that must not overlap in time."""


class Block(NamedTuple):
    """One block's figure."""

    night: str
    round: int
    at: float
    value: float


@dataclass(frozen=True)
class Estimate:
    """The logarithm of B over A with its standard uncertainty and degrees of freedom."""

    log_ratio: float
    std: float
    freedom: float
    method: Method
    blocks: tuple[int, int]
    nights: tuple[int, int]
    after: Callable[[int], tuple[float, float]]
    """Standard uncertainty and degrees of freedom that so many more units a side would give."""
    unit_blocks: int = 1
    """Blocks of a unit: of a night those that it has."""


def estimate(a: Sequence[Block], b: Sequence[Block], between: float, rounding: float = 0.0) -> Estimate | None:
    """Of positive figures, two a side at least; None of fewer. `between`: assumed standard deviation between nights,
    a share. `rounding`: standard uncertainty, a share, that all blocks have in common."""
    paired = _rounds(a, b)
    if len(paired) >= 2 and 2 * len(paired) >= min(len(a), len(b)):
        return _paired(paired, rounding)
    if min(len(a), len(b)) < 2:
        return None
    if len(_by_night(a)) + len(_by_night(b)) - 2 >= LEAST_FREEDOM:
        return _over_nights(a, b, rounding)
    return _over_blocks(a, b, between, rounding)


def _rounds(a: Iterable[Block], b: Iterable[Block]) -> list[tuple[Block, Block]]:
    """Blocks of one round of one night, where rounds follow each other: otherwise there is nothing to pair by."""
    first = {(block.night, block.round): block for block in a}
    second = {(block.night, block.round): block for block in b}
    pairs = [(first[key], second[key]) for key in sorted(first.keys() & second.keys())]
    apart = [
        max(x.at, y.at) <= min(after.at for after in (u, v)) for (x, y), (u, v) in pairwise(pairs) if x.night == u.night
    ]
    return pairs if not apart or sum(apart) >= INTERLEAVED * len(apart) else []


def _paired(pairs: Sequence[tuple[Block, Block]], rounding: float) -> Estimate:
    differences = [log(y.value) - log(x.value) for x, y in pairs]
    spread, count = variance(differences), len(differences)

    def after(more: int) -> tuple[float, float]:
        return sqrt(spread / (count + more) + 2 * rounding**2), count + more - 1

    nights = len({x.night for x, _ in pairs})
    std, freedom = after(0)
    return Estimate(fmean(differences), std, freedom, "paired", (count, count), (nights, nights), after)


def _by_night(blocks: Iterable[Block]) -> dict[str, list[float]]:
    """Logarithms in order of time."""
    found: dict[str, list[float]] = {}
    for block in sorted(blocks, key=lambda block: block.at):
        found.setdefault(block.night, []).append(log(block.value))
    return found


def _over_nights(a: Sequence[Block], b: Sequence[Block], rounding: float) -> Estimate:
    means = [[fmean(own) for own in _by_night(side).values()] for side in (a, b)]
    counts = len(means[0]), len(means[1])
    squares = sum((mean - fmean(side)) ** 2 for side in means for mean in side)
    spread = squares / (sum(counts) - 2)

    def after(more: int) -> tuple[float, float]:
        n, m = counts[0] + more, counts[1] + more
        return sqrt(spread * (1 / n + 1 / m) + 2 * rounding**2), n + m - 2

    std, freedom = after(0)
    a_night = -(-(len(a) + len(b)) // sum(counts))
    return Estimate(fmean(means[1]) - fmean(means[0]), std, freedom, "nights", (len(a), len(b)), counts, after, a_night)


def _over_blocks(a: Sequence[Block], b: Sequence[Block], between: float, rounding: float) -> Estimate:
    sides = [_Side.of(a), _Side.of(b)]
    assumed = between**2 * sum(1 / side.nights for side in sides) + 2 * rounding**2

    def after(more: int) -> tuple[float, float]:
        parts = [side.after(more) for side in sides]
        freedom = welch_freedom(*parts, (sqrt(assumed), inf))
        return sqrt(sum(std**2 for std, _ in parts) + assumed), freedom

    std, freedom = after(0)
    counts, nights = (len(a), len(b)), (sides[0].nights, sides[1].nights)
    return Estimate(sides[1].mean - sides[0].mean, std, freedom, "blocks", counts, nights, after)


@dataclass(frozen=True)
class _Side:
    mean: float
    spread: float
    """Variance of a block."""
    count: int
    nights: int
    share: float
    """Independent blocks that a block is worth: less than one where neighbours are alike."""

    @staticmethod
    def of(blocks: Sequence[Block]) -> _Side:
        by_night = _by_night(blocks)
        values = [value for own in by_night.values() for value in own]
        shares = [independent_share(own) for own in by_night.values()]
        return _Side(fmean(values), variance(values), len(values), len(by_night), min(shares))

    def after(self, more: int) -> tuple[float, float]:
        independent = (self.count + more) * self.share
        return sqrt(self.spread / independent), max(1.0, independent - 1)


def enough(found: Estimate) -> bool:
    return min(found.blocks) >= MIN_BLOCKS
