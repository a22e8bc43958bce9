"""The whole way: figures of nights -> one trail a series, with its noise floor and its changes, each with its cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp
from typing import Literal

import numpy as np

from orchestrator.analysis.change_points import LEVEL
from orchestrator.analysis.comparison import METRICS
from orchestrator.model.base import Model

from .blame import Blame, Levels, moved, of_level, of_ratio
from .covariate import own_steps
from .series import Cause, Figure, Key, Night
from .steps import Step, Steps, resemblance_of, steps_of


class Change(Model):
    """A figure has another level from this night on."""

    night: str
    at: float
    of: Literal["ratio", "level"]
    """The series that changed: candidate over baseline, or the baseline (the only side)."""
    change: float
    """Share: 0.05 is 5 % more."""
    worse: bool
    p_value: float
    settled: bool
    """Three nights at least have it, and no level that wanders looks like it."""
    cause: Cause
    because: str
    also: dict[str, tuple[str, str]]
    """The other changes on the device since the night before: before, after."""


class Trail(Model):
    """One series: a metric of a cell on a device, by the nights of the history."""

    device: str
    source: str
    cell: str
    metric: str
    basis: str
    unit: str
    a: tuple[float | None, ...]
    """The figures of the baseline, or of the only side; None in nights without it."""
    b: tuple[float | None, ...]
    """The figures of the candidate; empty where there is one side."""
    noise: float
    """Learnt from the series: standard deviation of the ratio from night to night, a share; of the level, with one
    side."""
    level_noise: float
    """The same of side A, whose nights differ by heat and battery too."""
    floor: float
    """Least change that is told, a share."""
    changes: tuple[Change, ...]


class History(Model):
    """Trails of all devices and cells over the same nights."""

    of: str
    """Suite or experiment."""
    nights: tuple[Night, ...]
    trails: tuple[Trail, ...]

    @property
    def changes(self) -> list[tuple[Trail, Change]]:
        """The newest first."""
        found = [(trail, change) for trail in self.trails for change in trail.changes]
        return sorted(found, key=lambda each: (-each[1].at, each[1].cause, each[0].device, each[0].cell))


def history(of: str, nights: Sequence[Night], figures: Iterable[Figure], level: float = LEVEL) -> History:
    """`level`: how often at most a series without any change has one; of all ratios together, whose changes blame the
    candidate, any."""
    ordered = tuple(sorted(nights, key=lambda night: (night.at, night.id)))
    places = {night.id: place for place, night in enumerate(ordered)}
    series: dict[Key, dict[int, Figure]] = {}
    for figure in figures:
        series.setdefault(figure.key, {})[places[figure.night]] = figure
    levels = {key: _logs([_side(points, at, "a") for at in range(len(ordered))]) for key, points in series.items()}
    alike = _alike(levels, level)
    trails = tuple(
        _trail(key, series[key], ordered, levels, alike[key.metric, key.basis], level, level / len(series))
        for key in sorted(series)
    )
    return History(of=of, nights=ordered, trails=trails)


def _alike(levels: Levels, level: float) -> dict[tuple[str, str], float]:
    """Return by metric and basis how alike the levels of neighbouring nights are. Ratios are not taken together: one
    that drifts must not be told by what the others do."""
    several: dict[tuple[str, str], list[list[float]]] = {}
    for key, logs in levels.items():
        several.setdefault((key.metric, key.basis), []).append(logs[np.isfinite(logs)].tolist())
    return {of: resemblance_of(each, level) for of, each in several.items()}


def _trail(
    key: Key,
    points: dict[int, Figure],
    nights: Sequence[Night],
    levels: Levels,
    alike: float,
    level: float,
    sure: float,
) -> Trail:
    newest = points[max(points)]
    a, b = (tuple(_side(points, at, side) for at in range(len(nights))) for side in ("a", "b"))
    log_a, log_b = _logs(a), _logs(b)
    two_sided = bool(np.isfinite(log_a + log_b).any())
    of_a, of_ab = _found(log_a, level, alike), _found(log_b - log_a, sure)
    changes = [
        _change(key, "level", step, nights[at], of_level(key, step.size, at, levels, *_around(points, at)))
        for at, step in of_a[1]
    ]
    own = _own(log_a, log_b, of_a[0], of_ab[0], sure)
    for at, step in of_ab[1]:
        sizes = [moved(each, at) or 0.0 for each in (log_a, log_b)]
        blame = of_ratio(*_around(points, at), *sizes, own=at in own)
        changes.append(_change(key, "ratio", step, nights[at], blame))
    told = of_ab[0] if two_sided else of_a[0]
    return Trail(
        **key._asdict(),
        source=newest.source,
        unit=newest.unit,
        a=a,
        b=b if two_sided else (),
        noise=told.noise,
        level_noise=of_a[0].noise,
        floor=told.floor,
        changes=tuple(sorted(changes, key=lambda change: (change.at, change.of))),
    )


def _own(log_a: np.ndarray, log_b: np.ndarray, of_a: Steps, of_ab: Steps, sure: float) -> frozenset[int]:
    """The places of the steps of the ratio that the level of the device does not explain."""
    both, level = np.isfinite(log_a + log_b), np.flatnonzero(np.isfinite(log_a))
    there = np.flatnonzero(both)
    of_level = [step._replace(place=int(np.searchsorted(there, level[step.place]))) for step in of_a.steps]
    own = own_steps((log_b - log_a)[there], log_a[there], of_ab, of_a._replace(steps=tuple(of_level)), sure)
    return frozenset(int(there[place]) for place in own)


def _found(logs: np.ndarray, level: float, alike: float | None = None) -> tuple[Steps, list[tuple[int, Step]]]:
    """The steps of the nights that have a figure, each with the place of its night."""
    there = np.flatnonzero(np.isfinite(logs))
    found = steps_of(logs[there].tolist(), level, alike)
    return found, [(int(there[step.place]), step) for step in found.steps]


def _change(key: Key, of: Literal["ratio", "level"], step: Step, night: Night, blame: Blame) -> Change:
    return Change(
        night=night.id,
        at=night.at,
        of=of,
        change=exp(step.size) - 1,
        worse=(step.size > 0) == METRICS[key.metric].more_is_worse,
        p_value=step.p_value,
        settled=step.settled,
        cause=blame.cause,
        because=blame.because,
        also=blame.also,
    )


def _around(points: dict[int, Figure], at: int) -> tuple[Figure | None, Figure | None]:
    """The figures of the night and of the newest one before it."""
    before = max((place for place in points if place < at), default=None)
    return (None if before is None else points[before]), points.get(at)


def _side(points: dict[int, Figure], at: int, side: Literal["a", "b"]) -> float | None:
    figure = points.get(at)
    value: float | None = None if figure is None else getattr(figure, side)
    return value


def _logs(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None or value <= 0 else np.log(value) for value in values])
