"""Estimate the ratio of one metric on two sides, on the scale of logarithms, where a ratio is a difference.

The ratio is the quotient of the medians of the two sides' blocks: of the figures that stand beside it. Its interval is
that of the best estimate that the design allows, made as wide as holds the quotient too. A rare slow block moves
neither: a tenth of the differences or blocks is trimmed at each end (K. K. Yuen, "The Two-Sample Trimmed t for Unequal
Population Variances", Biometrika 61, 1974).

Rows of a table with the same layout (so many blocks in so many nights on each side) are estimated together, as rows of
arrays: tables have thousands. Three ways, by what the design allows:
- `paired`: both sides ran in the same rounds of one night on one phone. The differences of a round are free of what
  the night, the phone and slow drifts do; Yuen's t over rounds.
- `nights`: four nights or more beyond one a side: the median of a night is one figure (Kalibera & Jones, "Rigorous
  Benchmarking in Reasonable Time", ISMM 2013: the highest level that varies is the one to repeat); pooled t, or the
  spread within a side's nights where that is larger.
- `blocks`: otherwise; Yuen's t over blocks, whose variance is widened by their correlation in time, and by an assumed
  variance between nights, which so few nights cannot show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis.statistics.serial import independent_shares
from orchestrator.analysis.student_t import Array, welch_freedoms

from .metrics import MIN_BLOCKS

Method = Literal["paired", "nights", "blocks", "examples"]
Places = NDArray[np.intp]
After = Callable[[Places, Places], tuple[Array, Array]]
LEAST_FREEDOM = 3
"""The least degrees of freedom of variance between nights: with less it is not worth measuring."""
ROUNDING_MS = 12**-0.5
"""Standard deviation of what rounding to whole milliseconds does."""
INTERLEAVED = 0.8
"""Least part of neighbouring rounds that must not overlap in time."""
FEWEST = 3
"""Blocks before and after a place of a night at which a phone may have begun to throttle."""
TRIMMED = 10
"""Values of which one is trimmed at each end: of 12 rounds with one block in a hundred 30 % slow, a difference of 5
% is found in 99 % instead of 84 %; a fifth would find 2 % in 37 instead of 54 % (benchmarks/statistics/nights.py)."""


class Ran(Protocol):
    """The time of a block."""

    @property
    def night(self) -> str: ...

    @property
    def round(self) -> int: ...

    @property
    def started_at(self) -> float: ...


class Block(NamedTuple):
    """One block's figure."""

    night: str
    round: int
    started_at: float
    value: float
    whole_ms: bool = False
    """The block's times were read in whole milliseconds."""


class Layout(NamedTuple):
    """The figures of an estimate: what rows have in common that are estimated together."""

    method: Method
    a: tuple[int, ...]
    """Blocks of each night, in order of time; of pairs their number."""
    b: tuple[int, ...]
    nights: tuple[int, int]

    @property
    def blocks(self) -> tuple[int, int]:
        return sum(self.a), sum(self.b)

    @property
    def enough(self) -> bool:
        """True if there are blocks enough for a verdict."""
        return min(self.blocks) >= MIN_BLOCKS


class Design(NamedTuple):
    """The use of two sides' blocks: their layout, and which block stands where."""

    layout: Layout
    a: tuple[int, ...]
    """Places of the blocks of A, in the order in which the layout has them."""
    b: tuple[int, ...]


@dataclass(frozen=True)
class Estimate:
    """The logarithms of B over A with their standard uncertainties and degrees of freedom, of one row or of many."""

    point: Array
    """The logarithm of the quotient of the sides' medians: what is told."""
    centre: Array
    """The logarithm of the estimate that the interval is of."""
    std: Array
    freedom: Array
    method: Method
    blocks: tuple[int, int]
    nights: tuple[int, int]
    after: After
    """Standard uncertainties and degrees of freedom that so many more units a side would give the rows at these
    places."""
    unit_blocks: int = 1
    """Blocks of a unit: of a night those that it has."""
    moved: Array | None = None
    """Each row's moves by itself, a column a place: its nights from the median of their side; of few nights the blocks
    of a night from the ones before. None of pairs and examples."""


def estimate(a: Sequence[Block], b: Sequence[Block], between: float, rounding: float = 0.0) -> Estimate | None:
    """Estimate the ratio of positive figures, two a side at least; None of fewer. `between`: assumed standard
    deviation between nights, a share. `rounding`: standard uncertainty, a share, that all blocks have in common."""
    design = design_of(a, b)
    if design is None:
        return None
    first, second = [a[place].value for place in design.a], [b[place].value for place in design.b]
    point = median(block.value for block in b) / median(block.value for block in a)
    return estimate_all(design.layout, [first], [second], [point], [between], [rounding])


def rounding_of(a: Sequence[Block], b: Sequence[Block]) -> float:
    """Return the standard uncertainty of times that were all read in whole milliseconds, as a share; else 0."""
    return ROUNDING_MS / median(each.value for each in a) if all(each.whole_ms for each in (*a, *b)) else 0.0


def design_of(a: Sequence[Ran], b: Sequence[Ran]) -> Design | None:
    """Return a design by when blocks ran, not by what they found; None of fewer than two a side."""
    paired = _rounds(a, b)
    if len(paired) >= 2 and 2 * len(paired) >= min(len(a), len(b)):
        nights = len({a[place].night for place, _ in paired})
        own, other = zip(*paired, strict=True)
        return Design(Layout("paired", (len(paired),), (len(paired),), (nights, nights)), own, other)
    if min(len(a), len(b)) < 2:
        return None
    sides = _by_night(a), _by_night(b)
    first, second = (tuple(map(len, side)) for side in sides)
    method: Method = "nights" if len(first) + len(second) - 2 >= LEAST_FREEDOM else "blocks"
    order = [tuple(place for own in side for place in own) for side in sides]
    return Design(Layout(method, first, second, (len(first), len(second))), order[0], order[1])


def estimate_all(
    layout: Layout, a: ArrayLike, b: ArrayLike, points: ArrayLike, between: ArrayLike, rounding: ArrayLike
) -> Estimate:
    """Estimate rows with this layout: positive figures of their blocks in its order; for each row the quotient of
    medians that is told, `between` and `rounding`."""
    figures, point = (np.asarray(a, np.float64), np.asarray(b, np.float64)), np.log(np.asarray(points, np.float64))
    rounded = 2 * np.asarray(rounding, np.float64) ** 2
    if layout.method == "nights":
        return _over_nights(layout, point, *figures, rounded)
    logs = np.log(figures[0]), np.log(figures[1])
    if layout.method == "paired":
        return _paired(layout, point, logs[1] - logs[0], rounded)
    return _over_blocks(layout, point, *logs, np.asarray(between, np.float64), rounded)


def _rounds(a: Iterable[Ran], b: Iterable[Ran]) -> list[tuple[int, int]]:
    """Blocks of one round of one night, where rounds follow each other: otherwise there is nothing to pair by."""
    if not {block.night for block in a} & {block.night for block in b}:
        return []
    first = {(block.night, block.round): (place, block) for place, block in enumerate(a)}
    second = {(block.night, block.round): (place, block) for place, block in enumerate(b)}
    pairs = [(first[key], second[key]) for key in sorted(first.keys() & second.keys())]
    apart = [
        max(x.started_at, y.started_at) <= min(u.started_at, v.started_at)
        for ((_, x), (_, y)), ((_, u), (_, v)) in pairwise(pairs)
        if x.night == u.night
    ]
    alternate = not apart or sum(apart) >= INTERLEAVED * len(apart)
    return [(x, y) for (x, _), (y, _) in pairs] if alternate else []


def _by_night(blocks: Sequence[Ran]) -> list[list[int]]:
    """Places of the blocks of each night, in order of time."""
    found: dict[str, list[int]] = {}
    times = [block.started_at for block in blocks]
    for place in sorted(range(len(times)), key=times.__getitem__):
        found.setdefault(blocks[place].night, []).append(place)
    return list(found.values())


def _mean(values: Array) -> Array:
    """Return each row's mean; that of equal values is their value to the last digit."""
    first = values[:, :1]
    return np.asarray(first[:, 0] + (values - first).mean(axis=1))


def _variance(values: Array) -> Array:
    return np.asarray((values - values[:, :1]).var(axis=1, ddof=1))


def _trimmed(values: Array) -> tuple[Array, Array]:
    """The trimmed mean of each row, and its variance by Yuen: by the values, those trimmed drawn in to the others."""
    count = values.shape[1]
    cut = count // TRIMMED
    left = count - 2 * cut
    kept = np.sort(values, axis=1)[:, cut : count - cut]
    drawn_in = np.clip(values, kept[:, :1], kept[:, -1:])
    return _mean(kept), _variance(drawn_in) * (count - 1) / (left * (left - 1))


def _freedom(count: Places) -> Array:
    """Return the degrees of freedom of the trimmed mean of `count` values."""
    return np.asarray(count - 2 * (count // TRIMMED) - 1, np.float64)


def _paired(layout: Layout, point: Array, differences: Array, rounded: Array) -> Estimate:
    (centre, variance), count = _trimmed(differences), differences.shape[1]

    def after(more: Places, at: Places) -> tuple[Array, Array]:
        return np.sqrt(variance[at] * count / (count + more) + rounded[at]), _freedom(count + more)

    return _estimate(layout, point, centre, after)


def _over_nights(layout: Layout, point: Array, a: Array, b: Array, rounded: Array) -> Estimate:
    nights = [_nights(side, sizes) for side, sizes in ((a, layout.a), (b, layout.b))]
    figures = [np.log(np.stack([np.median(own, axis=1) for own in side], 1)) for side in nights]
    counts = layout.nights
    middles = [_mean(side) for side in figures]
    squares = sum(((side - middle[:, None]) ** 2).sum(axis=1) for side, middle in zip(figures, middles, strict=True))
    between = np.asarray(squares) / (sum(counts) - 2)
    spreads = [np.maximum(between, _within(side)) for side in nights]

    def after(more: Places, at: Places) -> tuple[Array, Array]:
        n, m = counts[0] + more, counts[1] + more
        std: Array = np.sqrt(spreads[0][at] / n + spreads[1][at] / m + rounded[at])
        return std, np.asarray(n + m - 2.0)

    a_night = -(-sum(layout.blocks) // sum(counts))
    moved = np.hstack([side - np.median(side, axis=1)[:, None] for side in figures])
    return replace(_estimate(layout, point, middles[1] - middles[0], after, a_night), moved=moved)


def _within(nights: Sequence[Array]) -> Array:
    """The variance of the median of a night by its own blocks, of the middle one of a side's nights: a phone that
    throttled in mid-night scatters more than its nights differ."""
    known = [np.log(own).var(axis=1, ddof=1) * np.pi / 2 / own.shape[1] for own in nights if own.shape[1] > 1]
    return np.asarray(np.median(known, axis=0)) if known else np.zeros(1)


def _over_blocks(layout: Layout, point: Array, a: Array, b: Array, between: Array, rounded: Array) -> Estimate:
    sides = [_Side.of(a, layout.a), _Side.of(b, layout.b)]
    assumed = between**2 * sum(1 / nights for nights in layout.nights) + rounded

    def after(more: Places, at: Places) -> tuple[Array, Array]:
        (own, own_freedom), (other, other_freedom) = (side.after(more, at) for side in sides)
        common = np.sqrt(assumed[at])
        freedom = welch_freedoms((own, own_freedom), (other, other_freedom), (common, np.inf))
        return np.sqrt(own**2 + other**2 + assumed[at]), freedom

    nights = [*_nights(a, layout.a), *_nights(b, layout.b)]
    moved = [
        np.median(own[:, place:], axis=1) - np.median(own[:, :place], axis=1)
        for own in nights
        for place in range(FEWEST, own.shape[1] - FEWEST + 1)
    ]
    found = _estimate(layout, point, sides[1].centre - sides[0].centre, after)
    return replace(found, moved=np.stack(moved, 1) if moved else np.zeros((len(point), 1)))


def _nights(values: Array, sizes: Sequence[int]) -> list[Array]:
    """The columns of each night."""
    return np.split(values, np.cumsum(sizes)[:-1], axis=1)


def _estimate(layout: Layout, point: Array, centre: Array, after: After, unit_blocks: int = 1) -> Estimate:
    every = np.arange(len(centre))
    std, freedom = after(np.zeros(len(every), np.intp), every)
    return Estimate(point, centre, std, freedom, layout.method, layout.blocks, layout.nights, after, unit_blocks)


@dataclass(frozen=True)
class _Side:
    centre: Array
    """Trimmed mean."""
    variance: Array
    """The variance of the trimmed mean."""
    count: int
    share: Array
    """Independent blocks that a block is worth: less than one where neighbours are alike."""

    @staticmethod
    def of(values: Array, sizes: Sequence[int]) -> _Side:
        shares = [independent_shares(own) for own in _nights(values, sizes)]
        return _Side(*_trimmed(values), values.shape[1], np.min(shares, axis=0))

    def after(self, more: Places, at: Places) -> tuple[Array, Array]:
        share, count = self.share[at], self.count + more
        variance = self.variance[at] * self.count / count
        return np.sqrt(variance / share), np.maximum(1.0, (_freedom(count) + 1) * share - 1)
