"""Find where a series of figures changes its level: the night from which on something is faster or slower.

Candidates are the splits with the largest energy statistic (E-divisive: D. S. Matteson and N. A. James, "A
Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA 109, 2014) of seeded intervals
(S. Kovacs, P. Buhlmann, H. Li and A. Munk, "Seeded binary segmentation", Biometrika 110, 2023), so that a change which
is soon taken back is not lost in the whole series. Each is put where it leaves the least spread between its neighbours,
and tested against the values to its left and right, as far as the next change points, corrected for the number of
places. Where values resemble the one before, two tests have to find it, one of the jump and one of the means
(`autoregression.py`); otherwise both are Student's t. It must also be likelier than a level that wanders
(`wandering.py`). Nothing is random: the same series has the same change points.
Of intervals of thousands of values, where the energy statistic takes long, the split of least spread is the candidate.

A noise floor is learnt from the series: the spread of differences of neighbours, which steps hardly touch. Single
values far outside it (a spike) are drawn in before anything is tested, and no change below the floor is told.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import inf, ldexp, sqrt
from typing import NamedTuple

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model

from .autoregression import difference, last_column, resemblance
from .distances import distances
from .step_place import likeliest_place
from .ticks import p_of_ticks
from .wandering import SURE, evidence, least_evidence

LEVEL = 0.008
"""A series without any change has a change point at most as often, if its values are not alike; else 1 to 4 % have."""
FEWEST = 3
"""Values on each side of a change point."""
SPIKE = 4.0
"""A value that lies further from the median of its neighbours, in units of the noise, is drawn in to there."""
REACH = 3
"""Neighbours on each side."""
FLOOR = 1.0
"""Least change, in units of the noise."""
ROUNDING = 1e-12
"""A share of the largest value; what differs by less is the same number."""
NORMAL_MAD = 1.4826
OF_TICKS = 0.05
"""The p-value above which a split is no step in any case."""
ROUNDS = 5
AT_ONCE = 200_000
"""Distances that are kept at a time where there are few values."""
LONG = 4096
"""The length from which on an interval's candidate is the split of least spread: hardly another one, far sooner."""


class ChangePoint(Model):
    """The first value of a new level."""

    index: int = Field(ge=1)
    magnitude: float | None
    """Change of the level as a share of the level before: 0.05 is 5 % more. None where that level is zero."""
    p_value: float
    before: float
    """Median from the change point before."""
    after: float
    """Median up to the next change point."""
    may_wander: bool
    """True if a level that wanders looks like this in 1 series of 100 or more: more values tell."""


class Changes(Model):
    """The change points of one series."""

    noise: float
    """Standard deviation of a value, robust, in the unit of the series."""
    floor: float
    """Least change that is told, in the unit of the series."""
    alike: float
    """Correlation of a value with the next one, as if it were of the first order; 0 at least."""
    points: tuple[ChangePoint, ...]


class _Split(NamedTuple):
    """A split of the values from `start` to before `end`."""

    start: int
    place: int
    end: int


def change_points(
    values: Sequence[float], level: float = LEVEL, least: float = 0.0, alike: float | None = None
) -> Changes:
    """Find the changes of level of values in order of time. `least`: changes by a smaller share are not told;
    `alike`: correlation of a value with the next one, None: it is learnt."""
    raw = np.asarray(values, dtype=float)
    exponent = int(np.frexp(np.abs(raw).max(initial=0.0))[1])
    raw = np.ldexp(raw, -exponent)  # at most one, so that no square is too large or too small for a number
    noise = _noise(raw)
    floor = max(FLOOR * noise, ROUNDING * float(np.abs(raw).max(initial=0.0)))
    drawn_in = _without_spikes(raw, noise)
    places, learnt = _steps(drawn_in, floor, level, alike)
    moved = _neighbours(_likeliest(drawn_in, places, alike), len(raw))
    points = [
        _point(raw, exponent, *each, _p(drawn_in, *first, learnt), _evidence(drawn_in, first) < SURE)
        for each, first in zip(moved, _neighbours(places, len(raw)), strict=True)
    ]
    return Changes(
        noise=ldexp(noise, exponent),
        floor=ldexp(floor, exponent),
        alike=learnt,
        points=tuple(each for each in points if each.magnitude is None or abs(each.magnitude) >= least),
    )


def _point(
    raw: np.ndarray, exponent: int, start: int, place: int, end: int, p_value: float, may_wander: bool
) -> ChangePoint:
    before, after = float(np.median(raw[start:place])), float(np.median(raw[place:end]))
    change = after - before
    return ChangePoint(
        index=place,
        magnitude=change / abs(before) if before else None,
        p_value=p_value,
        before=ldexp(before, exponent),
        after=ldexp(after, exponent),
        may_wander=may_wander,
    )


def _likeliest(values: np.ndarray, places: Sequence[int], alike: float | None) -> list[int]:
    """Each put where it is likeliest between its neighbours, now that it is sure."""
    moved = [0]
    for _, _, end in _neighbours(places, len(values)):
        between = values[moved[-1] : end]
        moved.append(moved[-1] + likeliest_place(between - between.mean(), FEWEST, alike))
    return moved[1:]


def _neighbours(places: Sequence[int], count: int) -> list[_Split]:
    """Each place, between the one before and the next."""
    edges = [0, *places, count]
    return [_Split(*each) for each in zip(edges, edges[1:], edges[2:], strict=False)]


def _noise(values: np.ndarray) -> float:
    """Return a value's noise, by the median difference of neighbours; where more than half are zero, by their mean."""
    steps = np.abs(np.diff(values))
    if not steps.size:
        return 0.0
    return float(np.median(steps) * NORMAL_MAD or np.mean(steps)) / sqrt(2)


def _without_spikes(values: np.ndarray, noise: float) -> np.ndarray:
    padded = np.pad(values, REACH, mode="reflect") if len(values) > REACH else values
    if len(padded) == len(values):
        return values
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * REACH + 1), axis=1)
    return np.asarray(np.clip(values, middle - SPIKE * noise, middle + SPIKE * noise))


def _steps(values: np.ndarray, floor: float, level: float, alike: float | None) -> tuple[list[int], float]:
    """The places of steps, and the correlation of a value with the next one. How alike neighbours are is seen between
    the steps that there would be if they were not; of these those stay that stand out of it."""
    places = _places(values, _splits(values, _intervals(len(values)), floor), level)
    places = _between(values, places, floor, level)
    places = _settled(values, places, floor, level, 0.0)
    alike = resemblance(np.split(values, places)) if alike is None else alike
    return (_settled(values, places, floor, level, alike) if alike else places), alike


def _places(values: np.ndarray, splits: Iterable[_Split], level: float) -> list[int]:
    """Return change points of values that are not alike: the surest split first, then those of intervals without it."""
    tested = [(_p(values, each.start, each.place, each.end, 0.0), each) for each in splits]
    found = sorted((p, each.place, each.end - each.start, each) for p, each in tested if p <= level)
    places: list[int] = []
    for _, place, _, split in found:
        if bisect_right(places, split.start) == bisect_left(places, split.end):
            insort(places, place)
    return places


def _between(values: np.ndarray, places: list[int], floor: float, level: float) -> list[int]:
    """Add the change points between known ones: both ends of a change that is soon taken back are needed before
    either stands out of the whole series."""
    for _ in range(ROUNDS):
        edges = [0, *places, len(values)]
        more = _places(values, _splits(values, pairwise(edges), floor), level)
        if not more:
            break
        places = sorted([*places, *more])
    return places


def _intervals(count: int) -> Iterator[tuple[int, int]]:
    """Yield intervals of each length, by steps of the square root of two, so many that neighbours overlap by half."""
    length = float(count)
    while length >= 2 * FEWEST:
        many = 2 * int(np.ceil(count / length)) - 1
        for start in np.linspace(0, count - length, many):
            yield int(start), min(count, int(np.ceil(start + length)))
        length /= sqrt(2)


def _splits(values: np.ndarray, intervals: Iterable[tuple[int, int]], floor: float) -> Iterator[_Split]:
    """The best split of each interval; none of those that are too short, or whose parts differ by less than the noise
    floor. Intervals of one length are looked at together, as far as memory allows."""
    starts: dict[int, list[int]] = {}
    for start, end in intervals:
        if end - start >= 2 * FEWEST:
            starts.setdefault(end - start, []).append(start)
    sums = np.concatenate([[0.0], np.cumsum(values - values[:1])])
    for length, every in starts.items():
        rows = np.lib.stride_tricks.sliding_window_view(values, length)
        together = max(1, AT_ONCE // length**2)
        for first in range(0, len(every), together):
            low = np.array(every[first : first + together])
            n = np.array([_least_squares(rows[low[0]])]) if length > LONG else _most_energy(rows[low])
            place, high = low + n, low + length
            apart = (sums[high] - sums[place]) / (length - n) - (sums[place] - sums[low]) / n
            for at in np.flatnonzero(np.abs(apart) > floor):
                yield _Split(int(low[at]), int(place[at]), int(high[at]))


def _most_energy(rows: np.ndarray) -> np.ndarray:
    """Return each row's split with the largest energy statistic of the two parts."""
    count = rows.shape[1]
    left, right = distances(rows)
    within_left, within_right = np.cumsum(left, axis=1), np.cumsum(right[:, ::-1], axis=1)[:, ::-1]
    total = within_left[:, -1:]
    n = np.arange(FEWEST, count - FEWEST + 1)
    m = count - n
    of_left, of_right = within_left[:, n - 1], within_right[:, n]
    between = total - of_left - of_right
    energy = 2 * between / (n * m) - of_left / (n * (n - 1) / 2) - of_right / (m * (m - 1) / 2)
    return np.asarray(n[np.argmax(energy * (n * m / count), axis=1)])


def _least_squares(values: np.ndarray) -> int:
    """The split that leaves the least spread within the two parts: of values without spikes the likeliest place."""
    n = np.arange(FEWEST, len(values) - FEWEST + 1)
    total = np.cumsum(values - values.mean())[n - 1]
    return int(n[np.argmax(total**2 / (n * (len(values) - n)))])


def _p(values: np.ndarray, start: int, place: int, end: int, alike: float) -> float:
    """Two-sided, of no change at the best of all places between `start` and `end`."""
    tests = max(1, len(values) - 2 * FEWEST + 1)
    left, right = values[start:place], values[place:end]
    means = difference(left, right, alike).p_value
    if tests * means <= OF_TICKS:
        means = max(means, p_of_ticks(left, right))
    if alike == 0 or tests * means >= 1:
        return min(1.0, tests * means)
    step = np.arange(start, end) >= place
    jump = last_column(values[start:end], np.column_stack([np.ones(end - start), step]), alike).p_value
    return min(1.0, tests * max(means, jump))


def _settled(values: np.ndarray, places: list[int], floor: float, level: float, alike: float) -> list[int]:
    """Each put where it is best between its neighbours; what then is no change is left out, the least sure first."""
    for _ in range(ROUNDS):
        moved = [
            a + _least_squares(values[a:c]) if c - a >= 2 * FEWEST else b
            for a, b, c in _neighbours(places, len(values))
        ]
        if moved == places:
            break
        places = sorted(set(moved))

    @cache
    def unsure(split: _Split) -> float:
        if not _differ(values, *split, floor):
            return inf
        lacks = least_evidence(len(values)) - _evidence(values, split)
        return 1 + lacks if lacks > 0 else _p(values, *split, alike)

    while places:
        by_chance = [unsure(each) for each in _neighbours(places, len(values))]
        if max(by_chance) <= level:
            break
        del places[by_chance.index(max(by_chance))]
    return places


def _evidence(values: np.ndarray, split: _Split) -> float:
    return evidence(values[split.start : split.end], split.place - split.start)


def _differ(values: np.ndarray, start: int, place: int, end: int, floor: float) -> bool:
    return abs(float(np.mean(values[place:end]) - np.mean(values[start:place]))) > floor
