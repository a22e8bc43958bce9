"""Find where a series of figures changes its level: the night from which on something is faster or slower.

Candidates are the splits with the largest energy statistic (E-divisive: D. S. Matteson and N. A. James, "A
Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA 109, 2014) of seeded intervals
(S. Kovacs, P. Buhlmann, H. Li and A. Munk, "Seeded binary segmentation", Biometrika 110, 2023), so that a change which
is soon taken back is not lost in the whole series. Each is put where it leaves the least spread between its neighbours,
and tested by Student's t of the values to its left and right, as far as the next change points, with fewer degrees of
freedom where neighbours are alike, and corrected for the number of places. Nothing is random: the same series has the
same change points.

A noise floor is learnt from the series: the spread of differences of neighbours, which steps hardly touch. Single
values far outside it (a spike) are drawn in before anything is tested, and no change below the floor is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model

from .statistics.serial import independent_share

LEVEL = 0.01
"""A series of independent values without any change has a change point at most as often; AR(0.4) in 3 to 5 %."""
FEWEST = 4
"""Values on each side of a change point."""
SPIKE = 4.0
"""A value that lies further from the median of its neighbours, in units of the noise, is drawn in to there."""
REACH = 3
"""Neighbours on each side."""
FLOOR = 1.0
"""Least change, in units of the noise."""
NORMAL_MAD = 1.4826
ROUNDS = 5
ROWS = 256


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


class Changes(Model):
    """The change points of one series."""

    noise: float
    """Standard deviation of a value, robust, in the unit of the series."""
    floor: float
    """Least change that is told, in the unit of the series."""
    points: tuple[ChangePoint, ...]


class _Candidate(NamedTuple):
    p: float
    place: int


def change_points(values: Sequence[float], level: float = LEVEL, least: float = 0.0) -> Changes:
    """Of values in order of time. `least`: changes by a smaller share are not told."""
    raw = np.asarray(values, dtype=float)
    noise = _noise(raw)
    drawn_in = _without_spikes(raw, noise)
    places = _settled(drawn_in, _places(drawn_in, noise, level), noise, level)
    edges = [0, *places, len(raw)]
    points = [
        _point(raw, drawn_in, before, place, after)
        for before, place, after in zip(edges, edges[1:], edges[2:], strict=False)
    ]
    return Changes(
        noise=noise,
        floor=FLOOR * noise,
        points=tuple(each for each in points if each.magnitude is None or abs(each.magnitude) >= least),
    )


def _point(raw: np.ndarray, drawn_in: np.ndarray, start: int, place: int, end: int) -> ChangePoint:
    before, after = float(np.median(raw[start:place])), float(np.median(raw[place:end]))
    change = after - before
    return ChangePoint(
        index=place,
        magnitude=change / abs(before) if before else None,
        p_value=_p(drawn_in, start, place, end),
        before=before,
        after=after,
    )


def _noise(values: np.ndarray) -> float:
    """Of a value, by the median difference of neighbours; where more than half of these are none, by their mean."""
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


def _places(values: np.ndarray, noise: float, level: float) -> list[int]:
    """The surest candidate first, then those of intervals that do not hold it."""
    found = [
        (start, end, candidate)
        for start, end in _intervals(len(values))
        if (candidate := _split(values, start, end, noise)) is not None and candidate.p <= level
    ]
    places: list[int] = []
    for _, _, candidate in sorted(found, key=lambda each: (each[2], each[1] - each[0])):
        place = candidate.place
        if all(abs(place - known) >= FEWEST for known in places):
            inside = [each for each in found if each[2] == candidate]
            if any(not any(start < known < end for known in places) for start, end, _ in inside):
                places.append(place)
    return sorted(places)


def _intervals(count: int) -> Iterator[tuple[int, int]]:
    """Of each length, by steps of the square root of two, so many that neighbours overlap by half."""
    length = float(count)
    while length >= 2 * FEWEST:
        many = 2 * int(np.ceil(count / length)) - 1
        for start in np.linspace(0, count - length, many):
            yield int(start), min(count, int(np.ceil(start + length)))
        length /= sqrt(2)


def _split(values: np.ndarray, start: int, end: int, noise: float) -> _Candidate | None:
    """The best split of an interval; None where it is too short, or below the noise floor."""
    if end - start < 2 * FEWEST:
        return None
    place = start + _most_energy(values[start:end])
    change = abs(float(np.mean(values[place:end]) - np.mean(values[start:place])))
    return _Candidate(_p(values, start, place, end), place) if change > FLOOR * noise else None


def _most_energy(values: np.ndarray) -> int:
    """The split with the largest energy statistic of the two parts."""
    count = len(values)
    left, right = np.empty(count), np.empty(count)
    for first in range(0, count, ROWS):
        rows = np.abs(values[first : first + ROWS, None] - values[None, :])
        columns = np.arange(count)[None, :]
        own = np.arange(first, first + len(rows))[:, None]
        left[first : first + ROWS] = np.where(columns < own, rows, 0).sum(1)
        right[first : first + ROWS] = np.where(columns > own, rows, 0).sum(1)
    within_left = np.concatenate([[0.0], np.cumsum(left)])
    within_right = np.concatenate([np.cumsum(right[::-1])[::-1], [0.0]])
    between = within_left[-1] - within_left - within_right
    n = np.arange(FEWEST, count - FEWEST + 1)
    m = count - n
    energy = 2 * between[n] / (n * m) - within_left[n] / (n * (n - 1) / 2) - within_right[n] / (m * (m - 1) / 2)
    return int(n[np.argmax(energy * n * m / count)])


def _least_squares(values: np.ndarray) -> int:
    """The split that leaves the least spread within the two parts: of values without spikes the likeliest place."""
    n = np.arange(FEWEST, len(values) - FEWEST + 1)
    total = np.cumsum(values - values.mean())[n - 1]
    return int(n[np.argmax(total**2 / (n * (len(values) - n)))])


def _p(values: np.ndarray, start: int, place: int, end: int) -> float:
    """Two-sided, of no change at the best of all places between `start` and `end`."""
    from scipy.special import stdtr

    left, right = values[start:place], values[place:end]
    rest = np.concatenate([left - left.mean(), right - right.mean()])
    change = abs(float(right.mean() - left.mean()))
    share = independent_share(rest.tolist())
    freedom = max(1.0, len(rest) * share - 2)
    spread = float(rest @ rest) / (len(rest) - 2)
    if spread == 0:
        return 0.0 if change else 1.0
    error = sqrt(spread / share * (1 / len(left) + 1 / len(right)))
    tests = max(1, len(values) - 2 * FEWEST + 1)
    return min(1.0, tests * 2 * float(stdtr(freedom, -change / error)))


def _settled(values: np.ndarray, places: list[int], noise: float, level: float) -> list[int]:
    """Each put where it is best between its neighbours; what then is no change is left out, the least sure first."""
    for _ in range(ROUNDS):
        edges = [0, *places, len(values)]
        moved = [
            a + _least_squares(values[a:c]) if c - a >= 2 * FEWEST else b
            for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)
        ]
        if moved == places:
            break
        places = sorted(set(moved))
    while places:
        edges = [0, *places, len(values)]
        sure = [
            _p(values, a, b, c) if _differ(values, a, b, c, noise) else inf
            for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)
        ]
        worst = max(range(len(places)), key=sure.__getitem__)
        if sure[worst] <= level:
            break
        del places[worst]
    return places


def _differ(values: np.ndarray, start: int, place: int, end: int, noise: float) -> bool:
    return abs(float(np.mean(values[place:end]) - np.mean(values[start:place]))) > FLOOR * noise
