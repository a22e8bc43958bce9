"""Fair use: what each project has of the farm by its share, and each person of their project. Pure.

At each level who used least of its share comes first, as in the Fair Tree of SLURM: first the projects, then the
people of a project. A phone at work counts as what it was used for until now and as the longest known block. So those
who used the same share the phones at each moment, whatever their blocks take; who used less has more of them until that
is made up for.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.live.usage import HALF_LIFE_S, WEEK_S, Account, Used, beginning, week_of
from orchestrator.model.rights import USUAL, Terms

FIRST_S = 10.0
"""The duration of a block of which nothing is known."""


class UnderWay(NamedTuple):
    """The blocks of an account that have not ended."""

    blocks: float = 0
    elapsed_s: float = 0.0
    """Their phone-time until now."""
    expected_s: float = 0.0
    """All of their phone-time; as long as until now where nothing is known."""


@dataclass(frozen=True)
class FairUse:
    """The use of a farm, in phone-seconds."""

    terms: Mapping[str, Terms] = field(default_factory=dict)
    """The terms by project, where they are not the usual ones."""
    of_project: Mapping[str, float] = field(default_factory=dict)
    of_person: Mapping[Account, float] = field(default_factory=dict)
    left_s: Mapping[str, float] = field(default_factory=dict)
    """The time that projects may use until the week ends; another one has no limit."""
    horizon_s: float = FIRST_S
    """The time for which a phone at work counts beside its time until now."""
    until: float = 0.0
    """Unix time at which the week ends."""

    def share_of(self, project: str) -> float:
        return self.terms.get(project, USUAL).share

    def why_not(self, job: WaitingJob) -> str:
        """Return why a job's project may use no phone now; empty: it may."""
        if not self.left_s or self.left_s.get(job.project, inf) > 0:
            return ""
        hours, end = self.terms[job.project].phone_hours, time.strftime("%a %H:%M", time.localtime(self.until))
        return f"the project {job.project} has used its {hours:g} phone-hours of this week, which ends {end}"


def fair_use(
    terms: Mapping[str, Terms],
    used: Mapping[Account, Used],
    under_way: Mapping[Account, UnderWay],
    took_s: Mapping[str, float],
    now: float,
) -> FairUse:
    """`took_s`: duration of blocks by experiment; `now`: Unix time."""
    horizon_s = min(max(took_s.values(), default=FIRST_S), HALF_LIFE_S)
    of_person, of_project = defaultdict[Account, float](float), defaultdict[str, float](float)
    weeks = defaultdict[str, float](float)
    for account in {*used, *under_way}:
        known, now_on = used.get(account, Used()), under_way.get(account, UnderWay())
        of_person[account] = known.recent_s + now_on.elapsed_s + now_on.blocks * horizon_s
        of_project[account.project] += of_person[account]
        weeks[account.project] += known.week_s + now_on.expected_s
    left_s = {name: 3600 * its.phone_hours - weeks[name] for name, its in terms.items() if its.phone_hours}
    until = beginning(week_of(now)) + WEEK_S
    return FairUse(terms, of_project, of_person, left_s, horizon_s, until)
