"""Phone-time that a project and its people used: by week, and with what is long ago counted for less.

What was used an hour ago counts for half, as in the fair share of HTCondor and SLURM (`PRIORITY_HALFLIFE`,
`PriorityDecayHalfLife`). It is kept by forward decay (Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009): a second
counts for the more the later in its week it was used, so that keeping it is an addition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from orchestrator.model.people import COMMON

HALF_LIFE_S = 3600.0
"""A project with the share s of the farm waits for this times log2(1/s) at most, whatever it used before."""
WEEK_S = 7 * 86_400.0
MONDAY_S = 4 * 86_400.0
"""The first Monday's begin, by Unix time; weeks are UTC's."""


class Account(NamedTuple):
    """The one who uses phones: a person in a project."""

    project: str
    person: str


NOBODY = Account(COMMON, "")


@dataclass(frozen=True)
class Used:
    """Phone-time of an account."""

    week_s: float = 0.0
    """Its time in this week."""
    recent_s: float = 0.0
    """All of it, halved with each half-life since."""


def week_of(at: float) -> int:
    """Return the number of the week of a Unix time."""
    return int((at - MONDAY_S) // WEEK_S)


def beginning(week: int) -> float:
    """Return the Unix time at which a week begins."""
    return MONDAY_S + week * WEEK_S


def weight(at: float) -> float:
    """Return what a second used at a Unix time counts for beside those of its week's begin."""
    return math.exp2((at - beginning(week_of(at))) / HALF_LIFE_S)


def recent_s(weighted: Iterable[tuple[int, float]], now: float) -> float:
    """Return what weighted seconds by week count for at a Unix time; a week to come (a wrong clock) counts as now."""
    return sum(seconds * math.exp2(min(0.0, beginning(week) - now) / HALF_LIFE_S) for week, seconds in weighted)
