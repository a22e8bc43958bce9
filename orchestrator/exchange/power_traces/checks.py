"""The checks of any trace, whoever recorded it."""

from __future__ import annotations

import numpy as np

from orchestrator.energy.step import unit_step

from .points import Series
from .recording import Recording, TraceDoubt, TraceDoubtCode

SHORT_S = 30.0
FIRST = 4000
"""Readings that are looked at."""
MOST_DEVICES = 16
FEWEST_TURNS = 5
LEVELS_APART, CLEAR = 0.03, 5.0
"""The share of their mean by which levels differ, and the multiple of the scatter about each."""


def checked(recording: Recording) -> Recording:
    """The recording with the doubts that its readings raise."""
    found = (
        _gap(recording),
        _tied(recording),
        _negative(recording),
        _short(recording),
        _several(recording),
        _units(recording),
    )
    return recording.doubted(*(doubt for doubt in found if doubt is not None))


def _gap(recording: Recording) -> TraceDoubt | None:
    """A pause of more than three periods."""
    facts = recording.facts
    if not facts.pauses or facts.period_s is None:
        return None
    detail = (
        f"pauses of more than three periods of {facts.period_s:.4g} s: {facts.pauses}; the longest, "
        f"{facts.longest_s:.4g} s, begins at {facts.longest_at_s:.4g} s"
    )
    return recording.doubt(TraceDoubtCode.GAP, detail)


def _tied(recording: Recording) -> TraceDoubt | None:
    tied = recording.facts.tied
    if not tied:
        return None
    return recording.doubt(TraceDoubtCode.TIED_TIMES, f"{tied} readings have the time of the one before")


def _negative(recording: Recording) -> TraceDoubt | None:
    facts = recording.facts
    if not facts.negative:
        return None
    detail = f"{facts.negative} of {facts.readings} readings are negative"
    return recording.doubt(TraceDoubtCode.NEGATIVE_POWER, detail)


def _short(recording: Recording) -> TraceDoubt | None:
    if recording.duration_s >= SHORT_S:
        return None
    return recording.doubt(TraceDoubtCode.SHORT_TRACE, f"it lasts {recording.duration_s:.1f} s")


def periods_of_levels(power_w: Series) -> int:
    """Return how many devices' readings follow each other in turn, each on a level of its own; 1: it is one device.

    A device's power has no period of just a few readings: levels that explain nearly all of the scatter are several.
    """
    power_w = power_w[:FIRST]
    for count in range(2, MOST_DEVICES + 1):
        whole = power_w[: len(power_w) // count * count].reshape(-1, count)
        if len(whole) < FEWEST_TURNS:
            return 1
        moved = whole - whole.mean(axis=1, keepdims=True)  # what all share, as a load that comes and goes, left out
        levels = moved.mean(axis=0)
        apart = float(np.ptp(levels))
        within = float(np.sqrt(((moved - levels) ** 2).mean()))
        if apart > LEVELS_APART * abs(float(whole.mean())) and apart > CLEAR * within:
            return count
    return 1


def _units(recording: Recording) -> TraceDoubt | None:
    by = unit_step(recording.power_w)
    if by is None:
        return None
    at, factor = by
    detail = f"from {recording.t_s[at]:.4g} s on its readings are {factor:.3g} times those before, as of another unit"
    return recording.doubt(TraceDoubtCode.UNIT_CHANGES, detail)


def _several(recording: Recording) -> TraceDoubt | None:
    count = periods_of_levels(recording.power_w)
    if count < 2:
        return None
    detail = f"each {count} readings lie on {count} levels, one after the other, as those of {count} devices do"
    return recording.doubt(TraceDoubtCode.SEVERAL_IN_ONE, detail)
