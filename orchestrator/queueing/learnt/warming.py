"""The first-order model of a phone's heat, fitted to blocks of sustained load.

dT/dt = (ambient + rise * speed - T) / time_constant, where `speed` is the work that is done in a second: 1 while a cool
phone computes, less while it is throttled, 0 while it rests. For a time constant T is linear in ambient, rise and
the temperatures at the beginnings, so these are solved for, and the time constant is searched (variable projection;
Golub and Pereyra, 1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .history import Column, History

POINTS = 300
"""The points of each history."""
SHORTEST_S, LONGEST_S = 5.0, 20_000.0
LOOKS, CLOSER_LOOKS = 60, 20
ALIKE = 2.0
"""Time constants with at most so many times the least sum of squares could be it as well."""


@dataclass(frozen=True)
class Warming:
    """Degrees Celsius, seconds."""

    ambient_c: float
    """The temperature at which the resting phone ends."""
    rise_c: float
    """The rise above that of a phone that computes without a pause, and is not throttled."""
    time_constant_s: float
    between_s: tuple[float, float]
    """Time constants that fit nearly as well."""
    rms_c: float
    """Root of the mean square of what the model misses."""


@dataclass(frozen=True)
class _Course:
    """A history on even steps."""

    step_s: float
    temp_c: Column
    speed: Column
    """Mean over each step."""


def fit_warming(histories: Sequence[History], cool_s: float) -> Warming:
    """`cool_s`: time of an inference on the cool phone. Whether the blocks suffice is for the caller to say."""
    courses = [_course(each, cool_s) for each in histories]
    wide_s = np.geomspace(SHORTEST_S, LONGEST_S, LOOKS)
    best = int(np.argmin([_solve(courses, each)[1] for each in wide_s]))
    tried_s = np.geomspace(wide_s[max(0, best - 1)], wide_s[min(LOOKS - 1, best + 1)], CLOSER_LOOKS)
    all_s = np.sort(np.concatenate([wide_s, tried_s]))
    solved = [_solve(courses, each) for each in all_s]
    squares = np.array([each[1] for each in solved])
    least = int(np.argmin(squares))
    near_s = all_s[squares <= ALIKE * squares[least]]
    (ambient_c, rise_c, *_), points = solved[least][0], sum(len(each.temp_c) for each in courses)
    return Warming(
        float(ambient_c), float(rise_c), float(all_s[least]), (float(near_s[0]), float(near_s[-1])),
        float(np.sqrt(squares[least] / points)),
    )  # fmt: skip


def _course(history: History, cool_s: float) -> _Course:
    moments = np.linspace(history.at[0], history.at[-1], POINTS + 1)
    done = np.cumsum(history.count) * cool_s
    edges = np.column_stack([history.begun, history.begun + history.took]).ravel()
    work = np.interp(moments, edges, np.column_stack([np.r_[0.0, done[:-1]], done]).ravel())
    step_s = float(moments[1] - moments[0])
    return _Course(step_s, history.temp_at(moments), np.diff(work) / step_s)


def _solve(courses: Sequence[_Course], time_constant_s: float) -> tuple[Column, float]:
    """Ambient, rise and first temperatures by least squares, and the sum of squares that is left."""
    tables = []
    for number, course in enumerate(courses):
        keep = np.exp(-course.step_s / time_constant_s)
        warmed = [0.0]
        for speed in course.speed.tolist():
            warmed.append(warmed[-1] * keep + speed * (1 - keep))
        fading = keep ** np.arange(len(warmed))
        table = np.zeros((len(warmed), 2 + len(courses)))
        table[:, 0], table[:, 1], table[:, 2 + number] = 1 - fading, warmed, fading
        tables.append(table)
    whole, temps_c = np.vstack(tables), np.concatenate([each.temp_c for each in courses])
    found = np.linalg.lstsq(whole, temps_c, rcond=None)[0]
    missed = temps_c - whole @ found
    return found, float(missed @ missed)
